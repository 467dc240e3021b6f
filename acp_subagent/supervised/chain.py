"""The whole life of one child and the chain of runs that use it, read from top to bottom in `Chain._live`.

Owns the nursery of the child's tasks, the order of things (spawn, handshake, publication, turns, ladder),
and what becomes of everything that can interrupt it. The nursery is shielded: a cancellation from outside
becomes our own intent, so that the answers, the drains and the ladder outlive it. Nothing here lets an
exception reach a nursery: it is kept as data and becomes the outcome of a start or of a turn.
What is said to the child is the conversation's business; what a turn waits for, the turn's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from acp_subagent.process.launch import LaunchSpec
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.conversation import Conversation, LifeEvent, Outcome
from acp_subagent.supervised.ending import End, Intent
from acp_subagent.supervised.hurry import Hurry
from acp_subagent.supervised.ladder import NOTHING_ENDED, Ladder
from acp_subagent.supervised.line import Line
from acp_subagent.supervised.opening import Opening
from acp_subagent.supervised.reporting import bare_result, barest_result, describe, why_not_ready
from acp_subagent.supervised.settings import ChainSettings
from acp_subagent.supervised.tasks import Tasks, contained, outlast, plain
from acp_subagent.supervised.turn import Turn

if TYPE_CHECKING:
    from acp_subagent.seam.result import Failure
    from acp_subagent.supervised.verdicts import Verdict

_log = logging.getLogger("acp_subagent.supervised")


class Chain:
    """One child and its runs."""

    def __init__(
        self,
        *,
        launch: LaunchSpec,
        conversation: Conversation,
        first_turn: Turn,
        context: StartContext,
        settings: ChainSettings,
    ) -> None:
        self._settings = settings
        self._context = context
        self._ends_once_open = False  # it is an errand: there will be no turn
        self._open = False  # the conversation did what it was to do before the first turn
        self._published = False
        self._failed = False  # the child cannot be used any more
        self._started = trio.Event()  # published, or over
        self._called = trio.Event()  # between two turns: there is another one, or the ladder is wanted
        self._ladder_wanted = trio.Event()
        self._disposed = trio.Event()
        self._conclusion: tuple[Verdict, Failure | None] | None = None  # of a turn, until it settles
        self._start_failure: Failure | None = None
        self._teardown_seconds: float | None = None
        self.conversation = conversation
        self.turn = first_turn  #: the latest turn
        self._line = Line(
            conversation,
            lambda: self.turn,
            on_end=self._line_ended,
            limits=settings.wire,
            exit_observation_seconds=settings.turn.exit_observation_seconds,
            wire_log=settings.wire_log,
        )
        self._opening = Opening(
            self._line, conversation, launch=launch, context=context, ends_at=settings.startup_ends_at
        )
        self._ladder = Ladder(self._line, conversation)
        self._hurry = Hurry(context.hurry, seconds=context.hurry_seconds)
        self._tasks = Tasks(self._come_down)

    # -- what runs and their callers ask for

    async def start(self) -> None:
        """Bring the child to the point where the first prompt can be sent; then the chain lives on its own.

        Returns without another checkpoint when that point is reached. Raises what a failed start raises,
        after whatever was spawned has been ended.
        """
        await self._come_up()
        if not self._published or self._disposed.is_set():
            await self._raise_what_prevented_it()

    async def do_errand(self) -> None:
        """Let the conversation do what its `open` does, and end the child.

        Raises what `start` raises, and `SubagentTeardownError` when that was all that went wrong.
        """
        self._ends_once_open = True
        await self._come_up()
        if not self._open or self._ladder.error is not None:
            await self._raise_what_prevented_it()

    @property
    def usable(self) -> bool:
        """Whether another prompt can be sent, now or when the present turn has settled."""
        return self._published and not (self._failed or self._ladder_wanted.is_set())

    @trio.lowlevel.enable_ki_protection
    def cancel(self, turn: Turn) -> None:
        """End `turn` by our own intent; a start that is still under way ends with it."""
        turn.cancel()
        if not self._published:
            self._opening.cancel()

    @trio.lowlevel.enable_ki_protection
    async def dispose(self) -> TeardownReport:
        """End the child, and the turn that is under way; the same report or error for every caller.

        A cancellation does not cut it short; it only begins the time that is left to hurry.
        """
        self._end()
        ours = self._tasks.include_caller()
        await outlast(self._disposed, when_cancelled=lambda: None if ours else self._hurry.soon())
        if self._ladder.error is not None:
            raise self._ladder.error.with_traceback(None)
        return self._ladder.report or NOTHING_ENDED

    @trio.lowlevel.enable_ki_protection
    def begin(self, turn: Turn) -> None:
        """Let another turn begin; its prompt is sent as soon as the calling task has let go."""
        self.turn = turn
        self._called.set()
        turn.heed_abort(self._tasks, self.cancel)

    # -- the life of the child

    async def _come_up(self) -> None:
        """Let the child's life begin, and wait until it is published or over."""
        self._context.nursery.start_soon(self._serve)
        await outlast(self._started, when_cancelled=self._end_soon)

    @trio.lowlevel.enable_ki_protection
    def _end_soon(self) -> None:
        """Come to an end, wherever we are, and in the time that is left after a cancellation."""
        self._hurry.soon()
        self._end()

    @trio.lowlevel.enable_ki_protection
    def _end(self) -> None:
        self.cancel(self.turn)
        self._want_ladder()

    def _want_ladder(self) -> None:
        self._ladder_wanted.set()
        self._called.set()

    @trio.lowlevel.enable_ki_protection
    async def _serve(self) -> None:
        crash: BaseException | None = None
        # The service is closed, or cancelled: we come to our end.
        with self._context.cancellation.tell(self._end), trio.CancelScope(shield=True):
            try:
                await self._live()
            except BaseException as exc:  # noqa: BLE001  only a handler of the host that leaves the program
                crash = plain(exc)
                await self._collapse(crash)
            finally:
                self._started.set()
        if crash is not None and not isinstance(crash, Exception):
            raise crash

    async def _live(self) -> None:
        async with trio.open_nursery() as nursery:
            self._tasks.run_in(nursery)
            self.turn.heed_abort(self._tasks, self.cancel)
            self._open = await self._start()
            if self._open and not self._ends_once_open:
                await self._publish()
                await self._serve_turns()
            await self._tear_down()
            nursery.cancel_scope.cancel()
        self._line.close()

    async def _publish(self) -> None:
        """Let the caller of `start` have the run, and do with it what it does at once."""
        self._published = True
        self._started.set()
        if self._line.connection.ended.is_set():
            self._line_ended()
        # The caller runs in the next tick, before anything can be read: what it subscribes to there sees
        # every event of the turn. What it cancels there is told in the tick after that, before the prompt.
        for _ in range(3):
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _start(self) -> bool:
        """Whether a prompt can be sent; if not, why is kept for the caller of `start`."""
        outcome = await self._opening.run(self._tasks, lambda: self.turn.intent)
        if self._opening.refusal is not None or outcome.intent is Intent.CANCELLED:
            return False
        if outcome.intent is None and outcome.end is End.ANSWERED:
            return True
        verdict = self.conversation.classify(outcome)
        self._start_failure = self._describe(verdict, outcome, dispatched=False)
        self._fail()
        return False

    async def _serve_turns(self) -> None:
        """One turn after the other, until the ladder is wanted; of a one-shot run there is one."""
        while not self.turn.settled.is_set():
            await self._tasks.perform(self._serve_turn)
            if self._context.one_shot:
                break
            while self.turn.settled.is_set() and not (self._failed or self._ladder_wanted.is_set()):
                self._called = trio.Event()
                await self._called.wait()
        self._ladder_wanted.set()

    async def _serve_turn(self) -> None:
        turn = self.turn
        try:
            # Whoever subscribed before the first checkpoint has done so by now.
            turn.tell_stage()
            turn.begin()
            turn.feed.flush(self._line.connection.received_bytes)
            outcome = await turn.converse(self._line, when_ending=self._expect_hurry)
        except Exception as exc:  # noqa: BLE001  becomes the outcome of the turn
            outcome = Outcome(end=End.UNEXPECTED, cause=exc, intent=turn.intent, deadline=turn.deadline)
            turn.concluded = True
        verdict = self.conversation.classify(outcome)
        failure = self._describe(verdict, outcome, dispatched=turn.dispatched)
        self._conclusion = verdict, failure
        usable = not turn.dispatched or outcome.end in {End.ANSWERED, End.RPC_ERROR}
        if not usable:
            self._fail()
        if self._context.one_shot:
            return  # it settles when the child has gone
        if usable:
            # What the agent says right after its answer still belongs to this turn.
            with trio.move_on_after(self._settings.settle_grace_seconds):
                await self._ladder_wanted.wait()
        self._settle()

    def _settle(self) -> None:
        """Make the result of a turn that has been concluded final, from what is known now."""
        if self._conclusion is None:
            return
        turn, (verdict, failure), self._conclusion = self.turn, self._conclusion, None
        seconds = {**self._opening.seconds, "turn": turn.seconds, "teardown": self._teardown_seconds}
        result = bare_result(verdict, failure, self.conversation.session, seconds, self._ladder.report)
        if turn.record is not None:
            result = turn.record.fill(result)
        self.conversation.end_turn()
        turn.settle(result)

    async def _tear_down(self) -> None:
        """Take leave of the agent, and end its process tree."""
        self.turn.feed.lift()  # nobody is waited for any more
        began = trio.current_time()
        if self._ladder.takes_leave and not self._hurry.begun:
            self._expect_hurry()
            await self._ladder.take_leave()
        if not self._failed:
            self._ladder.advance(LifeEvent.DISPOSED)
        if self.turn.begun:
            self.turn.tell_stage()
            self.turn.feed.flush()
        await self._ladder.climb(self._hurry)
        self._teardown_seconds = trio.current_time() - began
        if self._ladder.error is not None:
            self._context.report(self._ladder.error.failure)
        self._opening.give_place_back()
        self._tasks.call(self._settle)
        if self._ladder.error is not None:
            self._ladder.error.result = self.turn.result
        self._disposed.set()

    # -- what goes on beside it

    def _expect_hurry(self) -> None:
        """Something is being ended politely: be there when the time for that is over."""
        self._hurry.expect(self._tasks, self._cut_short)

    def _cut_short(self) -> None:
        self._ladder.hurry()
        self.turn.hurry()

    def _line_ended(self) -> None:
        """Nothing more comes from the child: the turn that is under way will have no answer."""
        if not self._published:
            return  # the opening has noticed
        if self.turn.begun:
            self.turn.feed.flush()
        # The prompt's waiter has been told already, unless that is what raised.
        self.turn.answered(Outcome(end=End.UNANSWERED))
        if not self._ladder_wanted.is_set():
            self._tasks.spawn(self._give_up_child)

    async def _give_up_child(self) -> None:
        """Once the line is dead, the child is of no more use."""
        while not self.turn.settled.is_set():
            self.turn.answered(Outcome(end=End.UNANSWERED))
            await self.turn.settled.wait()
        self._fail()
        self._want_ladder()

    def _fail(self) -> None:
        """The child cannot be used any more."""
        if not self._failed and not self._ladder_wanted.is_set():
            self._failed = True
            self._ladder.advance(LifeEvent.RUN_FAILED)

    def _describe(self, verdict: Verdict, outcome: Outcome, *, dispatched: bool) -> Failure | None:
        """The failure record, told to the host; None when nothing failed."""
        failure = describe(self.conversation, verdict, outcome, line=self._line, dispatched=dispatched)
        if failure is not None:
            self._context.report(failure)
        return failure

    async def _raise_what_prevented_it(self) -> None:
        """Raise why there is no ready run; a cancellation comes before our own intent."""
        refusal, failure = self._opening.refusal, self._start_failure
        if refusal is None and failure is None:
            await trio.lowlevel.checkpoint_if_cancelled()
        closed = self._context.closing.is_set()
        raise why_not_ready(refusal, failure, self._ladder.error, service_closed=closed)

    def _come_down(self, crash: BaseException) -> None:
        """A bug of ours has ended a task: the start or the turn that is under way ends with it."""
        self._opening.crash(crash)
        outcome = Outcome(end=End.UNEXPECTED, cause=crash)
        self.turn.answered(outcome)
        if self.turn.concluded and not self.turn.settled.is_set():
            dispatched = self.turn.dispatched
            self.turn.settle(barest_result(self.conversation, outcome, self._describe, dispatched=dispatched))
        self._fail()
        self._want_ladder()

    async def _collapse(self, crash: BaseException) -> None:
        """Our nursery has broken down: end what it held, and let nobody wait for ever."""
        self.turn.concluded = True
        self._hurry.begin()
        _log.error("the tasks of a run broke down: %s", type(crash).__name__)
        try:
            with contained("settling a run that broke down"):
                self._come_down(crash)
        finally:
            await self._ladder.climb(self._hurry)
            self._disposed.set()  # at once: whatever else goes wrong, nobody waits for ever
            self._opening.give_place_back()
            with contained("closing the line of a run that broke down"):
                self._line.close()
