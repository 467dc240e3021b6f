"""The startup deadline at its real length, on a virtual clock: every stage of a start that it covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import Deadlines, SubagentStartError
from tests.memory.agent import Agent, Scene, text
from tests.memory.timeouts import said


async def silent(agent: Agent) -> None:
    await agent.stay()


async def initialized(agent: Agent) -> None:
    request = await agent.expect("initialize")
    await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})


async def loading(agent: Agent) -> None:
    request = await agent.expect("initialize")
    result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
    await agent.send({"id": request["id"], "result": result})


async def slow_everywhere(agent: Agent) -> None:
    await trio.sleep(70)
    request = await agent.expect("initialize")
    await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})
    request = await agent.expect("session/new")
    await trio.sleep(70)
    await agent.send({"id": request["id"], "result": {"sessionId": "late"}})


async def chatty(agent: Agent) -> None:
    """Frames are no progress of a start."""
    while True:
        await agent.send(text("starting ..."))
        await trio.sleep(1)


@pytest.mark.parametrize(
    ("script", "stage"),
    [
        (silent, "initialize"),
        (initialized, "new-session"),
        (slow_everywhere, "new-session"),
        (chatty, "initialize"),
    ],
)
async def test_the_startup_deadline_covers_the_whole_start(script: Any, stage: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, script)
    async with scene.service() as subagents:
        began = trio.current_time()
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("memory", scene.request())
        assert trio.current_time() - began == pytest.approx(120)
    assert str(caught.value) == said("startup-deadline", stage)
    assert scene.failures == [caught.value.failure]
    assert scene.agent.ended_at is not None


async def test_the_startup_deadline_covers_a_slow_spawn(tmp_path: Path) -> None:
    scene = Scene(tmp_path, silent)
    scene.host.spawn_seconds = 500
    async with scene.service() as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("memory", scene.request())
    assert str(caught.value) == said("startup-deadline", "initialize")
    assert scene.host.agents == []


async def test_the_startup_deadline_covers_the_wait_for_a_place(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()

    scene = Scene(tmp_path, script)
    async with scene.service(max_concurrent_runs=1) as subagents:
        async with await subagents.start("memory", scene.request()):
            began = trio.current_time()
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("memory", scene.request(deadlines=Deadlines(startup_seconds=3)))
            assert trio.current_time() - began == pytest.approx(3)
    assert str(caught.value) == said("startup-deadline", "initialize")
    assert len(scene.host.agents) == 1


async def test_a_request_has_its_own_startup_deadline(tmp_path: Path) -> None:
    scene = Scene(tmp_path, silent, startup_timeout_seconds=None)
    async with scene.service() as subagents:
        began = trio.current_time()
        with pytest.raises(SubagentStartError):
            await subagents.start("memory", scene.request(deadlines=Deadlines(startup_seconds=7)))
        assert trio.current_time() - began == pytest.approx(7)


async def test_without_a_deadline_the_callers_scope_is_the_owner_of_the_wait(tmp_path: Path) -> None:
    none: dict[str, Any] = dict.fromkeys(
        [f"{name}_timeout_seconds" for name in ("startup", "turn", "idle", "tool_idle", "permission")]
    )
    scene = Scene(tmp_path, silent, **none)
    async with scene.service() as subagents:
        with trio.move_on_after(100_000) as scope:
            await subagents.start("memory", scene.request())
        assert scope.cancelled_caught
    assert scene.failures == []


async def test_a_place_is_given_back_only_when_the_ladder_has_ended(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        agent.ladder_seconds = 16.0
        await agent.shake_hands()
        await agent.stop(await agent.prompted())

    scene = Scene(tmp_path, script)
    async with scene.service(max_concurrent_runs=1) as subagents:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(subagents.run, "memory", scene.request())
    first, second = scene.host.agents
    assert first.ended_at is not None
    assert second.ended_at is not None
    assert second.ended_at - first.ended_at >= 16.0
