"""How long leaving takes: the graces in full, or the time to hurry after a cancellation from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.memory.agent import Agent, Scene, permission


def stubborn(folder: Path) -> Scene:
    """An agent whose cancel grace and ladder are used to the full: 5 and 16 seconds."""

    async def script(agent: Agent) -> None:
        agent.ladder_seconds = 16
        await agent.shake_hands()
        await agent.prompted()

    return Scene(folder, script)


async def seconds_to_leave(made: Scene, *, cancel: str, hurry_seconds: float | None) -> float:
    async with trio.open_nursery() as nursery:
        if cancel == "around the service":
            with trio.move_on_after(1):
                async with made.service(hurry_seconds=hurry_seconds) as subagents:
                    run = await subagents.start("memory", made.request())
                    await run.result()
        elif cancel == "while the service closes":
            with trio.move_on_after(1):
                async with made.service(hurry_seconds=hurry_seconds) as subagents:
                    await subagents.start("memory", made.request())
                    await trio.sleep(0.5)
        else:
            async with made.service(hurry_seconds=hurry_seconds) as subagents:
                with trio.move_on_after(1):
                    if cancel == "around run":
                        await subagents.run("memory", made.request())
                    else:
                        run = await subagents.start("memory", made.request())
                        nursery.start_soon(run.result)
                        try:
                            await trio.sleep_forever()
                        finally:
                            await run.dispose()
                return trio.current_time() - 1
    return trio.current_time() - 1


@pytest.mark.parametrize(
    "cancel", ["around the service", "while the service closes", "around run", "around dispose"]
)
async def test_a_cancellation_from_outside_leaves_only_the_time_to_hurry(cancel: str, tmp_path: Path) -> None:
    made = stubborn(tmp_path)
    assert await seconds_to_leave(made, cancel=cancel, hurry_seconds=3) == pytest.approx(3)
    assert made.agent.hurried


@pytest.mark.parametrize("cancel", ["around the service", "around run", "around dispose"])
async def test_without_it_the_graces_are_kept(cancel: str, tmp_path: Path) -> None:
    made = stubborn(tmp_path)
    assert await seconds_to_leave(made, cancel=cancel, hurry_seconds=None) == pytest.approx(21)
    assert not made.agent.hurried


async def test_leaving_in_order_is_not_hurried(tmp_path: Path) -> None:
    made = stubborn(tmp_path)
    async with made.service(hurry_seconds=3) as subagents:
        await subagents.start("memory", made.request())
        await trio.sleep(1)
    assert trio.current_time() == pytest.approx(22)


async def test_a_start_that_is_cancelled_is_hurried_too(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        agent.ladder_seconds = 16

    made = Scene(tmp_path, script)
    async with made.service(hurry_seconds=3) as subagents:
        with trio.move_on_after(1):
            await subagents.start("memory", made.request())
        assert trio.current_time() == pytest.approx(4, abs=0.1)


async def test_hurrying_skips_to_the_kill_everywhere(tmp_path: Path) -> None:
    made = stubborn(tmp_path)
    async with made.service() as subagents:
        runs = [await subagents.start("memory", made.request()) for _ in range(3)]
        async with trio.open_nursery() as nursery:
            for run in runs:
                nursery.start_soon(run.dispose)
            await trio.sleep(6)  # some graces have passed, the ladder is under way
            subagents.hurry()
        assert trio.current_time() == pytest.approx(6, abs=0.1)


async def test_a_handler_that_disposes_its_own_run_is_no_cancellation_from_outside(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        agent.ladder_seconds = 16
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission(0))
        await agent.expect("session/cancel")
        await agent.stop(prompt, "cancelled")

    runs: list[Any] = []

    async def handler(request: object) -> None:
        await runs[0].dispose()

    made = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with made.service(hurry_seconds=3) as subagents:
        runs.append(await subagents.start("memory", made.request()))
        result = await runs[0].result()
        assert result.stop_reason == "aborted"
        assert [record.decision for record in result.permissions] == ["cancelled"]
        await runs[0].dispose()
    assert trio.current_time() == pytest.approx(16, abs=0.1)
    assert not made.agent.hurried
