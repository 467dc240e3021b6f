"""The line to one child: its process, the connection over its pipes, and the tasks that watch both.

Owns how the end of the one becomes the end of the other, why a line has gone silent, and the pace of the
reader. What is said on it is the conversation's, when it is opened and ended is the chain's.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from acp_subagent.process.child import Child
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.supervised.conversation import Outcome, TurnPort
from acp_subagent.supervised.ending import End
from acp_subagent.supervised.stderr import StderrLines
from acp_subagent.supervised.tasks import Tasks
from acp_subagent.wire.connection import Connection, Ending, WireLimits
from acp_subagent.wire.jsonrpc import Receiver
from acp_subagent.wire.log import WireLog

#: Endings of a connection that say by themselves why there will be no answer.
_SELF_EXPLAINING = {
    Ending.FRAME_TOO_LARGE: End.FRAME_TOO_LARGE,
    Ending.NEVER_SPOKE: End.NEVER_SPOKE,
    Ending.WRITE_BLOCKED: End.WRITE_BLOCKED,
    Ending.UNEXPECTED: End.UNEXPECTED,
}


class Line:
    """One child and the connection to it. `turn` gives the turn that is under way, for events and pauses.

    `on_end` is called once, when the conversation has ended and everybody who waits for an answer was told.
    """

    def __init__(
        self,
        receiver: Receiver,
        turn: Callable[[], TurnPort],
        *,
        on_end: Callable[[], None],
        limits: WireLimits,
        exit_observation_seconds: float,
        wire_log: str | None,
    ) -> None:
        self._receiver = receiver
        self._turn = turn
        self._on_end = on_end
        self._limits = limits
        self._wire_log_path = wire_log
        self._wire_log: WireLog | None = None
        self._stderr = StderrLines(lambda: turn().feed)
        self._connection: Connection | None = None
        self._observed = False  # the child was waited for, and nothing came, not even its exit
        self.exit_observation_seconds = exit_observation_seconds  #: for the exit, when a stream has ended
        self.child: Child | None = None

    @property
    def connection(self) -> Connection:
        """The connection; there is one once the child is."""
        assert self._connection is not None
        return self._connection

    @property
    def connected(self) -> Connection | None:
        """The connection, if there is one yet."""
        return self._connection

    async def open(self, host: ProcessHost, launch: LaunchSpec, tasks: Tasks) -> None:
        """Spawn the child, connect to it, and start what has to run as long as the line is open.

        Raises `SpawnError`; then there is no child.
        """
        self.child = child = await host.spawn(
            launch,
            tasks.nursery,
            on_stderr=self._stderr.feed,
            on_exit=lambda: tasks.call(self._child_exited),
        )
        if self._wire_log_path is not None:
            self._wire_log = WireLog(self._wire_log_path, child=child.pid)
        self._connection = Connection(
            child.stdout,
            child.stdin,
            self._receiver,
            self._limits,
            tap=None if self._wire_log is None else self._wire_log.tap,
            before_read=self,
            on_backlog=lambda: tasks.spawn(self._write),
            on_end=lambda: tasks.call(self._on_end),
        )
        tasks.spawn(self._connection.read)

    # -- why nothing comes any more

    @property
    def needs_observation(self) -> bool:
        """Whether only the child's exit, which has not been seen, can tell why the stream ended."""
        assert self.child is not None
        explained = self._observed or self.connection.ending in _SELF_EXPLAINING
        return self.child.exit_status is None and not explained

    def silence(self) -> Outcome:
        """Why a line that has ended brought no answer. An exit that was seen comes before all else."""
        assert self.child is not None
        connection, child = self.connection, self.child
        if child.exit_status is not None and connection.ending is not Ending.UNEXPECTED:
            child.read_stderr()  # its last words belong to the failure
            return Outcome(end=End.EXITED, exit_status=child.exit_status)
        end = End.STREAM_ENDED
        if connection.ending is not None:
            end = _SELF_EXPLAINING.get(connection.ending, End.STREAM_ENDED)
        return Outcome(end=end, cause=connection.error)

    def _child_exited(self) -> None:
        """The leader's exit ends the conversation, whoever still holds its stdout."""
        if self._connection is not None:
            self._connection.stop()
        self._turn().poke()

    async def _write(self) -> None:
        """A broken pipe to the child ends the conversation, once what it may have said was waited for."""
        await self.connection.write()
        if not self.connection.write_broken.is_set():
            return
        with trio.move_on_after(self.exit_observation_seconds) as observation:
            await self.connection.ended.wait()
        self._observed = observation.cancelled_caught
        self.connection.stop()

    # -- the pace of the reader (wire.connection.BackPressure)

    @property
    def ready(self) -> bool:
        """Asked between reads: hand out the events of the last one; may the reader go on?"""
        turn = self._turn()
        if not turn.begun:
            return True
        feed = turn.feed
        feed.flush(self.connection.received_bytes)
        return not feed.behind

    async def wait(self) -> None:
        """Wait, for a bounded time, until the subscribers have caught up."""
        turn = self._turn()
        turn.pause()
        try:
            await turn.feed.wait_for_room()
        finally:
            turn.unpause()

    # -- the end

    async def end(self, hurried: Callable[[], bool]) -> TeardownReport:
        """End the child's whole tree; what was in the pipes is handled then.

        `hurried` is asked again and again; once it says yes, the ladder skips to the kill.
        """
        assert self.child is not None
        try:
            return await self.child.end_tree(hurried=hurried)
        finally:
            self._stderr.finish()
            if self._connection is not None:
                self._connection.stop()
                self._connection.close_writer()

    def close(self) -> None:
        """Let go of what the line holds; its tasks have ended."""
        if self.child is not None:
            self.child.stdout.close()
        if self._wire_log is not None:
            self._wire_log.close()
