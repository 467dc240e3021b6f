"""How long a child is waited for that has closed one of its streams and stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from acp_subagent import SubagentStartError
from tests.memory.agent import Agent, Scene, permission

OBSERVED_SECONDS = 3.0

Deed = Callable[[Agent], Awaitable[None]]


async def hangs_up(agent: Agent) -> None:
    agent.close_stdout()


async def stops_reading(agent: Agent) -> None:
    agent.close_stdin()


async def stops_reading_and_asks(agent: Agent) -> None:
    agent.close_stdin()
    await agent.send(permission("p"))  # our answer meets the closed stream


@pytest.mark.parametrize("deed", [hangs_up, stops_reading_and_asks])
async def test_a_turn_waits_once_for_a_child_that_stays(deed: Deed, tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await deed(agent)
        await trio.sleep_forever()

    scene = Scene(tmp_path, script, exit_observation_seconds=OBSERVED_SECONDS)
    async with scene.service() as subagents:
        run = await subagents.start("memory", scene.request())
        began = trio.current_time()
        result = await run.result()
        assert trio.current_time() - began == pytest.approx(OBSERVED_SECONDS)
    assert result.diagnostic is not None
    assert "category: transport" in result.diagnostic


@pytest.mark.parametrize("deed", [hangs_up, stops_reading])
async def test_a_start_waits_once_for_a_child_that_stays(deed: Deed, tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        request = await agent.expect("initialize")
        await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})
        await deed(agent)
        await trio.sleep_forever()

    scene = Scene(tmp_path, script, exit_observation_seconds=OBSERVED_SECONDS)
    async with scene.service() as subagents:
        began = trio.current_time()
        with pytest.raises(SubagentStartError, match="category: transport"):
            await subagents.start("memory", scene.request())
        assert trio.current_time() - began == pytest.approx(OBSERVED_SECONDS)


async def test_an_exit_within_the_wait_is_the_reason_that_is_told(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await stops_reading_and_asks(agent)
        await trio.sleep(OBSERVED_SECONDS / 2)
        agent.exit(3)

    scene = Scene(tmp_path, script, exit_observation_seconds=OBSERVED_SECONDS)
    async with scene.service() as subagents:
        run = await subagents.start("memory", scene.request())
        result = await run.result()
    assert result.diagnostic is not None
    assert "category: process-exit; exit code: 3" in result.diagnostic
