"""What every measured client program shares: its command line, its clocks, and its report.

A client is called as `CLIENT WORK [NAME=NUMBER ...] -- AGENT [ARG ...]`, does one piece of work with children
that run that command, and prints one JSON object with what it measured. Loads as little as it can: the
start-up of a client is one of the figures.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable

MEBIBYTE = 1024 * 1024
#: no text of the measured conversations is longer; clients that bound what they keep are told so
LONGEST_TEXT_BYTES = 512 * MEBIBYTE


def command_line() -> tuple[str, dict[str, int], list[str]]:
    """The work to do, its numbers, and the agent's command."""
    words = sys.argv[1:]
    at = words.index("--")
    numbers = {name: int(number) for name, _, number in (word.partition("=") for word in words[1:at])}
    return words[0], numbers, words[at + 1 :]


def cpu_seconds() -> float:
    """Processor time of this process so far, without that of its children."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes(*, collect: bool = False) -> int:
    """Memory of this process that is in RAM now; with `collect`, after the garbage was collected."""
    if collect:
        import gc  # noqa: PLC0415

        gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def forget_peak() -> None:
    """Let `peak_bytes` count from now on."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")


def peak_bytes() -> int:
    """The most memory that was in RAM since `forget_peak`."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


class Stopwatch:
    """Processor and wall time from its making on."""

    def __init__(self) -> None:
        self._cpu, self._wall = cpu_seconds(), time.perf_counter()

    def read(self) -> dict[str, float]:
        return {"cpu_seconds": cpu_seconds() - self._cpu, "wall_seconds": time.perf_counter() - self._wall}


def conversation(measured: dict[str, float], text: str) -> dict[str, object]:
    """A report of one conversation; two clients that got the same text, in order, have the same sum."""
    import zlib  # noqa: PLC0415

    return {**measured, "characters": len(text), "sum": zlib.crc32(text.encode())}


def median(numbers: list[float]) -> float:
    """The middle of an odd number of values, the upper middle of an even one."""
    return sorted(numbers)[len(numbers) // 2]


def report(facts: dict[str, object]) -> None:
    """Print what was measured."""
    import json  # noqa: PLC0415

    print(json.dumps(facts), flush=True)


def perform(works: dict[str, Callable[[dict[str, int], list[str]], dict[str, object]]]) -> None:
    """Do what the command line asks for, and report it."""
    work, numbers, agent = command_line()
    report(works[work](numbers, agent))
