"""The figures: what is measured with whom, how it is judged, and what is to be reached.

`figures` is the table. In a figure every contender does the same work, and one number is taken from what it
reports; the verdict turns the medians into what is compared with the goal. Nothing is run in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

KIBIBYTE = 1024
MEBIBYTE = 1024 * 1024

#: Labels: what the others are compared with, this project, and what users would pick instead.
RAW, OURS = "raw", "ours"
PYTHON, TYPESCRIPT, ACP_CLIENT = "Python SDK", "TypeScript SDK", "acp-client"
PEERS = (PYTHON, TYPESCRIPT, ACP_CLIENT)

#: The client program of each.
PROGRAMS = {
    RAW: "raw",
    OURS: "ours",
    PYTHON: "python-sdk",
    TYPESCRIPT: "typescript-sdk",
    ACP_CLIENT: "acp-client",
}

Facts = Mapping[str, float]  #: what a client program reported
Number = Callable[[Facts], float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a contender's median is judged."""

    of: Callable[[Mapping[str, float], str], float]  #: the medians of all, and whose turn it is
    unit: str
    more_is_better: bool = False


def share_of_raw() -> Verdict:
    """In percent of the raw limit's number; more is better."""
    return Verdict(lambda medians, label: 100 * medians[label] / medians[RAW], "%", more_is_better=True)


def times_raw() -> Verdict:
    """In times of the raw limit's number."""
    return Verdict(lambda medians, label: medians[label] / medians[RAW], "x")


def percent_of(other: str) -> Verdict:
    """In percent of another's number; less is better."""
    return Verdict(lambda medians, label: 100 * medians[label] / medians[other], "%")


def milliseconds_above_raw() -> Verdict:
    """By how much it is more than the raw limit's number."""
    return Verdict(lambda medians, label: 1000 * (medians[label] - medians[RAW]), "ms")


def bytes_in(divisor: int, unit: str) -> Verdict:
    """The number itself, in a larger unit."""
    return Verdict(lambda medians, label: medians[label] / divisor, unit)


@dataclass(frozen=True, slots=True)
class Contender:
    """One who takes part in a figure."""

    label: str
    program: str  #: the client program
    work: str  #: what it is to do
    agent: tuple[str, ...]  #: the agent's arguments
    numbers: Mapping[str, int] = field(default_factory=dict)  #: for the client program
    bystanders: int = 0  #: idle processes on the machine meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table."""

    name: str  #: for `--only`
    title: str
    contenders: tuple[Contender, ...]
    number: Number  #: in what a contender reported
    unit: str  #: of that number
    verdict: Verdict
    goal: float
    pinned: bool = False  #: client and agent on one core

    def reached(self, value: float) -> bool:
        """Whether a value of the verdict reaches the goal."""
        return value >= self.goal if self.verdict.more_is_better else value <= self.goal


def contender(label: str, work: str, *agent: object, bystanders: int = 0, **numbers: int) -> Contender:
    """A contender that runs the program of its label."""
    return Contender(label, PROGRAMS[label], work, tuple(map(str, agent)), numbers, bystanders)


def everybody(work: str, *agent: object, bystanders: int = 0, **numbers: int) -> tuple[Contender, ...]:
    """Raw limit, peers and this project, all with the same work."""
    return tuple(
        contender(label, work, *agent, bystanders=bystanders, **numbers) for label in (RAW, *PEERS, OURS)
    )


def fact(name: str) -> Number:
    """One fact as it was reported."""
    return lambda facts: facts[name]


def per_cpu_second(count: float) -> Number:
    """How many in a second of processor time."""
    return lambda facts: count / facts["cpu_seconds"]


def figures(scale: float = 1.0) -> list[Figure]:
    """All figures; a `scale` below 1 makes the work smaller, for a quick look."""

    def some(count: int, least: int = 1) -> int:
        return max(least, int(count * scale))

    return [*_streams(some), *_costs_of_a_run(some), *_starts(), *_memory(some), *_growth(some)]


Some = Callable[..., int]


def _streams(some: Some) -> list[Figure]:
    small, big, long = some(200_000), some(50_000), some(16)
    of_small = ("chunks", small, 180)
    return [
        Figure(
            name="updates",
            title=f"{small:,} updates of 180 B in one turn, per CPU second",
            contenders=everybody("stream", *of_small),
            number=per_cpu_second(small),
            unit="/s",
            verdict=share_of_raw(),
            goal=50,
        ),
        Figure(
            name="subscriber",
            title="the same with one event subscriber reading all",
            contenders=(contender(RAW, "stream", *of_small), contender(OURS, "subscribe", *of_small)),
            number=per_cpu_second(small),
            unit="/s",
            verdict=share_of_raw(),
            goal=25,
        ),
        Figure(
            name="updates-2k",
            title=f"{big:,} updates of 2 KiB in one turn, per CPU second",
            contenders=everybody("stream", "chunks", big, 2 * KIBIBYTE),
            number=per_cpu_second(big),
            unit="/s",
            verdict=share_of_raw(),
            goal=80,
        ),
        Figure(
            name="lines-8m",
            title=f"{long} lines of 8 MiB in one turn, MB per CPU second",
            contenders=everybody("stream", "chunks", long, 8 * MEBIBYTE),
            number=per_cpu_second(long * 8 * MEBIBYTE / 1e6),
            unit="MB/s",
            verdict=share_of_raw(),
            goal=90,
        ),
        Figure(
            name="permission",
            title="permission round trip seen by the agent, both on one core, p50",
            contenders=everybody("ask", "ask", some(10_000, 100)),
            number=fact("p50_seconds"),
            unit="s",
            verdict=times_raw(),
            goal=3.0,
            pinned=True,
        ),
    ]


def _costs_of_a_run(some: Some) -> list[Figure]:
    one, few, many = ("chunks", 1, 180), some(200, 5), some(600, 20)
    at_a_time, children = some(200, 10), some(200, 10)
    return [
        Figure(
            name="run",
            title="one whole run with 300 other processes on the machine, p50 above raw spawn and wait",
            contenders=everybody("runs", *one, bystanders=some(300), count=few),
            number=fact("p50_seconds"),
            unit="s",
            verdict=milliseconds_above_raw(),
            goal=1.5,
        ),
        Figure(
            name="crowd",
            title=f"{many} whole runs, {at_a_time} at a time, runs per second",
            contenders=everybody("crowd", *one, count=many, at_a_time=at_a_time),
            number=lambda facts: many / facts["wall_seconds"],
            unit="/s",
            verdict=share_of_raw(),
            goal=70,
        ),
        Figure(
            name="children",
            title=f"client memory per live child, {children} children",
            contenders=everybody("children", "hold", few=some(20, 2), many=some(20, 2) + children),
            number=fact("bytes_per_child"),
            unit="B",
            verdict=bytes_in(KIBIBYTE, "KiB"),
            goal=50,
        ),
    ]


def _starts() -> list[Figure]:
    one = ("chunks", 1, 180)
    bare = Contender(RAW, "bare-python", "first_byte", tuple(map(str, one)))
    peers = tuple(contender(label, "first_byte", *one) for label in PEERS)
    return [
        Figure(
            name="start",
            title="start of the program to the first byte at the agent; the library (raw: bare Python)",
            contenders=(bare, *peers, contender(OURS, "first_byte", *one)),
            number=fact("first_byte_seconds"),
            unit="s",
            verdict=percent_of(PYTHON),
            goal=40,
        ),
        Figure(
            name="start-cli",
            title="the same; the command line, `acp-subagent run`",
            contenders=(peers[0], Contender(OURS, "command-line", "first_byte", tuple(map(str, one)))),
            number=fact("first_byte_seconds"),
            unit="s",
            verdict=percent_of(PYTHON),
            goal=55,
        ),
    ]


def _memory(some: Some) -> list[Figure]:
    million, gigabyte, seconds = some(1_000_000), some(1024, 8), some(10)
    peak, streaming = fact("peak_bytes"), fact("streaming_bytes")
    rows = [
        ("gigabyte", f"{gigabyte} MiB in one turn, lines of 2 KiB: peak above `max_output_bytes`", peak, 32),
        ("gigabyte-8m", "the same, lines of 8 MiB", peak, 32),
        ("million", f"memory above the kept text while {million:,} updates come", streaming, 8),
        (
            "slow-reader",
            f"the same; a subscriber reads 10 a second for {seconds} s, then leaves",
            streaming,
            8,
        ),
    ]
    contenders = [
        contender(OURS, "memory", "chunks", gigabyte * 512, 2 * KIBIBYTE),
        contender(OURS, "memory", "chunks", gigabyte // 8, 8 * MEBIBYTE),
        contender(OURS, "memory", "chunks", million, 180),
        contender(OURS, "memory", "chunks", million, 180, reads_per_second=10, seconds=seconds),
    ]
    return [
        Figure(
            name=name,
            title=title,
            contenders=(ours,),
            number=number,
            unit="B",
            verdict=bytes_in(MEBIBYTE, "MiB"),
            goal=goal,
        )
        for (name, title, number, goal), ours in zip(rows, contenders, strict=True)
    ]


def _growth(some: Some) -> list[Figure]:
    """Costs must not grow with what came before. The raw column has the same work with little before it."""
    runs, turns = some(100, 5), some(1000, 10)

    def ours_as(label: str, work: str, *agent: object, bystanders: int = 0, **numbers: int) -> Contender:
        return Contender(label, PROGRAMS[OURS], work, tuple(map(str, agent)), numbers, bystanders)

    def compare(name: str, title: str, number: str, goal: float, *contenders: Contender) -> Figure:
        return Figure(
            name=name,
            title=title,
            contenders=contenders,
            number=fact(number),
            unit="s",
            verdict=times_raw(),
            goal=goal,
        )

    return [
        compare(
            "run-2000",
            "one whole run with 2,000 other processes, against 300",
            "p50_seconds",
            3.0,
            ours_as(RAW, "runs", "chunks", 1, 180, bystanders=some(300), count=runs),
            ours_as(OURS, "runs", "chunks", 1, 180, bystanders=some(2000), count=runs),
        ),
        compare(
            "update-million",
            f"CPU per update, {some(1_000_000):,} in one turn against {some(100_000):,}",
            "cpu_seconds_per_character",
            1.2,
            ours_as(RAW, "stream", "chunks", some(100_000), 180),
            ours_as(OURS, "stream", "chunks", some(1_000_000), 180),
        ),
        compare(
            "turn-thousand",
            f"CPU of a turn, the last tenth of {turns:,} on one session against the first",
            "late_seconds",
            1.2,
            ours_as(RAW, "turns", "chunks", 1, 180, count=turns, early=1),
            ours_as(OURS, "turns", "chunks", 1, 180, count=turns),
        ),
    ]
