"""The parts of the DSH provider's page that are generated from the code, and the command that writes them.

`python -m tests.dsh.generated_page` brings the page up to date; a test fails while it is not.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_subagent.dsh.classify import ROWS
from acp_subagent.dsh.vocabulary import Category, Stage
from acp_subagent.supervised.ending import DeadlineName
from tests.acp.generated_pages import DOCS, code, failures, regenerated, table, words_of

PAGE = DOCS / "dsh.md"


def outcomes() -> str:
    """How an activity can end without a failure line."""
    rows = ((row.fact, code(row.stop_reason)) for row in ROWS if row.category is None)
    return table(("the last turn ended with", "stop reason"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "categories": lambda: words_of(Category, "category"),
    "failures": lambda: failures(ROWS, Stage, (DeadlineName.STARTUP, DeadlineName.TURN)),
    "outcomes": outcomes,
    "stages": lambda: words_of(Stage, "stage"),
}


def main() -> None:
    PAGE.write_text(regenerated(PAGE.read_text(encoding="utf-8"), BLOCKS), encoding="utf-8")


if __name__ == "__main__":
    main()
