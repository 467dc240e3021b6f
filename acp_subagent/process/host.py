"""Starting children, for one service: its watchdog, its launch cookies, and what all its trees share.

Promises: a spawn either returns a child that its caller owns, or has left nothing behind. The launch cookie
of each child is the cookie that the host itself has inherited and one element of its own, so every ancestor
finds its whole tree, also through a nested host.

What the child is sent and what it says is not known here; ending it is `Child.end_tree`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress

import trio

from acp_subagent.errors import SpawnError
from acp_subagent.process.census import Census
from acp_subagent.process.child import Child, Pipes, collect_late_exits
from acp_subagent.process.launch import LaunchSpec, check_launch, spawn_error
from acp_subagent.process.procfs import COOKIE, ProcessFacts
from acp_subagent.process.table import process_table
from acp_subagent.process.teardown import Scans
from acp_subagent.process.tree import Birth, Tree
from acp_subagent.process.watchdog import Watchdog

#: how often to look whether a process that is given up has ended
_POLL_SECONDS = 0.01


class ProcessHost:
    """Starts the children of one service, and keeps one watchdog for all of them.

    `service_id` is the service's random id (letters, digits, `-`, `_`); with `watchdog`, the children's trees
    are ended also when this program is killed.
    """

    def __init__(self, service_id: str, *, watchdog: bool) -> None:
        if not service_id.replace("-", "").replace("_", "").isalnum():
            raise ValueError("a service id is made of letters, digits, hyphens and underscores")
        self._service_id = service_id
        self._launches = 0
        self._census = Census(process_table())
        self._scans = Scans(self._census)
        self._watchdog = Watchdog(service_id, since=self._census.table.now()) if watchdog else None
        self._starting = trio.Lock()

    @property
    def watchdog_pid(self) -> int | None:
        """The pid of the watchdog; None before the first spawn, and without a watchdog."""
        return self._watchdog.pid if self._watchdog is not None else None

    async def spawn(
        self,
        spec: LaunchSpec,
        nursery: trio.Nursery,
        *,
        on_stderr: Callable[[bytes], None] | None = None,
        on_exit: Callable[[], None] | None = None,
    ) -> Child:
        """Start one child; the caller owns it and must call its `end_tree`.

        The drain of its stderr and the watch for its exit run in `nursery`. `on_stderr` gets each piece of
        stderr as it comes; it must not block, and is not asked again once it raised. `on_exit` is called
        once, when the exit is seen; it must not raise. Cancelled while the spawn is under way, it ends what
        was started, and only then goes on as `Cancelled`.
        Raises `SpawnError` with the reason word; then nothing was started, or it has been ended.
        """
        check_launch(spec)
        collect_late_exits()
        if self._watchdog is not None:
            self._watchdog.ensure_running()
        # One in each pass of the scheduler: everybody else has to wait while a process is started.
        async with self._starting:
            birth = Birth.now(self._census)
            self._launches += 1
            element = f"/{self._service_id}.{self._launches}"
            process, pipes = _open(spec, os.environ.get(COOKIE, "") + element)
        # No checkpoint from here to where somebody owns the child.
        try:
            leader = self._leader(process.pid, birth)
            tree = Tree(self._census, element=element + "/", birth=birth, leader=leader)
            child = Child(process, pipes, spec, tree, self._scans, on_stderr=on_stderr, on_exit=on_exit)
        except BaseException:
            await _give_up(process, pipes)
            raise
        try:
            child.start_tasks(nursery)
            await trio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            with trio.CancelScope(shield=True):
                await _end_at_once(child)
            raise
        return child

    def _leader(self, pid: int, birth: Birth) -> ProcessFacts:
        with suppress(OSError):
            facts = self._census.table.facts(pid)
            if facts is not None:
                return facts
        # No descriptor left to look at it with. It leads a group and a session of its own: that is enough to
        # end it.
        return ProcessFacts(pid, os.getpid(), pid, pid, state="R", threads=1, start=birth.since)

    async def aclose(self) -> None:
        """End the watchdog in order. The children are not touched: end them before."""
        collect_late_exits()
        if self._watchdog is not None:
            await self._watchdog.aclose()


def _open(spec: LaunchSpec, cookie: str) -> tuple[subprocess.Popen[bytes], Pipes]:
    """Start the process, and return it with our ends of its pipes.

    Not in a thread: where there is `vfork`, the thread would hold the interpreter's lock until the new
    program runs, so that nobody else could go on meanwhile either.
    """
    ends: list[int] = []
    try:
        for _ in range(3):
            ends += os.pipe()
        stdin, ours_in, ours_out, stdout, ours_err, stderr = ends
        process = subprocess.Popen(
            [spec.command, *spec.args],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=spec.cwd,
            env={**spec.environment, COOKIE: cookie},
            start_new_session=True,
        )
    except OSError as error:
        failure = spawn_error(error, spec)
    except ValueError as error:  # text that the system has no bytes for
        failure = SpawnError("", cause=error)
    else:
        for theirs in (stdin, stdout, stderr):
            os.close(theirs)
        return process, Pipes(*map(trio.lowlevel.FdStream, (ours_in, ours_out, ours_err)))
    for end in ends:
        os.close(end)
    # Raised out here, so that it carries no foreign exception, whose text may quote arguments.
    raise failure


async def _give_up(process: subprocess.Popen[bytes], pipes: Pipes) -> None:
    """End a process that nobody can own, for an error of our own."""
    process.kill()
    for pipe in pipes:
        pipe.close()
    with trio.CancelScope(shield=True):
        while process.poll() is None:  # noqa: ASYNC110  no event tells of it
            await trio.sleep(_POLL_SECONDS)


async def _end_at_once(child: Child) -> None:
    await child.end_tree(hurried=lambda: True)
    child.stdout.close()
