"""What comes out of order or twice, from real children; frame by frame it is tested in memory."""

from __future__ import annotations

from typing import Any

from acp_subagent import CommandsChanged, TextChunk
from tests.run.stage import Stage
from tests.run.waiting import answers, resumed

COMMANDS = {
    "sessionUpdate": "available_commands_update",
    "availableCommands": [{"name": "tidy", "description": "d"}],
}


def said(session: str, text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    return {"notify": {"method": "session/update", "params": {"sessionId": session, "update": update}}}


async def test_a_session_that_begins_before_it_is_answered(stage: Stage) -> None:
    """A request of the agent that has to be answered first, and updates of the session to come."""
    early = [
        {"update": COMMANDS},
        said("session-1", "welcome"),
        {"permission": {"session_id": "session-1"}},
        {"request": {"method": "terminal/create", "params": {"sessionId": "session-1", "command": "ls"}}},
    ]
    scenario = {"session_new": {"before_answer": early}, "turns": [[{"text": "answer"}]]}
    async with stage.service(scenario, faulty=True, permission="allow") as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            events = [event async for event in run.events()]
            result = await run.result()
    assert result.text == "answer"
    assert result.permissions == ()
    assert any(isinstance(event, CommandsChanged) for event in events)
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["answer"]
    assert len(answers(stage.logs[0][0])) == 2


async def test_late_chunks_and_second_answers_never_touch_the_next_turn(stage: Stage) -> None:
    first = [
        {"text": {"text": "first", "message_id": "m"}},
        {"stop": "end_turn"},
        {"stop": "refusal"},
        {"sleep": 0.4},
        {"text": {"text": "LATE", "message_id": "m"}},
        {"text": {"text": "OUTSIDE", "message_id": False}},
    ]
    second = [
        said("another", "NOT OURS"),
        {"text": {"text": "LATE TOO", "message_id": "m"}},
        {"user_text": "more"},
        {"text": ""},
        {"text": "second"},
        {"sleep": 0.3},
    ]
    async with stage.service({"turns": [first, second]}, faulty=True) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            assert (await run.result()).text == "first"
            async with await resumed(run) as more:
                result = await more.result()
    assert result.stop_reason == "completed"
    assert result.text == "second"
    assert not any("LATE" in str(message) or "OURS" in str(message) for message in result.messages)
    assert result.counters.late_updates >= 1
