"""The whole life of one child and the chain of runs that use it, read from top to bottom in `Chain._live`.

Owns the nursery of the child's tasks, the order of things (spawn, handshake, publication, turns, ladder),
and what becomes of everything that can interrupt it. The nursery is shielded: a cancellation from outside
becomes our own intent, so that the answers, the drains and the ladder outlive it. Nothing here lets an
exception reach a nursery: it is kept as data and becomes the outcome of a start or of a turn.

What is said to the child is the conversation's business; what a turn waits for, the turn's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import trio

from acp_subagent.errors import (
    SpawnError,
    SubagentAbortedError,
    SubagentTeardownError,
    UnsupportedCapabilityError,
)
from acp_subagent.process.child import Child
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.seam.events import StageChanged
from acp_subagent.seam.result import Failure, SubagentResult, SubagentStopReason, Timings
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.conversation import Conversation, LifeEvent, Link, Outcome, Verdict
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from acp_subagent.supervised.reporting import describe, log_teardown, start_error, teardown_error
from acp_subagent.supervised.stderr import StderrLines
from acp_subagent.supervised.turn import Turn, TurnSettings, needs_observation, silence
from acp_subagent.wire.connection import Connection, WireLimits
from acp_subagent.wire.log import WireLog

_log = logging.getLogger("acp_subagent.supervised")

#: The report of a ladder that had nothing to end.
NOTHING_ENDED = TeardownReport(rungs={}, processes_found=0, survivors=0, exit_status=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings:
    """The limits of one child that hold for all its runs."""

    turn: TurnSettings
    wire: WireLimits
    startup_ends_at: float  #: on trio's clock; `inf` for no limit
    settle_grace_seconds: float
    wire_log: str | None = None  #: absolute path of the log of every frame; None for no log


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
        self._launch = launch
        self._settings = settings
        self._context = context
        self._nursery: trio.Nursery | None = None
        self._connection: Connection | None = None
        self._child: Child | None = None
        self._wire_log: WireLog | None = None
        self._startup_scope = trio.CancelScope(deadline=settings.startup_ends_at)
        self._hurry_scope = trio.CancelScope()
        self._hurry = trio.Event()
        self._published = False
        self._failed = False  # the child cannot be used any more
        self._cancelled_outside = False
        self._ladder_wanted = trio.Event()
        self._ladder_ended = trio.Event()
        self._disposed = trio.Event()
        self._report: TeardownReport | None = None
        self._teardown_error: SubagentTeardownError | None = None
        self._start_failure: Failure | None = None
        self._refusal: UnsupportedCapabilityError | None = None
        self._broken: Exception | None = None  # what a task of ours raised
        self._timings = Timings()
        self._timed_until = 0.0
        self.conversation = conversation
        self.turn = first_turn  #: the latest turn

    # -- what runs and their callers ask for

    async def start(self) -> None:
        """Bring the child to the point where the first prompt can be sent; then the chain lives on its own.

        Returns without another checkpoint when that point is reached. Raises what a failed start raises,
        after whatever was spawned has been ended.
        """
        await self._context.nursery.start(self._serve)
        if self._published and not self._disposed.is_set():
            return
        if self._cancelled_outside:
            await trio.lowlevel.checkpoint_if_cancelled()
        raise self._start_exception()

    @property
    def usable(self) -> bool:
        """Whether another prompt can be sent, now or when the present turn has settled."""
        return self._published and not (self._failed or self._ladder_wanted.is_set())

    def cancel(self, turn: Turn) -> None:
        """End `turn` by our own intent; a start that is still under way ends with it."""
        turn.cancel()
        if not self._published:
            self._startup_scope.cancel()

    async def dispose(self) -> TeardownReport:
        """End the child, and the turn that is under way; the same report or error for every caller."""
        self._ladder_wanted.set()
        with trio.CancelScope(shield=True):
            await self._disposed.wait()
        if self._teardown_error is not None:
            raise self._teardown_error.with_traceback(None)
        return self._report or NOTHING_ENDED

    def begin(self, turn: Turn) -> None:
        """Let another turn begin; its prompt is sent as soon as the calling task has let go."""
        self._begin(turn)
        if turn.abort is not None:
            self._spawn(lambda: self._heed_abort(turn))

    # -- the life of the child

    @trio.lowlevel.enable_ki_protection
    async def _serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as outside:
            outside.start_soon(self._heed_cancellation)
            with trio.CancelScope(shield=True):
                await self._live(task_status)
            outside.cancel_scope.cancel()
        if not self._published:
            task_status.started()

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._spawn(self._heed_hurry)
            if self.turn.abort is not None:
                self._spawn(lambda: self._heed_abort(self.turn))
            if await self._start():
                self._published = True
                task_status.started()
                # The caller runs in the next tick, before anything can be read: what it subscribes to there
                # sees every event of the turn. One tick more lets a cancellation that came in this very tick
                # be noticed: the prompt must not be sent then.
                await trio.lowlevel.cancel_shielded_checkpoint()
                await trio.lowlevel.cancel_shielded_checkpoint()
                self._begin(self.turn)
                await self._ladder_wanted.wait()
            await self._tear_down()
            nursery.cancel_scope.cancel()
        if self._child is not None:
            self._child.stdout.close()
        if self._wire_log is not None:
            self._wire_log.close()

    async def _start(self) -> bool:
        """Whether a prompt can be sent; if not, why is kept for the caller of `start`."""
        outcome = Outcome(end=End.UNANSWERED)
        try:
            with self._startup_scope:
                outcome = await self._open()
        except UnsupportedCapabilityError as exc:
            self._refusal = exc.with_traceback(None)
            return False
        except SpawnError as exc:
            outcome = Outcome(end=End.NOT_SPAWNED, reason=exc.reason, cause=exc.cause or exc)
        except Exception as exc:  # noqa: BLE001  becomes the outcome of the start
            outcome = Outcome(end=End.UNEXPECTED, cause=exc)
        # A cancellation that has come already must be noticed before the run is published.
        await trio.lowlevel.cancel_shielded_checkpoint()
        if self._broken is not None:
            outcome = Outcome(end=End.UNEXPECTED, cause=self._broken)
        outcome.intent = self.turn.intent
        expired = self._startup_scope.cancelled_caught and outcome.end is not End.UNEXPECTED
        if outcome.intent is None and expired:
            outcome.intent, outcome.deadline = Intent.DEADLINE, DeadlineName.STARTUP
        if outcome.intent is None and outcome.end is End.ANSWERED:
            return True
        if outcome.intent is not Intent.CANCELLED:
            verdict = self.conversation.classify(outcome)
            self._start_failure = self._describe(verdict, outcome, dispatched=False)
            self._fail()
        return False

    async def _open(self) -> Outcome:
        """Spawn the child and open its session, as the list of stages that it is."""
        self._timed_until = trio.current_time()
        if self._context.limiter is not None:
            await self._context.limiter.acquire_on_behalf_of(self)
        host = self._context.shared.get(
            ProcessHost, lambda: ProcessHost(self._context.service_id, watchdog=self._context.reaper)
        )
        assert self._nursery is not None
        stderr = StderrLines(lambda: self.turn.feed)
        self._child = child = await host.spawn(self._launch, self._nursery, on_stderr=stderr.feed)
        self.conversation.advance(LifeEvent.PROCESS_SPAWNED)
        self._timed("spawn")
        if self._settings.wire_log is not None:
            self._wire_log = WireLog(self._settings.wire_log, child=child.pid)
        self._connection = connection = Connection(
            child.stdout,
            child.stdin,
            self.conversation,
            self._settings.wire,
            tap=None if self._wire_log is None else self._wire_log.tap,
            before_read=self,
        )
        for task in (
            connection.read,
            connection.write,
            self._watch_child,
            self._watch_wire,
            self._watch_writer,
        ):
            self._spawn(task)
        link = Link(connection=connection, spawn=self._spawn, timed=self._timed)
        outcome = await self.conversation.open(link)
        if outcome.end is End.UNANSWERED and connection.ended.is_set():
            if needs_observation(connection, child):
                with trio.move_on_after(self._settings.turn.exit_observation_seconds):
                    await child.exited.wait()
            outcome = silence(connection, child)
        return outcome

    def _begin(self, turn: Turn) -> None:
        self.turn = turn
        turn.begin()
        turn.feed.put(StageChanged(self.conversation.stage))
        self._spawn(lambda: self._serve_turn(turn))

    async def _serve_turn(self, turn: Turn) -> None:
        assert self._connection is not None
        assert self._child is not None
        try:
            outcome = await turn.converse(self._connection, self._child)
        except Exception as exc:  # noqa: BLE001  becomes the outcome of the turn
            outcome = Outcome(end=End.UNEXPECTED, cause=exc, intent=turn.intent, deadline=turn.deadline)
            turn.concluded.set()
        verdict = self.conversation.classify(outcome)
        failure = self._describe(verdict, outcome, dispatched=turn.dispatched)
        if turn.dispatched and outcome.end not in {End.ANSWERED, End.RPC_ERROR}:
            self._fail()
        elif not self._context.one_shot:
            # What the agent says right after its answer still belongs to this turn.
            with trio.move_on_after(self._settings.settle_grace_seconds):
                await self._ladder_wanted.wait()
        if self._context.one_shot:
            self._ladder_wanted.set()
            await self._ladder_ended.wait()
        self._settle(turn, verdict, failure)
        if self._failed:
            self._ladder_wanted.set()

    def _settle(self, turn: Turn, verdict: Verdict, failure: Failure | None) -> None:
        """Make the result final, from what is known now."""
        result = SubagentResult(
            stop_reason=verdict.stop_reason,
            diagnostic=verdict.diagnostic,
            failure=failure,
            session=self.conversation.session,
            timings=replace(self._timings, turn=turn.seconds),
            teardown=self._report,
            exit_status=None if self._report is None else self._report.exit_status,
        )
        if turn.record is not None:
            result = turn.record.fill(result)
        self.conversation.end_turn()
        turn.settle(result)
        if self._teardown_error is not None:
            self._teardown_error.result = result

    async def _tear_down(self) -> None:
        """End the turn that is under way, take leave of the agent, and end its process tree."""
        if self._published:
            self.cancel(self.turn)
            await (self.turn.concluded if self._context.one_shot else self.turn.settled).wait()
        began = trio.current_time()
        try:
            await self._end_child()
        except Exception as exc:  # noqa: BLE001  the ladder must come to its end, whatever happens
            _log.error("teardown raised %s", type(exc).__name__)
            self._report = replace(self._report or NOTHING_ENDED, failed=True)
        self._timings = replace(self._timings, teardown=trio.current_time() - began)
        if self._report is not None:
            log_teardown(self._child, self._report)
            self._teardown_error = teardown_error(self.conversation, self._report, self._child)
        if self._teardown_error is not None:
            self._context.report(self._teardown_error.failure)
        if self._context.limiter is not None and self in self._context.limiter.statistics().borrowers:
            self._context.limiter.release_on_behalf_of(self)
        self._ladder_ended.set()
        if self._published:
            await self.turn.settled.wait()
            if self._teardown_error is not None:
                self._teardown_error.result = self.turn.result
        self._disposed.set()

    async def _end_child(self) -> None:
        if self._child is not None and not (self._failed or self._hurry.is_set()):
            await self.conversation.close()
        if not self._failed:
            self.conversation.advance(LifeEvent.DISPOSED)
        if self.turn.record is not None:
            self.turn.feed.put(StageChanged(self.conversation.stage))
            self.turn.feed.flush()
        if self._child is not None:
            self._report = await self._child.end_tree(hurry=self._hurry)
        self.conversation.advance(LifeEvent.LADDER_ENDED)

    # -- what goes on beside it

    async def _heed_cancellation(self) -> None:
        """The one task outside the shield: turns a cancellation into our own intent."""
        try:
            await trio.sleep_forever()
        finally:
            if not self._disposed.is_set():
                if not self._context.closing.is_set():
                    self._cancelled_outside = True
                    if self._context.hurry_seconds is not None:
                        self._hurry_scope.deadline = trio.current_time() + self._context.hurry_seconds
                self.cancel(self.turn)
                self._ladder_wanted.set()

    async def _heed_hurry(self) -> None:
        with self._hurry_scope:
            await self._context.hurry.wait()
        self._hurry.set()
        self.turn.hurry()

    async def _heed_abort(self, turn: Turn) -> None:
        assert turn.abort is not None
        with turn.abort_scope:
            await turn.abort.wait()
            self.cancel(turn)

    async def _watch_child(self) -> None:
        """The leader's exit ends the conversation, whoever still holds its stdout."""
        assert self._child is not None
        assert self._connection is not None
        await self._child.exited.wait()
        self._connection.stop()
        self.turn.poke()

    async def _watch_writer(self) -> None:
        """A broken pipe to the child ends the conversation, once what it may have said was waited for."""
        assert self._connection is not None
        await self._connection.write_broken.wait()
        with trio.move_on_after(self._settings.turn.exit_observation_seconds):
            await self._connection.ended.wait()
        self._connection.stop()

    async def _watch_wire(self) -> None:
        """Once the conversation has ended, the child is of no more use."""
        assert self._connection is not None
        await self._connection.ended.wait()
        if self.turn.record is not None:
            self.turn.feed.flush()
        while not self.turn.settled.is_set():
            # The prompt's waiter has been told already, unless that is what raised.
            self.turn.answered(Outcome(end=End.UNANSWERED))
            await self.turn.settled.wait()
        self._fail()
        self._ladder_wanted.set()

    # -- back-pressure of the reader (wire.connection.BackPressure)

    @property
    def ready(self) -> bool:
        """Asked between reads: hand out the events of the last one; may the reader go on?"""
        if self.turn.record is None:
            return True
        self.turn.feed.flush()
        return not self.turn.feed.behind

    async def wait(self) -> None:
        """Wait, for a bounded time, until the subscribers have caught up."""
        turn = self.turn
        turn.pause()
        try:
            await turn.feed.wait_for_room()
        finally:
            turn.unpause()

    # -- small things

    def _fail(self) -> None:
        """The child cannot be used any more."""
        if not self._failed and not self._ladder_wanted.is_set():
            self._failed = True
            self.conversation.advance(LifeEvent.RUN_FAILED)

    def _describe(self, verdict: Verdict, outcome: Outcome, *, dispatched: bool) -> Failure | None:
        """The failure record, told to the host; None when nothing failed."""
        failure = describe(
            self.conversation,
            verdict,
            outcome,
            child=self._child,
            connection=self._connection,
            dispatched=dispatched,
        )
        if failure is not None:
            self._context.report(failure)
        return failure

    def _start_exception(self) -> Exception:
        if self._refusal is not None:
            if self._teardown_error is not None:
                self._refusal.add_note(str(self._teardown_error))
            return self._refusal
        if self._start_failure is not None:
            return start_error(self._start_failure, self._teardown_error)
        return self._teardown_error or SubagentAbortedError()

    def _timed(self, what: str) -> None:
        """Note that a part of the start is done; `what` is a field of `Timings`."""
        now = trio.current_time()
        self._timings = replace(self._timings, **{what: now - self._timed_until})
        self._timed_until = now

    def _spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(self._contained, task)

    @trio.lowlevel.enable_ki_protection
    async def _contained(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run one task of this child; what it raises ends this chain and nothing else."""
        try:
            await task()
        except Exception as exc:  # noqa: BLE001  no task of ours lets an exception reach a nursery
            _log.error("a task of a run raised %s", type(exc).__name__)
            self._broken = exc
            outcome = Outcome(end=End.UNEXPECTED, cause=exc)
            self.turn.answered(outcome)
            self._startup_scope.cancel()
            if self.turn.concluded.is_set() and not self.turn.settled.is_set():
                self._settle_bare(outcome)
            self._fail()
            self._ladder_wanted.set()

    def _settle_bare(self, outcome: Outcome) -> None:
        """Settle the turn without what it brought: gathering that is what may have failed."""
        result = SubagentResult(stop_reason=SubagentStopReason.ERROR)
        try:
            verdict = self.conversation.classify(outcome)
            failure = self._describe(verdict, outcome, dispatched=self.turn.dispatched)
            result = replace(result, diagnostic=verdict.diagnostic, failure=failure)
        except Exception as exc:  # noqa: BLE001  then there is nothing more to say
            _log.error("the end of a run cannot be told: %s", type(exc).__name__)
        self.turn.settle(result)
