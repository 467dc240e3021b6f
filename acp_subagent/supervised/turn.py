"""One turn: from the prompt to the settled result.

Owns the wait for the answer with everything that can end it: the answer, our own intent (a cancel or a
deadline), the end of the stream, an exception of our own. Our intent wins: it is told to the agent, which
then has the cancel grace to answer; after that the turn is over whatever the agent does. What a turn means
is for the conversation to say; what becomes of the child afterwards, for the chain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

import trio

from acp_subagent.seam.activity import Usage
from acp_subagent.seam.content import ContentBlock
from acp_subagent.seam.feed import EventFeed
from acp_subagent.seam.result import SubagentResult
from acp_subagent.supervised.clock import TurnClock
from acp_subagent.supervised.conversation import Conversation, Outcome, TurnRecord
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from acp_subagent.supervised.line import Line
from acp_subagent.supervised.settings import TurnSettings
from acp_subagent.supervised.tasks import Tasks

if TYPE_CHECKING:
    from acp_subagent.seam.events import Snapshot

_log = logging.getLogger("acp_subagent.supervised")


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
        self._line: Line | None = None
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
        self.concluded = False  #: it is known how the turn ended
        self.settled = trio.Event()  #: the result is there
        self._abort_scope = trio.CancelScope()  # holds the task that heeds the caller's abort event
        self.result: SubagentResult | None = None

    # -- what the conversation says (TurnPort)

    @property
    def begun(self) -> bool:
        """Whether what the child says belongs to the turn already."""
        return self.record is not None

    @property
    def ending(self) -> bool:
        """Whether the turn is being cancelled."""
        return self.intent is not None

    def answered(self, outcome: Outcome) -> None:
        """The first outcome counts; an answer that comes after the turn was given up does not."""
        if self._answer is None and not self.concluded:
            if self.abort is not None and self.abort.is_set():
                self.cancel()  # it was set before this, and the task that heeds it has not come to run
            self._answer = outcome
            self.poke()

    def poke(self) -> None:
        """Let the wait look again at what it waits for."""
        self._woken.set()

    def pause(self) -> None:
        """Let the idle deadline stand still; pauses nest."""
        self._listen()
        self._clock.pause(trio.current_time())
        self.poke()

    def unpause(self) -> None:
        """End one pause."""
        self._listen()
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

    def heed_abort(self, tasks: Tasks, cancel: Callable[[Turn], None]) -> None:
        """Let the caller's abort event, if there is one, cancel the turn until it has settled."""
        abort = self.abort
        if abort is None:
            return

        async def wait() -> None:
            with self._abort_scope:
                await abort.wait()
                cancel(self)

        tasks.spawn(wait)

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
            self.settled.set()  # first: whatever else goes wrong, nobody waits for ever
            self._abort_scope.cancel()
            try:
                self.feed.close()
            finally:
                self._call_back(result)

    def _call_back(self, result: SubagentResult) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(result)
            except Exception as exc:  # noqa: BLE001  a host's callback must not harm a run
                _log.warning("a callback for a settled run raised %s", type(exc).__name__)

    def tell_stage(self) -> None:
        """Let the turn's events say which stage is reached now."""
        from acp_subagent.seam.events import StageChanged  # noqa: PLC0415  start-up time, see `seam.feed`

        self.feed.put(StageChanged(self._conversation.stage))

    def snapshot(self) -> Snapshot:
        """The turn so far."""
        from acp_subagent.seam.events import Snapshot  # noqa: PLC0415  start-up time, see `seam.feed`

        if self.record is None:
            return Snapshot(self._conversation.stage, (), (), (), Usage())
        return self.record.snapshot(self._conversation.stage)

    # -- the wait

    async def converse(self, line: Line, *, when_ending: Callable[[], None]) -> Outcome:
        """Send the prompt and wait until it is known how the turn ends.

        `when_ending` is called when the agent was told to stop: from then on `hurry` has something to cut
        short.
        """
        self._line = line
        if self.intent is None:
            started = trio.current_time()
            self.dispatched = True
            self._conversation.prompt(self._blocks)
            await self._wait(until_intent=True, ends_at=inf)
            if self._answer is None:
                self._conversation.cancel_turn()
                when_ending()
                grace_ends = trio.current_time() + self._settings.cancel_grace_seconds
                await self._wait(until_intent=False, ends_at=grace_ends)
            outcome = self._answer or Outcome(end=End.UNANSWERED)
            if outcome.end is End.UNANSWERED and line.connection.ended.is_set():
                outcome = await self._explain_silence(line)
            self.seconds = trio.current_time() - started
        else:
            outcome = Outcome(end=End.UNANSWERED)
        outcome.intent, outcome.deadline = self.intent, self.deadline
        self.concluded = True
        return outcome

    async def _wait(self, *, until_intent: bool, ends_at: float) -> None:
        """Wait for the answer or the end of the stream, and for our intent if it is to end the wait."""
        while self._answer is None and not (until_intent and self.intent is not None):
            deadline, name = ends_at, None
            if until_intent:
                self._listen()
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

    def _listen(self) -> None:
        """Tell the clock when the agent was last heard of."""
        if self._line is not None:
            self._clock.heard(self._line.connection.last_inbound)

    async def _explain_silence(self, line: Line) -> Outcome:
        """The stream is over without an answer: say why, after a bounded look at the child's exit."""
        with trio.move_on_after(line.exit_observation_seconds):
            while line.needs_observation and self.intent is None:
                self._woken = trio.Event()
                await self._woken.wait()
        return line.silence()

    def _intend(self, intent: Intent) -> None:
        # The end of the stream is no answer: the exit may still be waited for, and that wait ends too.
        answered = self._answer is not None and self._answer.end is not End.UNANSWERED
        if self.intent is None and not answered and not self.concluded:
            self.intent = intent
            self.feed.lift()
            self.poke()
