"""What comes early, late, twice, or between turns; frame by frame."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from acp_subagent import (
    CommandsChanged,
    ModeChanged,
    OptionsChanged,
    SessionInfoChanged,
    Snapshot,
    StageChanged,
    TextChunk,
    ThoughtChunk,
)
from tests.memory.agent import (
    ALLOWED,
    CANCELLED,
    SESSION,
    Agent,
    Scene,
    permission,
    text,
    update,
)
from tests.memory.playing import played


async def test_updates_and_requests_before_the_session_is_known(tmp_path: Path) -> None:
    answers = []

    async def script(agent: Agent) -> None:
        request = await agent.expect("initialize")
        await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})
        request = await agent.expect("session/new")
        early = {"availableCommands": [{"name": "tidy", "description": "d"}]}
        await agent.send(
            update("available_commands_update", **early),
            update("usage_update", used=7, size=10),
            text("welcome"),
            text("not ours", session="another"),
            permission("p"),
            {"id": "t", "method": "terminal/create", "params": {"sessionId": SESSION, "command": "ls"}},
        )
        answers.append(await agent.answer_to("p"))
        answers.append(await agent.answer_to("t"))
        await agent.send({"id": request["id"], "result": {"sessionId": SESSION}})
        prompt = await agent.prompted()
        await agent.send(text("answer"), {"id": prompt, "result": {"stopReason": "end_turn"}})

    (result,), events, _ = await played(tmp_path, script, permission="allow")
    assert answers == [ALLOWED, {"code": -32601, "message": "method not found"}]
    assert result.text == "answer"
    assert len(result.messages) == 1
    assert result.permissions == ()
    assert result.usage.used_tokens == 7
    assert events[0] == StageChanged("prompt")
    assert isinstance(events[1], CommandsChanged)
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["answer"]


async def test_only_so_many_early_updates_are_kept(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        request = await agent.expect("initialize")
        await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})
        request = await agent.expect("session/new")
        await agent.send(*[update("usage_update", used=n, size=10) for n in range(5)])
        await agent.send({"id": request["id"], "result": {"sessionId": SESSION}})
        await agent.stop(await agent.prompted())

    (result,), _, _ = await played(tmp_path, script, max_early_updates=3)
    assert result.counters.early_updates_dropped == 2
    assert result.counters.updates == 3
    assert result.usage.used_tokens == 2


async def test_chunks_behind_the_answer_belong_to_the_turn_and_later_ones_to_none(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(text("one ", "m"), {"id": prompt, "result": {"stopReason": "end_turn"}})
        await agent.send(text("two", "m"))
        await trio.sleep(1)
        await agent.send(text("three", "m"), text("a title", None), update("plan", entries=[]))
        prompt = await agent.prompted()
        await agent.send(text("late", "m"), text("second"), text("later", "m"))
        await agent.stop(prompt)

    async def paused(agent: Agent) -> None:
        await script(agent)

    scene = Scene(tmp_path, paused)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            first = await run.result()
            await trio.sleep(2)
            second = await (await run.resume("more")).result()  # type: ignore[attr-defined]  # an ACP run has it
    assert first.text == "one two"
    assert second.text == "second"
    assert len(second.messages) == 1
    assert second.counters.late_updates == 3
    assert first.counters.late_updates == 0


async def test_late_thoughts_and_tool_calls_of_an_earlier_turn_are_dropped(tmp_path: Path) -> None:
    thought = {"content": {"type": "text", "text": "hm"}, "messageId": "t"}

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(
            update("agent_thought_chunk", **thought),
            update("tool_call", toolCallId="c", title="t", status="in_progress"),
        )
        await agent.stop(prompt)
        prompt = await agent.prompted()
        await agent.send(
            update("agent_thought_chunk", **thought),
            update("tool_call_update", toolCallId="c", status="completed"),
        )
        await agent.stop(prompt)

    (first, second), events, _ = await played(tmp_path, script, prompts=2)
    assert [call.status for call in first.tool_calls] == ["cancelled"]
    assert second.tool_calls == ()
    assert second.counters.late_updates == 2
    assert len([event for event in events if isinstance(event, ThoughtChunk)]) == 1


@pytest.mark.parametrize("mention", ["tool_call", "permission"])
async def test_a_tool_call_id_may_be_used_again_in_a_later_turn(mention: str, tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        for _ in range(2):
            prompt = await agent.prompted()
            if mention == "tool_call":
                await agent.send(update("tool_call", toolCallId="1", title="t", kind="read"))
            else:
                await agent.send(permission("p", "1", kind="read"))
                await agent.answer_to("p")
            await agent.send(update("tool_call_update", toolCallId="1", status="completed"))
            await agent.stop(prompt)

    results, _, _ = await played(tmp_path, script, prompts=2, permission="allow")
    for result in results:
        assert [(call.kind, call.status) for call in result.tool_calls] == [("read", "completed")]
        assert result.counters.late_updates == 0


async def test_what_changes_of_the_session_between_turns_is_told_with_the_next(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stop(await agent.prompted())
        await trio.sleep(1)
        await agent.send(
            update("current_mode_update", currentModeId="plan"),
            update("current_mode_update", currentModeId="code"),
            update("config_option_update", configOptions=[{"id": "model"}, 5]),
            update("session_info_update", title="T"),
            update("session_info_update", updatedAt=None),
            update("usage_update", used=1, size=2),
        )
        prompt = await agent.prompted()
        await agent.send(update("session_info_update", title=None))
        await trio.sleep(5)
        await agent.stop(prompt)

    scene = Scene(tmp_path, script)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            await run.result()
            await trio.sleep(2)
            second = await run.resume("more")  # type: ignore[attr-defined]  # an ACP run has it
            early = second.events()
            await trio.sleep(1)
            late = second.events()
            events = [event async for event in early]
            snapshot = await anext(late)
    assert events == [
        StageChanged("prompt"),
        ModeChanged("code"),
        OptionsChanged(({"id": "model"},)),
        SessionInfoChanged({"title": "T", "updatedAt": None}),
        SessionInfoChanged({"title": None}),
    ]
    assert isinstance(snapshot, Snapshot)
    assert snapshot.session == (
        ModeChanged("code"),
        OptionsChanged(({"id": "model"},)),
        SessionInfoChanged({"title": None, "updatedAt": None}),
    )
    assert snapshot.usage.used_tokens == 1


async def test_a_second_answer_is_dropped_and_never_taken_for_a_later_one(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        first = await agent.prompted()
        await agent.stop(first)
        await agent.stop(first, "refusal")
        second = await agent.prompted()
        await agent.stop(first, "refusal")
        await agent.send({"id": str(second), "result": {"stopReason": "refusal"}})
        await trio.sleep(1)
        await agent.stop(second)

    (first, second), _, _ = await played(tmp_path, script, prompts=2)
    assert (first.stop_reason, second.stop_reason) == ("completed", "completed")
    assert first.counters.dropped_responses == 1
    assert second.counters.dropped_responses == 2


async def test_a_turn_that_ends_with_a_permission_open_answers_it_cancelled(tmp_path: Path) -> None:
    answers = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission("p"), {"id": prompt, "result": {"stopReason": "end_turn"}})
        answers.append(await agent.answer_to("p"))

    async def handler(request: object) -> None:
        await trio.sleep_forever()

    (result,), _, _ = await played(tmp_path, script, permission="ask", permission_handler=handler)
    assert answers == [CANCELLED]
    assert result.stop_reason == "completed"
    assert [record.decision for record in result.permissions] == ["cancelled"]


async def test_a_cancel_that_comes_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(text("all of it"))
        await agent.stop(prompt)
        await agent.stay()

    scene = Scene(tmp_path, script, settle_grace_seconds=60.0)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            await trio.testing.wait_all_tasks_blocked()  # answered, and not settled for a minute yet
            run.cancel()
            result = await run.result()
    assert (result.stop_reason, result.text) == ("completed", "all of it")
    assert "session/cancel" not in [frame.get("method") for frame in scene.agent.received]
