"""The table of a run: for the terminal, and as `docs/performance.md`.

Pure but for what it is told of the machine; the numbers come from `measure`, the goals from `figures`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.figures import ACP_CLIENT, OURS, PYTHON, RAW, TYPESCRIPT, Figure
from benchmarks.measure import Outcome

COLUMNS = (RAW, PYTHON, TYPESCRIPT, ACP_CLIENT, OURS)

#: from small to large; a number is shown in the largest of which it has one
PREFIXES = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))}
BYTES = ((1024.0**2, "MiB"), (1024.0, "KiB"), (1.0, "B"))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a reader has to know beside the numbers."""

    machine: str
    agent: str
    versions: Mapping[str, str]
    rounds: int
    load: str  #: other work on the machine, at the beginning and at the end


def machine() -> str:
    """Processor and number of cores."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def shown(number: float, unit: str) -> str:
    """A number with its unit, three digits of it."""
    if unit == "s":
        factor, name = next((p for p in PREFIXES["s"] if abs(number) >= p[0]), PREFIXES["s"][-1])
        return f"{number / factor:.3g} {name}"
    if unit == "B":
        factor, name = next((p for p in BYTES if abs(number) >= p[0]), BYTES[-1])
        return f"{number / factor:.3g} {name}"
    if number >= 1000:
        return f"{round(number, -3 if number >= 100_000 else -1):,.0f} {unit}"
    return f"{number:.3g} {unit}"


def in_goal_unit(number: float, unit: str) -> str:
    """A verdict or a goal, two or three digits of it."""
    separator = "" if unit == "x" else " "
    return f"{number:.0f}{separator}{unit}" if abs(number) >= 20 else f"{number:.3g}{separator}{unit}"


def cell(outcome: Outcome, label: str) -> str:
    """What the table says of one contender."""
    if label not in outcome.numbers:
        return ""
    spread = f"±{50 * outcome.spread(label):.0f} %"
    value = shown(outcome.medians[label], outcome.figure.unit)
    same_unit = outcome.figure.verdict.unit.endswith("iB")
    verdict = "" if same_unit else f" = {in_goal_unit(outcome.judged(label), outcome.figure.verdict.unit)}"
    return f"{value} {spread}{verdict}"


def goal(figure: Figure) -> str:
    """What is to be reached."""
    sign = ">=" if figure.verdict.more_is_better else "<="
    return f"{sign} {in_goal_unit(figure.goal, figure.verdict.unit)}"


def mark(outcome: Outcome) -> str:
    """Reached or not."""
    return "yes" if outcome.reached else "NO"


def short_of(outcomes: Iterable[Outcome]) -> list[str]:
    """One line for each figure that does not reach its goal."""
    return [
        f"{outcome.figure.name}: {in_goal_unit(outcome.judged(OURS), outcome.figure.verdict.unit)}, "
        f"to reach {goal(outcome.figure)}"
        for outcome in outcomes
        if not outcome.reached
    ]


def as_text(outcomes: Iterable[Outcome]) -> str:
    """The table for a terminal: one block for each figure."""
    blocks = []
    for outcome in outcomes:
        figure = outcome.figure
        lines = [f"{figure.name}: {figure.title}"]
        lines += [f"  {label:<15}{cell(outcome, label)}" for label in COLUMNS if label in outcome.numbers]
        lines.append(f"  {'to reach':<15}{goal(figure)}: {mark(outcome)}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_page(outcomes: list[Outcome], setting: Setting) -> str:
    """The page `docs/performance.md`."""
    header = [
        "figure",
        "raw limit",
        "Python SDK",
        "TypeScript SDK",
        "acp-client",
        "this project",
        "to reach",
        "reached",
    ]
    rows = [
        [
            outcome.figure.title,
            *(cell(outcome, label) for label in COLUMNS),
            goal(outcome.figure),
            mark(outcome),
        ]
        for outcome in outcomes
    ]
    table = [header, ["---"] * len(header), *rows]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    short = short_of(outcomes)
    verdict = "Every figure is reached." if not short else "Figures that fall short:"
    versions = ", ".join(f"{name} {version}" for name, version in setting.versions.items())
    return PAGE.format(
        table="\n".join(lines),
        verdict="\n".join([verdict, "", *(f"- {line}" for line in short)]).rstrip(),
        machine=setting.machine,
        versions=versions,
        agent=setting.agent,
        rounds=setting.rounds,
        load=setting.load,
    )


PAGE = """\
# Performance

Written by `make bench`; do not edit. One run measures this project and what one could use instead side by
side, with one agent that is not the bottleneck.

- machine: {machine}
- versions: {versions}
- agent: {agent}
- {rounds} interleaved rounds; the median of each, ± half the distance between the smallest and the largest
  round in percent of it; after `=` how that compares (for most rows: with the raw limit)
- load average before and after: {load}. Other work on the machine widens the spread; ratios hold, single
  times do not.

{table}

{verdict}

## What is compared

- *raw limit*: blocking reads of 64 KiB, a split, `orjson.loads`, a dispatch of a few comparisons; for whole
  runs `subprocess.Popen`, closing stdin and `wait`, without a word of protocol; for many runs a thread each.
  It supervises nothing. In the rows that say "against", it is this project itself with less before it.
- *Python SDK* is `agent-client-protocol`, *TypeScript SDK* is `@agentclientprotocol/sdk`, *acp-client* is the
  package of that name. Each is used as its documentation shows, and does the same work: the whole
  conversation, the text concatenated, in order (compared by a checksum). None of them looks for the
  processes that an agent started.
- *this project* is measured through the public API with everything on that a user has on: ordering, output
  folding, counters, deadlines, stderr drain, the watchdog, the proof that the process tree is dead. Only
  `max_output_bytes` is raised where the others keep everything too.
- Processor time is that of the client's process alone, user and system. Memory is what is in RAM (`VmRSS`,
  peaks from `VmHWM`), above what there was before the turn.
"""
