"""The idle deadlines at their real length, on a virtual clock: what counts as silence and what stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from acp_subagent import Deadlines, TextChunk
from tests.memory.agent import Agent, Scene, permission, text, update
from tests.memory.timeouts import expired, said

IN_PROGRESS = {"toolCallId": "call", "title": "t", "status": "in_progress"}


async def test_any_frame_resets_the_idle_deadline(tmp_path: Path) -> None:
    frames = [
        text("x"),
        update("of_a_kind_to_come"),
        {"method": "_private/note"},
        {"id": "q", "method": "_private/ask"},
        {"id": 99, "result": {}},
        text("not ours", session="another"),
    ]

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        for frame in frames:
            await trio.sleep(899)
            await agent.send(frame)
        await trio.sleep(899)
        await agent.raw(b"noise is no frame\n")

    result, seconds = await expired(Scene(tmp_path, script))
    assert result.diagnostic == said("idle-deadline")
    assert seconds == pytest.approx(899 * len(frames) + 900 + 5)


async def test_a_tool_call_in_progress_swaps_in_the_tool_limit_until_it_ends(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await agent.send(update("tool_call", **IN_PROGRESS))
        await trio.sleep(3599)
        await agent.send(update("tool_call_update", toolCallId="call", status="completed"))

    result, seconds = await expired(Scene(tmp_path, script))
    assert result.diagnostic == said("idle-deadline")
    assert seconds == pytest.approx(3599 + 900 + 5)


async def test_a_tool_call_whose_end_is_never_reported_has_a_limit_too(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await agent.send(update("tool_call", **IN_PROGRESS))

    result, seconds = await expired(Scene(tmp_path, script))
    assert result.diagnostic == said("tool-idle-deadline")
    assert seconds == pytest.approx(3605)
    assert [call.status for call in result.tool_calls] == ["cancelled"]


async def test_a_permission_request_can_tell_that_a_call_is_not_in_progress(
    tmp_path: Path,
) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await agent.send(update("tool_call", **IN_PROGRESS))
        await trio.sleep(10)
        await agent.send(permission(0, status="pending"))

    result, seconds = await expired(Scene(tmp_path, script))
    assert result.diagnostic is not None
    assert result.diagnostic.startswith(said("idle-deadline"))
    assert seconds == pytest.approx(915)


async def test_a_pending_permission_stops_the_idle_clock(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await trio.sleep(100)
        await agent.send(permission("a"), permission("b"))

    async def handler(request: Any) -> str:
        await trio.sleep(500 if answered else 550)
        answered.append(request)
        return "allow"

    answered: list[object] = []
    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    result, seconds = await expired(scene, deadlines=Deadlines(idle_seconds=50 + 100))
    assert len(answered) == 2
    assert seconds == pytest.approx(100 + 550 + 150 + 5)
    assert [record.decision for record in result.permissions] == ["allowed", "allowed"]


async def test_a_reader_that_waits_for_a_subscription_stops_the_idle_clock(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        for number in range(10):
            await agent.send(text(str(number)))
            await trio.lowlevel.checkpoint()

    scene = Scene(tmp_path, script, event_buffer_events=2, subscriber_stall_seconds=1000)
    async with scene.service() as subagents:
        request = scene.request(deadlines=Deadlines(idle_seconds=5))
        async with await subagents.start("memory", request) as run:
            events = run.events()
            await trio.sleep(500)
            assert scene.agent.ended_at is None
            chunks = [event.text async for event in events if isinstance(event, TextChunk)]
            result = await run.result()
            assert trio.current_time() == pytest.approx(510, abs=0.1)
    assert result.text == "0123456789"
    assert "".join(chunks) == result.text
    assert result.diagnostic == said("idle-deadline")
