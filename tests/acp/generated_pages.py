"""The parts of the documentation that are generated from the code, and the command that writes them.

`python -m tests.acp.generated_pages` brings the pages up to date; a test fails while they are not. What
stands between two markers of a page is generated; everything else there is written by hand.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from acp_subagent.acp.failure_table import ROWS
from acp_subagent.acp.session import STAGES, TABLE, Event, State
from acp_subagent.acp.vocabulary import ADVICE, Category, Reason, Stage
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.ending import DeadlineName
from acp_subagent.supervised.verdicts import Row

DOCS = Path(__file__).parents[2] / "docs"

_BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def meanings(words: type[StrEnum]) -> dict[str, str]:
    """The `#:` line of each member of an enum, by the member's value."""
    found = re.findall(r'^ {4}[A-Z_]+ = "([^"]+)"  #: (.+)$', inspect.getsource(words), re.MULTILINE)
    return dict(found)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(header)]
    lines.append(("---",) * len(lines[0]))
    lines.extend(tuple(row) for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(word: str) -> str:
    return f"`{word}`"


def words_of(words: type[StrEnum], title: str) -> str:
    return table((title, "meaning"), ((code(word), text) for word, text in meanings(words).items()))


def _shown(row: Row[Any], deadlines: Iterable[str]) -> str:
    """What a row's line shows beside stage and category."""
    shown = []
    if row.shown_stop_reason:
        shown.append(f"stop reason {code(row.shown_stop_reason)}")
    if row.shows_exit:
        shown.append("exit code or signal")
    if row.shows_code:
        shown.append("rpc code")
    if row.reason:
        shown.append(f"reason {code(row.reason)}")
    if row.shows_reason:
        shown.append("reason")
    if row.shows_deadline:
        shown.append("reason " + ", ".join(code(name) for name in deadlines))
    return "; ".join(shown)


def outcomes() -> str:
    """How a turn can end without a failure line."""
    rows = (
        (
            row.fact,
            code(row.stop_reason),
            "the permission line, if there was a decision" if row.shows_permission else "none",
        )
        for row in ROWS
        if row.category is None
    )
    return table(("the turn ended with", "stop reason", "diagnostic"), rows)


def failures(table_rows: Iterable[Row[Any]], stages: type[StrEnum], deadlines: Iterable[str]) -> str:
    """Every row that has a failure line, in the order in which they are tried."""
    rows = (
        (
            "any" if row.stages == tuple(stages) else ", ".join(code(stage) for stage in row.stages),
            row.fact,
            code(row.category),
            _shown(row, deadlines),
        )
        for row in table_rows
        if row.category is not None
    )
    return table(("stage", "what happened", "category", "and the line shows"), rows)


def reasons() -> str:
    told = meanings(Reason)
    return table(
        ("reason", "meaning", "what to do"),
        ((code(reason), told[reason], ADVICE[reason]) for reason in Reason),
    )


def machine_diagram() -> str:
    names = {state: state.name.title().replace("_", "") for state in State}
    lines = ["stateDiagram-v2", f"    [*] --> {names[State.PROCESS]}"]
    for state, row in TABLE.items():
        followers: dict[State, list[str]] = {}
        for event, following in row.items():
            followers.setdefault(following, []).append(event)
        lines += [
            f"    {names[state]} --> {names[following]}: {', '.join(events)}"
            for following, events in followers.items()
        ]
    lines += [f"    {names[state]} --> [*]" for state, row in TABLE.items() if not row]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def machine_table() -> str:
    """One row for a state, one column for an event; an empty cell raises."""
    rows = (
        (code(state), code(STAGES[state]), *(code(row[event]) if event in row else "" for event in Event))
        for state, row in TABLE.items()
    )
    return table(("state", "published stage", *(code(event) for event in Event)), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "categories": lambda: words_of(Category, "category"),
    "failures": lambda: failures(ROWS, Stage, DeadlineName),
    "machine-diagram": machine_diagram,
    "machine-events": lambda: words_of(Event, "event"),
    "machine-states": lambda: words_of(State, "state"),
    "machine-table": machine_table,
    "outcomes": outcomes,
    "reasons": reasons,
    "stages": lambda: words_of(Stage, "stage"),
    "stop-reasons": lambda: words_of(SubagentStopReason, "stop reason"),
}

PAGES = (DOCS / "diagnostics.md", DOCS / "session-machine.md")


def blocks_in(text: str) -> list[str]:
    """The names of the generated parts of a page."""
    return [match["name"] for match in _BLOCK.finditer(text)]


def regenerated(text: str, blocks: Mapping[str, Callable[[], str]] = BLOCKS) -> str:
    """The same page with every generated part as the code has it now."""
    return _BLOCK.sub(lambda match: match[1] + blocks[match["name"]]() + match[3], text)


def main() -> None:
    for page in PAGES:
        page.write_text(regenerated(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
