"""Which came first, our own intent or the answer: played to a turn, deed by deed."""

from __future__ import annotations

from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from acp_subagent.supervised.clock import TurnLimits
from acp_subagent.supervised.conversation import Conversation, Outcome
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from acp_subagent.supervised.line import Line
from acp_subagent.supervised.settings import TurnSettings
from acp_subagent.supervised.tasks import Tasks
from acp_subagent.supervised.turn import Turn
from tests.supervised.moments import MOMENTS, Moment

SETTINGS = TurnSettings(
    limits=TurnLimits(turn_seconds=100, idle_seconds=None, tool_idle_seconds=None),
    cancel_grace_seconds=10,
    exit_observation_seconds=10,
    event_buffer_events=10,
    subscriber_stall_seconds=10,
)


class Silent:
    """Both the conversation and the line of a turn: nothing happens but what a test does."""

    def __init__(self) -> None:
        self.connection = self
        self.last_inbound = 0.0
        self.ended = trio.Event()
        self.exit_observation_seconds = SETTINGS.exit_observation_seconds
        self.needs_observation = True
        self.told: list[str] = []

    def prompt(self, _: object) -> None:
        self.told.append("prompt")

    def cancel_turn(self) -> None:
        self.told.append("cancel")

    def silence(self) -> Outcome:
        return Outcome(end=End.STREAM_ENDED)


class Play:
    """A turn that is under way, and what can happen to it."""

    def __init__(self) -> None:
        self.silent: Any = Silent()
        self.abort = trio.Event()
        self.turn = Turn(cast("Conversation", self.silent), (), SETTINGS, abort=self.abort)
        self.outcome: Outcome | None = None
        self.over = trio.Event()
        self.crashes: list[Exception] = []
        self.told_when_ending: list[list[str]] = []

    async def run(self, deeds: tuple[str, ...], end: End) -> Outcome:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._converse)
            tasks = Tasks(on_crash=self.crashes.append)
            tasks.run_in(nursery)
            self.turn.heed_abort(tasks, Turn.cancel)
            for deed in deeds:
                if deed == "pass":
                    await wait_all_tasks_blocked()
                elif deed == "answer":
                    self.turn.answered(Outcome(end=end))
                elif deed == "abort":
                    self.abort.set()
                else:
                    self.turn.cancel()
            await self.over.wait()
            nursery.cancel_scope.cancel()
        assert self.crashes == []
        assert self.outcome is not None
        return self.outcome

    async def _converse(self) -> None:
        self.outcome = await self.turn.converse(
            cast("Line", self.silent),
            when_ending=lambda: self.told_when_ending.append(self.silent.told.copy()),
        )
        self.over.set()


@pytest.mark.parametrize("end", [End.ANSWERED, End.RPC_ERROR, End.MALFORMED, End.UNEXPECTED])
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.name)
async def test_what_came_first_counts_and_a_cancel_of_the_same_instant_does(
    moment: Moment, end: End, autojump_clock: object
) -> None:
    play = Play()
    outcome = await play.run(moment.deeds, end)
    assert (outcome.end, outcome.intent) == (end, moment.intent)
    # Whoever is still waited for is told; an agent that has answered is not.
    told_before = moment.intent is not None and "pass" in moment.deeds[2:]
    assert play.silent.told == ["prompt", *(["cancel"] if told_before else [])]
    assert play.told_when_ending == ([["prompt", "cancel"]] if told_before else [])


async def test_a_cancel_ends_the_look_for_an_exit_after_the_stream_has_ended(autojump_clock: object) -> None:
    play = Play()
    play.silent.ended.set()
    began = trio.current_time()
    outcome = await play.run(("pass", "answer", "pass", "cancel"), End.UNANSWERED)
    assert (outcome.end, outcome.intent) == (End.STREAM_ENDED, Intent.CANCELLED)
    assert trio.current_time() == began


async def test_a_cancel_after_a_deadline_changes_nothing(autojump_clock: object) -> None:
    play = Play()

    async def cancel_late() -> None:
        await trio.sleep(105)
        play.turn.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_late)
        outcome = await play.run((), End.ANSWERED)
    assert (outcome.intent, outcome.deadline) == (Intent.DEADLINE, DeadlineName.TURN)
