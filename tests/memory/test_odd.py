"""What is odd, unknown, denied, or for somebody else; frame by frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acp_subagent import (
    PermissionRequested,
    StageChanged,
    TextChunk,
    ToolCallChanged,
    UnknownUpdate,
    UserChunk,
)
from tests.memory.agent import (
    DENIED,
    SESSION,
    Agent,
    permission,
    text,
    update,
)
from tests.memory.playing import played


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
