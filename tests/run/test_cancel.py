"""Cancelling a turn of a real child, whatever habits the agent has."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from acp_subagent import SessionEndedError, TextBlock, TextChunk
from tests.run.stage import Stage
from tests.run.waiting import answers, methods, resumed

CANCELLED = {"outcome": {"outcome": "cancelled"}}
TALKS = [{"text": "so far"}, {"sleep": 20}]
FLOOD = {"text": {"text": "and on ", "forever": True}}


def on_cancel(*steps: dict[str, Any]) -> dict[str, Any]:
    """An agent that does this when it is cancelled."""
    return {"on_cancel": {"steps": list(steps)}, "turns": [TALKS]}


#: habit, its scenario, and whether the session can be used again afterwards
HABITS: dict[str, tuple[dict[str, Any], bool]] = {
    "answers cancelled": ({"turns": [TALKS]}, True),
    "ignores it and goes on": ({"on_cancel": "ignore", "turns": [TALKS]}, False),
    "never answers": ({"on_cancel": "silent", "turns": [TALKS]}, False),
    "answers end_turn": (on_cancel({"stop": "end_turn"}), True),
    "answers refusal": (on_cancel({"stop": "refusal"}), True),
    "answers with an error": (on_cancel({"error": {"code": -32603, "message": "CANARY"}}), True),
    "answers with nonsense": (on_cancel({"stop": {"stopReason": 5}}), False),
    "dies": (on_cancel({"exit": 3}), False),
    "is killed": (on_cancel({"signal": "KILL"}), False),
    "closes its stdout": (on_cancel({"close_stdout": True}, {"sleep": 20}), False),
    "floods": ({"on_cancel": "flood", "turns": [TALKS]}, False),
    "has been flooding": ({"on_cancel": "ignore", "turns": [[{"text": "so far"}, FLOOD]]}, False),
    "has stopped reading": ({"turns": [[{"stop_reading": True}, {"text": "so far"}, {"sleep": 20}]]}, False),
    "has closed its stdin": ({"turns": [[{"close_stdin": True}, {"text": "so far"}, {"sleep": 20}]]}, False),
}


@pytest.mark.parametrize("habit", HABITS)
async def test_a_cancelled_turn_is_aborted_within_the_grace(habit: str, stage: Stage) -> None:
    scenario, answered = HABITS[habit]
    scenario = {**scenario, "turns": [*scenario["turns"], [{"text": "again"}]]}
    async with stage.service(scenario, faulty=True) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    break
            run.cancel()
            run.cancel()
            with trio.fail_after(1.0 + 0.5 + 5.0):  # the grace, the look for an exit, and a busy machine
                result = await run.result()
            assert (result.stop_reason, result.diagnostic, result.failure) == ("aborted", None, None)
            assert result.messages[0] == (TextBlock("so far"),)
            run.cancel()
            if answered:
                async with await resumed(run) as second:
                    again = await second.result()
                assert (again.stop_reason, again.text) == ("completed", "again")
            else:
                with pytest.raises(SessionEndedError):
                    await resumed(run)
        assert await run.result() is result
    assert stage.failures == []
    expected = [] if "stdin" in habit or "reading" in habit else ["session/cancel"]
    if habit != "is killed":  # it may not have come to write it down
        assert [m for m in methods(stage.logs[0][0]) if m == "session/cancel"] == expected


async def test_a_permission_that_is_pending_and_one_that_comes_later_are_answered_cancelled(
    stage: Stage,
) -> None:
    asked = trio.Event()
    later = {"permission": {"id": "later", "tool_call": {"toolCallId": "b"}}}
    scenario = {
        "on_cancel": {"steps": [later, {"stop": "cancelled"}]},
        "turns": [[{"permission": {"tool_call": {"toolCallId": "a"}}}, {"sleep": 20}]],
    }

    async def handler(request: object) -> str:
        asked.set()
        await trio.sleep_forever()
        return "allow"

    async with stage.service(scenario, permission="ask", permission_handler=handler) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            await asked.wait()
            run.cancel()
            result = await run.result()
    assert result.stop_reason == "aborted"
    assert [record.decision for record in result.permissions] == ["cancelled", "cancelled"]
    assert answers(stage.logs[0][0]) == [CANCELLED, CANCELLED]


async def test_nothing_is_allowed_once_a_turn_was_given_up(stage: Stage) -> None:
    """An agent that did not answer the cancel asks on while its tree is being ended."""
    ask = {"permission": {"tool_call": {"toolCallId": "a", "kind": "delete"}}}
    scenario = {
        "on_cancel": "ignore",
        "on_eof": {"delay_seconds": 1.0},
        "turns": [[{"text": "x"}, {"sleep": 1.3}, ask, {"sleep": 20}]],
    }
    async with stage.service(scenario, faulty=True, permission="allow", eof_grace_seconds=3.0) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    break
            run.cancel()
            assert (await run.result()).permissions == ()
    assert answers(stage.logs[0][0]) in ([CANCELLED], [])  # none when the agent had left before it asked


async def test_without_a_turn_nothing_is_sent(stage: Stage) -> None:
    async with stage.service({"turns": [[{"text": "x"}]]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            result = await run.result()
            run.cancel()
            assert (await run.result()) is result
            async with await resumed(run) as second:
                run.cancel()  # of a run that has settled: the other turn goes on
                assert (await second.result()).stop_reason == "completed"
        run.cancel()
    assert "session/cancel" not in methods(stage.logs[0][0])


async def test_a_cancel_before_the_first_prompt_was_sent_sends_nothing(stage: Stage) -> None:
    async with stage.service({"turns": [[{"text": "x"}]]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            run.cancel()
            assert (await run.result()).stop_reason == "aborted"
            async with await resumed(run) as second:
                assert (await second.result()).text == "x"
    assert methods(stage.logs[0][0]) == ["initialize", "session/new", "session/prompt", "session/close"]


async def test_a_cancel_while_the_exit_is_looked_for_ends_that_wait(stage: Stage) -> None:
    turn = [{"text": "so far"}, {"close_stdout": True}, {"sleep": 20}]
    async with stage.service(
        {"turns": [turn]}, faulty=True, exit_observation_seconds=20.0, eof_grace_seconds=0.2
    ) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            events = run.events()
            while not isinstance(await anext(events), TextChunk):
                pass
            await trio.sleep(0.3)  # let the end of the stream be seen; either order is right
            run.cancel()
            with trio.fail_after(5):
                result = await run.result()
    assert (result.stop_reason, result.text, result.diagnostic) == ("aborted", "so far", None)
    assert stage.failures == []
