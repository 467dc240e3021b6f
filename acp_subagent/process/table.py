"""The process table: `/proc` where there is one, psutil elsewhere.

Owns all use of psutil, which is slower and knows less, and the choice between the two. No waiting in here.
"""

from __future__ import annotations

import os
import time

from acp_subagent.process.procfs import COOKIE, ProcessFacts, ProcessTable, ProcTable


class PsutilTable:
    """The process table of a system without `/proc`, through psutil; slower, and otherwise the same."""

    #: parts of a second that start times are counted in
    _UNITS = 100

    def __init__(self) -> None:
        import psutil  # noqa: PLC0415  (start-up time: most systems have /proc)

        self._psutil = psutil

    def sessions(self) -> dict[int, int]:
        """The session of every process that may be asked for it; who has gone, as in `ProcessTable`."""
        found: dict[int, int] = {}
        for pid in self._psutil.pids():
            try:
                found[pid] = os.getsid(pid)
            except ProcessLookupError:
                found[pid] = pid
            except PermissionError:
                continue
        return found

    def newest(self) -> int | None:
        """None: psutil does not tell."""
        return None

    def newer(self, number: int) -> dict[int, int] | None:
        """None: nobody can be left out."""
        return None

    def facts(self, pid: int) -> ProcessFacts | None:
        """What is known of a process; None when there is none, or it is not ours to know."""
        try:
            process = self._psutil.Process(pid)
            with process.oneshot():
                status = process.status()
                return ProcessFacts(
                    pid=pid,
                    parent=process.ppid(),
                    group=os.getpgid(pid),
                    session=os.getsid(pid),
                    state={"zombie": "Z", "dead": "X", "stopped": "T"}.get(status, "S"),
                    threads=1,
                    start=int(process.create_time() * self._UNITS),
                )
        except (self._psutil.Error, ProcessLookupError, PermissionError):
            return None

    def cookie(self, facts: ProcessFacts) -> bytes | None:
        """Its launch cookie, as in `ProcessTable`."""
        if not facts.alive:
            return b""
        try:
            environ = self._psutil.Process(facts.pid).environ()
        except self._psutil.NoSuchProcess:
            return None
        except (self._psutil.Error, OSError):
            return b""
        return environ.get(COOKIE, "").encode(errors="surrogateescape") if environ else None

    def children(self, pid: int) -> list[int] | None:
        """None: parents are read from each process."""
        return None

    def now(self) -> int:
        """Now, in the unit that start times are told in."""
        # A whole second of allowance: not every system keeps start times more exactly.
        return int((time.time() - 1) * self._UNITS)


def process_table() -> ProcessTable:
    """The best process table that this system has."""
    return ProcTable() if ProcTable.usable() else PsutilTable()
