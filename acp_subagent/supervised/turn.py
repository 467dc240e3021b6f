"""One turn: from the prompt to the settled result.

Owns the wait for the answer with everything that can end it: the answer, our own intent (a cancel or a
deadline), the end of the stream, an exception of our own. Our intent wins: it is told to the agent, which
then has the cancel grace to answer; after that the turn is over whatever the agent does. What a turn means
is for the conversation to say; what becomes of the child afterwards, for the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import trio

from acp_subagent.process.child import Child
from acp_subagent.seam.content import ContentBlock
from acp_subagent.seam.events import Snapshot
from acp_subagent.seam.feed import EventFeed
from acp_subagent.seam.result import SubagentResult
from acp_subagent.supervised.clock import TurnClock, TurnLimits
from acp_subagent.supervised.conversation import Conversation, Outcome, TurnRecord
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from acp_subagent.wire.connection import Connection, Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """The limits that hold for a turn, in seconds and events."""

    limits: TurnLimits
    cancel_grace_seconds: float
    exit_observation_seconds: float
    event_buffer_events: int
    subscriber_stall_seconds: float


class Turn:
    """One prompt and what became of it."""

    def __init__(
        self,
        conversation: Conversation,
        blocks: tuple[ContentBlock, ...],
        settings: TurnSettings,
        *,
        abort: trio.Event | None = None,
    ) -> None:
        self._conversation = conversation
        self._blocks = blocks
        self._settings = settings
        self._clock = TurnClock(settings.limits, now=trio.current_time())
        self._answer: Outcome | None = None
        self._woken = trio.Event()
        self._gave_up = False
        self._callbacks: list[Callable[[SubagentResult], None]] = []
        self.abort = abort  #: the caller's event that cancels the turn
        self.record: TurnRecord | None = None
        self.feed = EventFeed(
            buffer_events=settings.event_buffer_events,
            stall_seconds=settings.subscriber_stall_seconds,
            snapshot=self.snapshot,
        )
        self.intent: Intent | None = None  #: our own reason to end the turn
        self.deadline: DeadlineName | None = None  #: which deadline it was
        self.dispatched = False  #: the prompt was handed to the connection
        self.seconds: float | None = None  #: from the prompt to the end of the wait
        self.concluded = trio.Event()  #: it is known how the turn ended
        self.settled = trio.Event()  #: the result is there
        self.abort_scope = trio.CancelScope()  #: holds the task that heeds the caller's abort event
        self.result: SubagentResult | None = None

    # -- what the conversation says (TurnPort)

    @property
    def ending(self) -> bool:
        """Whether the turn is being cancelled."""
        return self.intent is not None

    def answered(self, outcome: Outcome) -> None:
        """The first outcome counts; an answer that comes after the turn was given up does not."""
        if self._answer is None and not self.concluded.is_set():
            self._answer = outcome
            self.poke()

    def poke(self) -> None:
        """Let the wait look again at what it waits for."""
        self._woken.set()

    def pause(self) -> None:
        """Let the idle deadline stand still; pauses nest."""
        self._clock.pause(trio.current_time())
        self.poke()

    def unpause(self) -> None:
        """End one pause."""
        self._clock.unpause(trio.current_time())
        self.poke()

    # -- what the owner says

    def begin(self) -> None:
        """The child is ready for this turn; what it says from now on belongs to it."""
        self._clock = TurnClock(self._settings.limits, now=trio.current_time())
        self.record = self._conversation.begin_turn(self)

    def cancel(self) -> None:
        """End the turn by our own intent; harmless once the agent has answered."""
        self._intend(Intent.CANCELLED)

    def hurry(self) -> None:
        """Do not wait for the agent's answer to a cancel any longer."""
        self._gave_up = True
        self.poke()

    def when_settled(self, callback: Callable[[SubagentResult], None]) -> None:
        """Call `callback` with the result, once."""
        if self.result is not None:
            callback(self.result)
        else:
            self._callbacks.append(callback)

    def settle(self, result: SubagentResult) -> None:
        """The result is final: wake everybody who waits for it."""
        if self.result is None:
            self.result = result
            self.feed.close()
            self.abort_scope.cancel()
            self.settled.set()
            for callback in self._callbacks:
                callback(result)
            self._callbacks.clear()

    def snapshot(self) -> Snapshot:
        """The turn so far."""
        if self.record is None:
            raise RuntimeError("a turn that has not begun has no events")
        return self.record.snapshot(self._conversation.stage)

    # -- the wait

    async def converse(self, connection: Connection, child: Child) -> Outcome:
        """Send the prompt and wait until it is known how the turn ends."""
        if self.intent is None:
            started = trio.current_time()
            self.dispatched = True
            self._conversation.prompt(self._blocks)
            await self._wait(connection, until_intent=True, ends_at=inf)
            if self._answer is None:
                self._conversation.cancel_turn()
                grace_ends = trio.current_time() + self._settings.cancel_grace_seconds
                await self._wait(connection, until_intent=False, ends_at=grace_ends)
            outcome = self._answer or Outcome(end=End.UNANSWERED)
            if outcome.end is End.UNANSWERED and connection.ended.is_set():
                outcome = await self._explain_silence(connection, child)
            self.seconds = trio.current_time() - started
        else:
            outcome = Outcome(end=End.UNANSWERED)
        outcome.intent, outcome.deadline = self.intent, self.deadline
        self.concluded.set()
        return outcome

    async def _wait(self, connection: Connection, *, until_intent: bool, ends_at: float) -> None:
        """Wait for the answer or the end of the stream, and for our intent if it is to end the wait."""
        while self._answer is None and not (until_intent and self.intent is not None):
            deadline, name = ends_at, None
            if until_intent:
                self._clock.heard(connection.last_inbound)
                in_progress = self.record is not None and self.record.tool_in_progress
                deadline, name = self._clock.next_deadline(tool_in_progress=in_progress)
            if deadline <= trio.current_time() or (self._gave_up and not until_intent):
                if name is not None:
                    self.deadline = name
                    self._intend(Intent.DEADLINE)
                return
            self._woken = trio.Event()
            with trio.move_on_at(deadline):
                await self._woken.wait()

    async def _explain_silence(self, connection: Connection, child: Child) -> Outcome:
        """The stream is over without an answer: say why, after a bounded look at the child's exit."""
        with trio.move_on_after(self._settings.exit_observation_seconds):
            while needs_observation(connection, child) and self.intent is None:
                self._woken = trio.Event()
                await self._woken.wait()
        return silence(connection, child)

    def _intend(self, intent: Intent) -> None:
        if self.intent is None and self._answer is None and not self.concluded.is_set():
            self.intent = intent
            self.feed.lift()
            self.poke()


#: Endings of a connection that say by themselves why there will be no answer.
_SELF_EXPLAINING = {
    Ending.FRAME_TOO_LARGE: End.FRAME_TOO_LARGE,
    Ending.NEVER_SPOKE: End.NEVER_SPOKE,
    Ending.WRITE_BLOCKED: End.WRITE_BLOCKED,
    Ending.UNEXPECTED: End.UNEXPECTED,
}


def needs_observation(connection: Connection, child: Child) -> bool:
    """Whether only the child's exit can tell why the stream ended."""
    return child.exit_status is None and connection.ending not in _SELF_EXPLAINING


def silence(connection: Connection, child: Child) -> Outcome:
    """Why a connection that has ended brought no answer. An exit that was seen comes before all else."""
    if child.exit_status is not None and connection.ending is not Ending.UNEXPECTED:
        return Outcome(end=End.EXITED, exit_status=child.exit_status)
    end = End.STREAM_ENDED
    if connection.ending is not None:
        end = _SELF_EXPLAINING.get(connection.ending, End.STREAM_ENDED)
    return Outcome(end=end, cause=connection.error)
