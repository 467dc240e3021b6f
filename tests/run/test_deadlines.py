"""Deadlines at real speed, with real children; at their real length they are tested in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from acp_subagent import Deadlines, SubagentStartError, TextBlock, TextChunk
from tests.run.stage import Stage
from tests.run.waiting import let_pass, methods

HOLDS = [{"text": "so far"}, {"sleep": 30}]


@pytest.mark.parametrize("habit", ["cancelled", "ignore", "end_turn", "error", "exit", "flood", "silent"])
async def test_a_deadline_is_a_timeout_whatever_the_agent_then_does(
    habit: str, stage: Stage, clock: MockClock
) -> None:
    scenario = {"on_cancel": habit, "turns": [HOLDS]}
    async with stage.service(scenario, faulty=True) as subagents:
        request = stage.request(deadlines=Deadlines(turn_seconds=10))
        async with await subagents.start("fake", request) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    break
            clock.jump(10)
            with trio.fail_after(1.0 + 0.5 + 5.0):
                result = await run.result()
    assert result.diagnostic == (
        "Subagent failure (provider: ACP; stage: prompt; category: timeout; reason: turn-deadline)"
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.deadline) == ("timeout", "turn-deadline")
    assert not result.failure.retryable
    # What was said so far counts, and so does what comes in the grace.
    assert result.messages[0] == (TextBlock("so far"),)
    if habit != "flood":
        assert result.text == "so far"
        assert result.messages[1:] == ()
    assert stage.failures == [result.failure]
    assert methods(stage.logs[0][0]).count("session/cancel") == 1


@pytest.mark.parametrize(
    ("scenario", "at"),
    [
        ({"initialize": {"delay_seconds": 30}}, "initialize"),
        ({"start": [{"sleep": 30}]}, "initialize"),
        ({"start": [{"stop_reading": True}], "session_new": {"no_answer": True}}, "initialize"),
        ({"initialize": {"before_answer": [{"stderr": {"text": "e" * 99, "repeat": 9_999}}, {"sleep": 30}]}},
         "initialize"),
    ],
)  # fmt: skip
async def test_a_start_has_one_deadline(scenario: dict[str, Any], at: str, stage: Stage) -> None:
    async with stage.service(scenario, faulty=True) as subagents:
        request = stage.request(deadlines=Deadlines(startup_seconds=1.5))
        with trio.fail_after(15), pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", request)
    assert caught.value.failure.stage == at
    assert caught.value.failure.deadline == "startup-deadline"
    assert "session/prompt" not in methods(stage.logs[0][0])


async def test_a_session_that_is_slow_to_open_counts_in_the_same_deadline(
    stage: Stage, clock: MockClock
) -> None:
    async with stage.service({"session_new": {"delay_seconds": 30}}, faulty=True) as subagents:
        request = stage.request(deadlines=Deadlines(startup_seconds=10))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(let_pass, clock, 10, stage.logs[0][0], heard="session/new"))
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("fake", request)
    assert caught.value.failure.stage == "new-session"
    assert caught.value.failure.deadline == "startup-deadline"
    assert "session/prompt" not in methods(stage.logs[0][0])


async def test_chatter_keeps_a_turn_alive_and_silence_ends_it(stage: Stage, clock: MockClock) -> None:
    told_to_go_on = [stage.folder / str(number) for number in range(4)]
    said = {"text": {"text": "x", "message_id": "m"}}
    turn = [said, *(step for file in told_to_go_on for step in ({"wait_file": str(file)}, said))]
    async with stage.service({"turns": [[*turn, {"sleep": 30}]]}, bound_seconds=200) as subagents:
        request = stage.request(deadlines=Deadlines(idle_seconds=20))
        async with await subagents.start("fake", request) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    clock.jump(10 if told_to_go_on else 20)
                    if told_to_go_on:
                        told_to_go_on.pop(0).touch()
            result = await run.result()
    assert result.text == "x" * 5
    assert result.failure is not None
    assert result.failure.deadline == "idle-deadline"
    assert result.timings.turn is not None
    assert result.timings.turn > 4 * 10 + 20
