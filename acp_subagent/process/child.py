"""One child: its pipes, its stderr, its exit, and the end of its tree.

Promises: stderr is drained from the first moment to the last, whoever floods it; the exit is seen as soon as
it happens and told exactly once; the exit is only collected (reaped) when the tree is dead. The two tasks
that run in the caller's nursery never raise into it.

Starting a child belongs to `host`, the order of its end to `teardown`; what goes through stdin and stdout
belongs to the caller, who also closes `stdout`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import trio

from acp_subagent.process.launch import LaunchSpec
from acp_subagent.process.teardown import Graces, Scans, end_tree
from acp_subagent.process.tree import Tree
from acp_subagent.seam.activity import ExitStatus, TeardownReport

_READ_BYTES = 65536
#: how much of stderr is read in one go when nobody waits for more
_LAST_STDERR_BYTES = 1 << 20
#: how soon after the spawn the tree is walked for the first time; doubles up to the other
_FIRST_WALK_SECONDS = 0.25
_LONGEST_WALK_SECONDS = 2.0
#: how old the list of sessions may get while a child lives
_SESSIONS_AGE_SECONDS = 5.0
#: how often the exit is asked for where nothing tells of it
_POLL_SECONDS = 0.02

#: children that had not exited when their ladder ended
_uncollected: list[subprocess.Popen[bytes]] = []


def exit_status(code: int, status: int) -> ExitStatus:
    """Decode what `waitid` tells: `code` is its `si_code`, `status` its `si_status`."""
    if code == os.CLD_EXITED:
        return ExitStatus(code=status)
    return ExitStatus(signal=status)


def collect_late_exits() -> None:
    """Reap those that survived their ladder and have died since; does nothing for those that still live."""
    if _uncollected:
        _uncollected[:] = [process for process in _uncollected if process.poll() is None]


class Pipes(NamedTuple):
    """Our ends of a child's pipes."""

    stdin: trio.lowlevel.FdStream
    stdout: trio.lowlevel.FdStream
    stderr: trio.lowlevel.FdStream


class Child:
    """A running child. Made by `ProcessHost.spawn`; ended by `end_tree`, which its owner must call."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        pipes: Pipes,
        spec: LaunchSpec,
        tree: Tree,
        scans: Scans,
        *,
        on_stderr: Callable[[bytes], None] | None,
        on_exit: Callable[[], None] | None,
    ) -> None:
        self.pid: int = process.pid
        #: the child's stdin; closed by the first rung of the ladder
        self.stdin: trio.lowlevel.FdStream = pipes.stdin
        #: the child's stdout; the caller reads it to the end and closes it
        self.stdout: trio.lowlevel.FdStream = pipes.stdout
        #: set when the exit of the child (not of its whole tree) was seen
        self.exited = trio.Event()
        #: how it ended; None until then, and for ever when somebody else collected its exit
        self.exit_status: ExitStatus | None = None
        self._process = process
        self._stderr = pipes.stderr
        self._graces = Graces(spec.eof_grace_seconds, spec.term_grace_seconds, spec.kill_grace_seconds)
        self._stderr_tail_bytes = spec.stderr_tail_bytes
        self._tree = tree
        self._scans = scans
        self._on_stderr = on_stderr
        self._on_exit = on_exit
        self._tail = bytearray()
        self._hurried: list[Callable[[], bool]] = []
        self._ending = False
        self._ended = trio.Event()
        self._report: TeardownReport | None = None
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            self._pidfd = -1  # not on this system, or no descriptor left: the exit is asked for now and then

    def __repr__(self) -> str:
        state = "exited" if self.exited.is_set() else "running"
        return f"<Child {self.pid} {state}>"

    @property
    def stderr_tail(self) -> bytes:
        """The last part of what it wrote to stderr, at most `stderr_tail_bytes`."""
        return bytes(self._tail)

    def read_stderr(self) -> None:
        """Take what is in the stderr pipe now, without waiting, at most 1 MiB.

        What a dead process wrote is there at once; nobody waits for those that may still hold the pipe.
        """
        left = _LAST_STDERR_BYTES
        with suppress(OSError):  # nothing more just now, or closed already
            while left > 0 and (data := os.read(self._stderr.fileno(), _READ_BYTES)):
                self._take_stderr(data)
                left -= len(data)

    def start_tasks(self, nursery: trio.Nursery) -> None:
        """Start draining stderr and watching for the exit. Called once, by `ProcessHost.spawn`."""
        nursery.start_soon(self._drain_stderr, name=f"stderr of child {self.pid}")
        nursery.start_soon(self._watch_exit, name=f"exit of child {self.pid}")

    async def end_tree(self, *, hurried: Callable[[], bool] | None = None) -> TeardownReport:
        """End the child and everything it started, by the ladder; every caller gets the same report.

        `hurried` is asked again and again; once it says yes, the ladder skips to the kill. Takes at most the
        three graces together and never raises for anything the child does. Once it has begun it runs to its
        end, whatever scope is cancelled.
        """
        if hurried is not None:
            self._hurried.append(hurried)
        if self._ending:
            await self._ended.wait()
        else:
            self._ending = True
            try:
                await self._end_tree()
            finally:
                self._ended.set()
        assert self._report is not None
        return self._report

    # What the ladder asks of its leader (`teardown.Leader`).

    def see_exit(self) -> bool:
        """Look whether it has exited, without reaping it; sets `exited` and `exit_status`."""
        if not self.exited.is_set() and self._has_exited():
            self.exited.set()
            if self._on_exit is not None:
                self._on_exit()
        return self.exited.is_set()

    def close_stdin(self) -> None:
        """Close our end of its stdin; does nothing the second time."""
        self.stdin.close()

    def reap(self) -> ExitStatus | None:
        """Collect the exit, if there is one to collect."""
        if self.exited.is_set():
            code = self._process.poll()
            if not hasattr(os, "waitid") and code is not None:
                self.exit_status = ExitStatus(code=code) if code >= 0 else ExitStatus(signal=-code)
        return self.exit_status

    def _has_exited(self) -> bool:
        if not hasattr(os, "waitid"):
            # How it ended is then known at the reap.
            return not self._tree.is_alive(self.pid)
        try:
            facts = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else in this program has collected it: gone, and nobody can say how.
            self._tree.forget_leader()
            return True
        if facts is not None:
            self.exit_status = exit_status(facts.si_code, facts.si_status)
        return facts is not None

    async def _end_tree(self) -> None:
        try:
            self._report = await end_tree(
                self,
                self._tree,
                self._scans,
                self._graces,
                hurried=lambda: any(hurried() for hurried in self._hurried),
            )
        finally:
            if self._report is None:  # only an interrupt from the keyboard gets here
                self._report = TeardownReport({}, self._tree.found, len(self._tree.alive), None, failed=True)
            self._tree.release()
            self._close()

    def _close(self) -> None:
        # Both tasks are told by the closing of what they wait for.
        self.stdin.close()
        self.read_stderr()
        self._stderr.close()
        if self._pidfd >= 0:
            trio.lowlevel.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if not self.exited.is_set():
            _uncollected.append(self._process)

    @trio.lowlevel.enable_ki_protection
    async def _drain_stderr(self) -> None:
        with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            while data := await self._stderr.receive_some(_READ_BYTES):
                self._take_stderr(data)

    def _take_stderr(self, data: bytes) -> None:
        self._tail += data
        del self._tail[: max(0, len(self._tail) - self._stderr_tail_bytes)]
        if self._on_stderr is not None:
            try:
                self._on_stderr(data)
            except Exception:  # noqa: BLE001  (an observer that fails must not stop the drain; it is not asked again)
                self._on_stderr = None

    @trio.lowlevel.enable_ki_protection
    async def _watch_exit(self) -> None:
        interval = _FIRST_WALK_SECONDS
        walk_at = trio.current_time() + interval
        while self._report is None and not self.see_exit():
            with trio.move_on_at(walk_at):
                await self._exit_told()
            if trio.current_time() >= walk_at:
                self._remember_tree()
                interval = min(interval * 2, _LONGEST_WALK_SECONDS)
                walk_at = trio.current_time() + interval

    async def _exit_told(self) -> None:
        if self._pidfd < 0:
            await trio.sleep(_POLL_SECONDS)
            return
        with suppress(trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(self._pidfd)
        if self._report is None and not self.see_exit():
            # Dead, and not ours to collect yet: a debugger comes first.
            await trio.sleep(_POLL_SECONDS)

    def _remember_tree(self) -> None:
        """Note who descends from the child while the links to them still exist."""
        with suppress(OSError):  # no descriptor left just now; the next time will do
            self._scans.census.look_if_older_than(_SESSIONS_AGE_SECONDS)
            self._tree.refresh()
            self._tree.walk()
