"""From nothing to an open session: a place among the children, the spawn, the handshake, within one deadline.

Owns the startup deadline and how everything that can end a start becomes one outcome. Starts nothing but what
`run` is asked for, and ends nothing: whatever is there when it returns is the chain's to end.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from acp_subagent.errors import SpawnError, UnsupportedCapabilityError
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec, WorkingDirectoryFault
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.conversation import Conversation, LifeEvent, Link, Outcome
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from acp_subagent.supervised.line import Line
from acp_subagent.supervised.tasks import Tasks


class Opening:
    """One start. `ends_at` is on trio's clock, `inf` for no limit."""

    def __init__(
        self,
        line: Line,
        conversation: Conversation,
        *,
        launch: LaunchSpec,
        context: StartContext,
        ends_at: float,
    ) -> None:
        self._line = line
        self._conversation = conversation
        self._launch: LaunchSpec | None = launch
        self._context = context
        self._scope = trio.CancelScope(deadline=ends_at)
        self._timed_until = 0.0
        self._crash: BaseException | None = None
        self.refusal: UnsupportedCapabilityError | None = None  #: the agent does not take such a prompt
        self.seconds: dict[str, float] = {}  #: what the parts of the start took; fields of `Timings`

    def cancel(self) -> None:
        """End it now; does nothing once it has come to its end."""
        self._scope.cancel()

    def crash(self, crash: BaseException) -> None:
        """A task of ours has failed: end it as unexpected."""
        self._crash = self._crash or crash
        self._scope.cancel()

    async def run(self, tasks: Tasks, intent: Callable[[], Intent | None]) -> Outcome:
        """Open the session: `End.ANSWERED` without an intent when a prompt can be sent.

        `intent` says whether the start is to end by our own intent; it comes before everything else.
        """
        outcome = Outcome(end=End.UNANSWERED)
        try:
            with self._scope:
                outcome = await self._open(tasks)
        except UnsupportedCapabilityError as exc:
            self.refusal = exc.with_traceback(None)
        except SpawnError as exc:
            gone = exc.reason in set(WorkingDirectoryFault)  # the working directory, since it was checked
            end = End.NOT_CONFIGURED if gone else End.NOT_SPAWNED
            outcome = Outcome(end=end, reason=exc.reason, cause=exc.cause or exc)
        except Exception as exc:  # noqa: BLE001  becomes the outcome of the start
            outcome = Outcome(end=End.UNEXPECTED, cause=exc)
        # A cancellation that has come already must be noticed before the run is published.
        await trio.lowlevel.cancel_shielded_checkpoint()
        if self._crash is not None:
            outcome = Outcome(end=End.UNEXPECTED, cause=self._crash)
        outcome.intent = intent()
        if outcome.intent is None and self._crash is None and self._scope.cancelled_caught:
            outcome.intent, outcome.deadline = Intent.DEADLINE, DeadlineName.STARTUP
        return outcome

    def give_place_back(self) -> None:
        """The child is gone: another one may take its place."""
        limiter = self._context.limiter
        if limiter is not None and self in limiter.statistics().borrowers:
            limiter.release_on_behalf_of(self)

    async def _open(self, tasks: Tasks) -> Outcome:
        """The list of stages that a start is."""
        self._timed_until = trio.current_time()
        if self._context.limiter is not None:
            await self._context.limiter.acquire_on_behalf_of(self)
        host = self._context.shared.get(
            ProcessHost, lambda: ProcessHost(self._context.service_id, watchdog=self._context.reaper)
        )
        line = self._line
        launch, self._launch = self._launch, None  # it is large, and needed no more
        assert launch is not None
        await line.open(host, launch, tasks)
        self._conversation.advance(LifeEvent.PROCESS_SPAWNED)
        self._timed("spawn")
        outcome = await self._conversation.open(
            Link(connection=line.connection, spawn=tasks.spawn, timed=self._timed)
        )
        if outcome.end is End.UNANSWERED and line.connection.ended.is_set():
            if line.needs_observation:
                assert line.child is not None
                with trio.move_on_after(line.exit_observation_seconds):
                    await line.child.exited.wait()
            outcome = line.silence()
        return outcome

    def _timed(self, what: str) -> None:
        """Note that a part of the start is done; `what` is a field of `Timings`."""
        now = trio.current_time()
        self.seconds[what] = now - self._timed_until
        self._timed_until = now
