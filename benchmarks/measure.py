"""Runs the contenders of a figure, interleaved, and keeps every number.

Owns the processes: each measurement is a client program of its own, bounded in time, in a session of its
own. What the numbers mean is `figures`' to say.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import OURS, Contender, Figure

MEASUREMENT_TIMEOUT_SECONDS = 180
#: cold starts in one round; they are short, and other work on the machine disturbs them most
STARTS_PER_ROUND = 3


class MeasurementError(Exception):
    """A client program did not do its work; the text has the last that it said."""


@dataclass(slots=True)
class Outcome:
    """What came out for one figure."""

    figure: Figure
    numbers: dict[str, list[float]] = field(default_factory=dict)  #: by label, one for each round

    @property
    def medians(self) -> dict[str, float]:
        """The median of each contender."""
        return {label: statistics.median(numbers) for label, numbers in self.numbers.items()}

    def spread(self, label: str) -> float:
        """How far the rounds of a contender lie apart: (largest - smallest) / median."""
        numbers = self.numbers[label]
        middle = statistics.median(numbers)
        return (max(numbers) - min(numbers)) / abs(middle) if middle else 0.0

    def judged(self, label: str) -> float:
        """The verdict on a contender."""
        return self.figure.verdict.of(self.medians, label)

    @property
    def reached(self) -> bool:
        """Whether this project reaches the goal."""
        return self.figure.reached(self.judged(OURS))


class Runner:
    """Runs client programs with one agent."""

    def __init__(self, programs: Mapping[str, tuple[str, ...]], agent: tuple[str, ...]) -> None:
        self._programs = programs
        self._agent = agent

    def measure(self, figure: Figure, rounds: int, tell: Callable[[str], None] = lambda _: None) -> Outcome:
        """Measure every contender once in each round. Raises `MeasurementError`."""
        outcome = Outcome(figure)
        sums: set[tuple[float, float]] = set()
        for number in range(rounds):
            tell(f"{figure.name}: round {number + 1} of {rounds}")
            for contender in figure.contenders:
                with self._bystanders(contender.bystanders), pinned(figure.pinned):
                    facts = self._facts(contender)
                if contender.work == "stream" and contender.agent == figure.contenders[0].agent:
                    # Whole, and in order: everybody must have got the same text.
                    sums.add((facts["characters"], facts["sum"]))
                outcome.numbers.setdefault(contender.label, []).append(figure.number(facts))
        if len(sums) > 1:
            raise MeasurementError(f"{figure.name}: the contenders did not get the same text")
        return outcome

    def _facts(self, contender: Contender) -> dict[str, float]:
        if contender.work == "first_byte":
            times = sorted(self._first_byte_seconds(contender) for _ in range(STARTS_PER_ROUND))
            return {"first_byte_seconds": times[len(times) // 2]}
        said = self._run(contender, [*self._agent, *contender.agent])
        facts: dict[str, float] = json.loads(said)
        if facts.get("characters"):
            facts["cpu_seconds_per_character"] = facts["cpu_seconds"] / facts["characters"]
        return facts

    def _first_byte_seconds(self, contender: Contender) -> float:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            stamp = Path(folder) / "stamp"
            began = time.monotonic_ns()
            self._run(contender, [*self._agent, "--stamp", str(stamp), *contender.agent])
            # The bare interpreter drives no agent: its time is that of starting and ending.
            ended = int(stamp.read_text()) if stamp.exists() else time.monotonic_ns()
        return (ended - began) / 1e9

    def _run(self, contender: Contender, agent: list[str]) -> str:
        program = self._programs[contender.program]
        work = [contender.work, *(f"{name}={number}" for name, number in contender.numbers.items())]
        command = {
            "bare-python": [*program],
            "command-line": [*program, "--cwd", "/", "go", "--", *agent],
        }.get(contender.program, [*program, *work, "--", *agent])
        with in_own_session(command) as process:
            try:
                said, complaint = process.communicate(timeout=MEASUREMENT_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                raise MeasurementError(f"{contender.label}, {contender.work}: no end in sight") from None
        if process.returncode:
            raise MeasurementError(f"{contender.label}, {contender.work}: {complaint[-2000:]}")
        return said

    @contextmanager
    def _bystanders(self, count: int) -> Iterator[None]:
        if not count:
            yield
            return
        with in_own_session([*self._agent, "bystanders", str(count)]) as process:
            assert process.stdout is not None
            process.stdout.readline()
            yield
            process.communicate(timeout=MEASUREMENT_TIMEOUT_SECONDS)


@contextmanager
def in_own_session(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process with pipes; one that is left at the end of the block is killed with its process group.

    One that ended by itself leaves agents without input, which then end too.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:  # not collected yet: its number is nobody else's
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


@contextmanager
def pinned(wanted: bool) -> Iterator[None]:
    """What is started in the block runs on one core."""
    allowed = os.sched_getaffinity(0)
    if not wanted:
        yield
        return
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
