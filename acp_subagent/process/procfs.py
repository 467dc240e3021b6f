"""Reading `/proc`, and signalling exactly the process that was read there.

Owns the formats of `/proc/<pid>/stat`, `environ` and `task/*/children`, and the one way to signal a process
that cannot hit a stranger who got its number. Standard library only: the watchdog runs this file without any
installed package. A process that has gone, or that may not be looked at, is an ordinary answer and never an
exception; running out of descriptors is raised (`OSError`), since then nothing has been proved.

What belongs to which tree is decided in `tree`, not here.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

#: The variable that marks a launched process and everything that it starts.
COOKIE = "ACP_SUBAGENT_LAUNCH"

_COOKIE_ENTRY = COOKIE.encode() + b"="
_READ_BYTES = 65536
#: numbers that are tried one by one; for more of them, listing all processes is cheaper
_MOST_TRIED = 256
#: gone, or a thread (which of the two errors it is depends on the kernel)
_NO_SUCH_PROCESS = (errno.ESRCH, errno.ENOENT, errno.EINVAL)
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Identity(NamedTuple):
    """One process and no other: a number alone is given to somebody else sooner or later."""

    pid: int
    start: int  #: when it started, in the table's own unit


class ProcessFacts(NamedTuple):
    """What the process table says about one process at one moment."""

    pid: int
    parent: int
    group: int
    session: int
    state: str  #: one letter, as in `stat`
    threads: int
    start: int  #: when it started, in the table's own unit (clock ticks since boot)

    @property
    def identity(self) -> Identity:
        """What tells it from every other process, also from a later one of the same number."""
        return Identity(self.pid, self.start)

    @property
    def alive(self) -> bool:
        """False for a zombie, unless only its first thread has ended and others run on."""
        return self.state not in "ZXx" or self.threads > 1

    @property
    def stopped(self) -> bool:
        """True when a signal has stopped it."""
        return self.state in "Tt"


class ProcessTable(Protocol):
    """Where processes are looked up; `/proc`, or something slower on systems without it."""

    def sessions(self) -> dict[int, int]:
        """The session of every process, by pid.

        Who ended before it could be asked is told as being in a session of its own: nobody knows better, and
        what it has left behind may be younger than the list.
        """

    def newest(self) -> int | None:
        """The number that was given to somebody last; None when the table cannot tell."""

    def newer(self, number: int) -> dict[int, int] | None:
        """The session of every process that got its number after that one; None when they are too many, or it
        cannot be told. Whoever ended meanwhile may be left out, but never together with all that it has left
        behind. Only to be asked so soon after that no number can have come round again."""

    def facts(self, pid: int) -> ProcessFacts | None:
        """What is known of a process; None when there is none of that number."""

    def cookie(self, facts: ProcessFacts) -> bytes | None:
        """The value of `COOKIE` in its environment; `b""` when it has none that we may read; None when it
        cannot be told: the process has just ended, or its environment is empty, as it is for an instant while
        it replaces itself by `exec`."""

    def children(self, pid: int) -> list[int] | None:
        """The pids of its children; None when the table cannot tell."""

    def now(self) -> int:
        """The present moment in the unit of `ProcessFacts.start`, rounded down."""


def parse_stat(line: bytes) -> ProcessFacts:
    """Parse one `/proc/<pid>/stat` line; the name in it may contain anything, even parentheses."""
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    return ProcessFacts(
        pid=int(head.partition(b" ")[0]),
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        threads=int(fields[17]),
        start=int(fields[19]),
    )


def parse_cookie(environ: bytes) -> bytes:
    """The value of `COOKIE` in a NUL-separated environment, `b""` when it is not there."""
    if environ.startswith(_COOKIE_ENTRY):
        begin = len(_COOKIE_ENTRY)
    else:
        found = environ.find(b"\0" + _COOKIE_ENTRY)
        if found < 0:
            return b""
        begin = found + 1 + len(_COOKIE_ENTRY)
    end = environ.find(b"\0", begin)
    return environ[begin:] if end < 0 else environ[begin:end]


class ProcTable:
    """The process table of Linux, read straight from `/proc`."""

    def __init__(self) -> None:
        # A kernel may be built without the file that lists children.
        self._lists_children = os.path.exists(f"/proc/self/task/{os.getpid()}/children")

    @staticmethod
    def usable() -> bool:
        """True when `/proc` is there and shows this process under the number that it knows itself by."""
        try:
            return os.readlink("/proc/self") == str(os.getpid())
        except OSError:
            return False

    def sessions(self) -> dict[int, int]:
        """The session of every process that may be asked for it."""
        # One system call for each process: ten times as fast as reading each `stat`.
        found: dict[int, int] = {}
        getsid = os.getsid
        pids = map(int, filter(str.isdigit, os.listdir("/proc")))
        while True:
            try:
                for pid in pids:
                    found[pid] = getsid(pid)
                return found
            except ProcessLookupError:
                found[pid] = pid  # the iterator has passed it already
            except PermissionError:
                continue  # not ours to ask about

    def newest(self) -> int | None:
        """The number that was given away last, to a process or a thread."""
        line = _read("/proc/loadavg")
        return (int(line.split()[4]) or None) if line else None

    def newer(self, number: int) -> dict[int, int] | None:
        """The sessions of those with a higher number; None when they are too many, or numbers came round."""
        # Numbers are given in order: the few since then can be tried, instead of listing all there are.
        found: dict[int, int] = {}
        tried = number
        while True:
            newest = self.newest()
            if newest is None or not 0 <= newest - number <= _MOST_TRIED:
                return None
            if newest <= tried:
                return found
            for pid in range(tried + 1, newest + 1):
                try:
                    session = os.getsid(pid)
                    # A number may be a thread's, and only a process can be opened.
                    os.close(os.pidfd_open(pid))
                except (OSError, AttributeError) as error:
                    if getattr(error, "errno", None) not in _NO_SUCH_PROCESS:
                        return None
                else:
                    found[pid] = session
            # Whoever ended before its number was tried may have left a child, with a number that is higher.
            tried = newest

    def facts(self, pid: int) -> ProcessFacts | None:
        """What its `stat` says; None when there is no such process."""
        line = _read(f"/proc/{pid}/stat")
        return parse_stat(line) if line else None

    def cookie(self, facts: ProcessFacts) -> bytes | None:
        """Its launch cookie, as in `ProcessTable`."""
        if not facts.alive:
            return b""  # its memory is gone, and its environment with it
        environ = _read(f"/proc/{facts.pid}/environ")
        if not environ and facts.state in "ZXx" and facts.threads > 1:
            # The first thread has ended and took the view of the memory with it; the others still have it.
            for thread in _listdir(f"/proc/{facts.pid}/task"):
                environ = environ or _read(f"/proc/{facts.pid}/task/{thread}/environ")
        if environ is None:
            return b""
        # Who is just ending has no environment any more, and is still shown as running.
        return parse_cookie(environ) if environ else None

    def children(self, pid: int) -> list[int] | None:
        """Its children, of all its threads; None when this kernel does not list them."""
        if not self._lists_children:
            return None
        children: list[int] = []
        for thread in _listdir(f"/proc/{pid}/task"):
            line = _read(f"/proc/{pid}/task/{thread}/children")
            if line:
                children.extend(map(int, line.split()))
        return children

    def now(self) -> int:
        """Now, in clock ticks since the boot, as start times are told."""
        ticks: int = os.sysconf("SC_CLK_TCK")
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * ticks // 1_000_000_000


def signal_process(table: ProcessTable, process: Identity, signal_number: int) -> bool:
    """Signal exactly this process; False when it is gone, its number is somebody else's, or it may not be.

    The descriptor is opened first and the start time compared afterwards, so that what is signalled is what
    was compared.
    """
    if process.pid <= 1 or process.pid == os.getpid():
        return False
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):
        handle = None  # no descriptor left, or no pidfd on this system
    if handle is not None:
        try:
            return _is_same(table, process) and _signalled(signal.pidfd_send_signal, handle, signal_number)
        except OSError as error:
            # It was the last descriptor, and none is left to compare with: let go of it and do without.
            if error.errno not in _OUT_OF_DESCRIPTORS:
                raise
        finally:
            os.close(handle)
    return _is_same(table, process) and _signalled(os.kill, process.pid, signal_number)


def signal_group(group: int, signal_number: int) -> bool:
    """Signal a whole process group in one step that no fork within it escapes; never our own group."""
    if group <= 1 or group == os.getpgrp():
        return False
    return _signalled(os.killpg, group, signal_number)


def _is_same(table: ProcessTable, process: Identity) -> bool:
    facts = table.facts(process.pid)
    return facts is not None and facts.start == process.start


def _signalled(send: Callable[[int, int], None], target: int, signal_number: int) -> bool:
    try:
        send(target, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(path: str) -> bytes | None:
    """All of a file of `/proc`; empty when its process has ended, None when it may not be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _OUT_OF_DESCRIPTORS:
            raise
        return b"" if error.errno in _NO_SUCH_PROCESS else None
    try:
        # Some of these files come in pieces smaller than what was asked for: only an empty read is the end.
        data = os.read(handle, _READ_BYTES)
        piece = data
        while piece:
            piece = os.read(handle, _READ_BYTES)
            data += piece
        return data
    except OSError as error:
        return b"" if error.errno in _NO_SUCH_PROCESS else None
    finally:
        os.close(handle)


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError as error:
        if error.errno in _OUT_OF_DESCRIPTORS:
            raise
        return []
