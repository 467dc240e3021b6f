"""What comes out of order, twice, late, or for somebody else; frame by frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from acp_subagent import (
    CommandsChanged,
    ModeChanged,
    OptionsChanged,
    PermissionRequested,
    SessionInfoChanged,
    Snapshot,
    StageChanged,
    SubagentResult,
    TextChunk,
    ThoughtChunk,
    ToolCallChanged,
    UnknownUpdate,
    UserChunk,
)
from tests.memory.agent import (
    ALLOWED,
    CANCELLED,
    DENIED,
    SESSION,
    Agent,
    Scene,
    Script,
    permission,
    text,
    update,
)


async def played(
    folder: Path, script: Script, *, prompts: int = 1, **settings: Any
) -> tuple[list[SubagentResult], list[Any], Scene]:
    """The results of so many turns, with the events of all of them."""
    scene = Scene(folder, script, **settings)
    results, events = [], []
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as first:
            run: Any = first
            for number in range(prompts):
                if number:
                    run = await first.resume("more")  # type: ignore[attr-defined]
                events += [event async for event in run.events()]
                results.append(await run.result())
    return results, events, scene


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
            second = await (await run.resume("more")).result()  # type: ignore[attr-defined]
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
            second = await run.resume("more")  # type: ignore[attr-defined]
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


async def test_an_echoed_prompt_and_empty_chunks_are_no_answer(tmp_path: Path) -> None:
    echo = update("user_message_chunk", content={"type": "text", "text": "do it"})

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(echo, text(""), text("answer", "m"), text("", "n"), text("", "m"))
        await agent.stop(prompt)

    (result,), events, _ = await played(tmp_path, script)
    assert result.text == "answer"
    assert len(result.messages) == 1
    kinds = [type(event) for event in events]
    assert kinds == [StageChanged, UserChunk, TextChunk]


async def test_updates_and_requests_for_another_session_are_none_of_ours(tmp_path: Path) -> None:
    answers = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(
            text("not ours", session="another"),
            update("tool_call", "another", toolCallId="c", title="t", status="in_progress"),
            permission("p", session="another"),
        )
        answers.append(await agent.answer_to("p"))
        await agent.stop(prompt)

    (result,), events, _ = await played(tmp_path, script, permission="allow")
    assert (result.text, result.tool_calls, result.permissions) == ("", (), ())
    assert answers == [{"code": -32002, "message": "unknown session"}]
    assert [type(event) for event in events] == [StageChanged]


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


async def test_a_permission_may_be_the_first_mention_of_a_call_and_patches_it(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission("p", "c", kind="edit", locations=[{"path": "/a"}]))
        await agent.answer_to("p")
        await agent.send(
            update("tool_call", toolCallId="c", title="T", kind=None, status="in_progress"),
            permission("q", "c", title=None, status="pending"),
        )
        await agent.answer_to("q")
        await agent.send(permission("r", "c", title=None))  # says nothing new
        await agent.answer_to("r")
        await agent.stop(prompt)

    (result,), events, _ = await played(tmp_path, script)
    (call,) = result.tool_calls
    assert (call.title, call.kind, call.locations, call.status) == ("T", "edit", ("/a",), "cancelled")
    changes = [event.call.status for event in events if isinstance(event, ToolCallChanged)]
    assert changes == ["pending", "in_progress", "pending"]
    assert len([event for event in events if isinstance(event, PermissionRequested)]) == 3
    assert [record.kind for record in result.permissions] == ["edit"] * 3


async def test_a_denied_call_that_is_completed_all_the_same_is_counted(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission("p", "c", kind="delete"))
        assert await agent.answer_to("p") == DENIED
        await agent.send(update("tool_call_update", toolCallId="c", status="completed"))
        await agent.stop(prompt)

    (result,), _, _ = await played(tmp_path, script)
    assert result.counters.permission_violations == 1


async def test_updates_of_kinds_to_come_are_handed_on_and_counted(tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"sessionUpdate": "notice", "severity": "info", "title": "n"},
        {"sessionUpdate": 7},
        {},
        {"sessionUpdate": "agent_message_chunk", "content": "no block"},
        {"sessionUpdate": "tool_call", "toolCallId": 5},
        {"sessionUpdate": "current_mode_update"},
    ]

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        for raw in odd:
            await agent.send({"method": "session/update", "params": {"sessionId": SESSION, "update": raw}})
        await agent.send({"method": "session/update", "params": {"sessionId": SESSION, "update": []}})
        await agent.send({"method": "session/update", "params": {}})
        await agent.send({"method": "$/cancel_request", "params": {"requestId": 1}})
        await agent.stop(prompt)

    (result,), events, _ = await played(tmp_path, script)
    assert result.stop_reason == "completed"
    assert result.counters.unknown_updates == len(odd) + 2
    assert [event.raw for event in events if isinstance(event, UnknownUpdate)] == odd


async def test_requests_that_nobody_offered_to_serve_are_refused_once(tmp_path: Path) -> None:
    answers: dict[Any, Any] = {}

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        for request_id, method in ((0, "fs/read_text_file"), ("0", "_x/y"), (None, "elicitation/create")):
            params = {"sessionId": SESSION}
            await agent.send({"id": request_id, "method": method, "params": params})
            answers[request_id] = await agent.answer_to(request_id)
        await agent.stop(prompt)

    (result,), _, _ = await played(tmp_path, script)
    assert result.stop_reason == "completed"
    assert [answer["code"] for answer in answers.values()] == [-32601, -32601, -32602]


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
