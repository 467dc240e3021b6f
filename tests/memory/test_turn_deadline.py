"""The turn deadline on a virtual clock: when it passes, what follows, and what comes too late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import Deadlines, EventsLagged
from tests.memory.agent import ALLOWED, CANCELLED, Agent, Scene, permission, text
from tests.memory.timeouts import expired, said


async def test_the_turn_deadline_passes_whatever_the_agent_says(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        for _ in range(60):
            await agent.send(text("x"))
            await trio.sleep(1)
        await agent.expect("session/cancel")
        await agent.send(text("y"))

    result, seconds = await expired(Scene(tmp_path, script, turn_timeout_seconds=60.5))
    assert result.diagnostic == said("turn-deadline")
    assert seconds == pytest.approx(65.5)  # the cancel grace was waited for
    assert result.text == "x" * 60 + "y"  # and what came in it counts


async def test_an_answered_cancel_ends_the_turn_before_the_grace(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(text("partial"))
        await agent.expect("session/cancel")
        await agent.stop(prompt)

    scene = Scene(tmp_path, script)
    result, seconds = await expired(scene, deadlines=Deadlines(turn_seconds=10))
    assert seconds == pytest.approx(10.05)  # the settle grace
    assert result.text == "partial"


@pytest.mark.parametrize("reason", ["turn-deadline", "idle-deadline"])
async def test_requests_that_wait_are_answered_when_a_deadline_passes(reason: str, tmp_path: Path) -> None:
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission(0))
        if reason == "idle-deadline":  # it runs only when nothing is pending
            answers.append(await agent.answer_to(0))
        await agent.expect("session/cancel")
        await agent.send(permission(1))
        answers.append(await agent.answer_to(1 if answers else 0))
        if len(answers) == 1:
            answers.append(await agent.answer_to(1))
        await agent.stop(prompt, "cancelled")

    async def handler(request: object) -> str:
        if reason == "turn-deadline":
            await trio.sleep_forever()
        return "allow"

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    deadlines = Deadlines(turn_seconds=1) if reason == "turn-deadline" else Deadlines(idle_seconds=2)
    result, _ = await expired(scene, deadlines=deadlines)
    assert result.diagnostic is not None
    assert result.diagnostic.startswith(said(reason))
    assert answers == ([CANCELLED] * 2 if reason == "turn-deadline" else [ALLOWED, CANCELLED])
    assert [record.decision for record in result.permissions][-1] == "cancelled"


async def test_the_turn_deadline_lifts_the_wait_for_a_subscription(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        while True:
            await agent.send(text("x"))
            await trio.sleep(0.1)

    scene = Scene(tmp_path, script, event_buffer_events=2, subscriber_stall_seconds=1000)
    async with scene.service() as subagents:
        request = scene.request(deadlines=Deadlines(turn_seconds=3))
        async with await subagents.start("memory", request) as run:
            events = run.events()
            result = await run.result()
            assert trio.current_time() == pytest.approx(8, abs=0.1)
            left = [event async for event in events]
    assert result.failure is not None
    assert result.failure.reason == "turn-deadline"
    assert isinstance(left[-1], EventsLagged)
    assert len(left) == 1


async def test_the_deadlines_hold_for_each_turn_of_a_chain(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await trio.sleep(8)
        await agent.stop(prompt)
        prompt = await agent.prompted()
        await agent.expect("session/cancel")
        await agent.stop(prompt)
        prompt = await agent.prompted()
        await trio.sleep(9)
        await agent.stop(prompt)

    scene = Scene(tmp_path, script)
    async with scene.service() as subagents:
        request = scene.request(deadlines=Deadlines(turn_seconds=10))
        async with await subagents.start("memory", request) as run:
            assert (await run.result()).stop_reason == "completed"
            await trio.sleep(5000)  # between turns nothing expires
            second = await run.resume("more")  # type: ignore[attr-defined]  # an ACP run has it
            result = await second.result()
            assert result.diagnostic == said("turn-deadline")
            third = await run.resume("more")  # type: ignore[attr-defined]  # an ACP run has it
            assert (await third.result()).stop_reason == "completed"


async def test_a_late_answer_is_dropped_and_counted(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands(sessionCapabilities={"close": {}})
        prompt = await agent.prompted()
        await agent.expect("session/cancel")
        await trio.sleep(6)
        await agent.stop(prompt)

    scene = Scene(tmp_path, script, turn_timeout_seconds=10)
    async with scene.service() as subagents:

        def ready(run: object) -> None:
            scene.agent.ladder_seconds = 5

        result = await subagents.run("memory", scene.request(), on_ready=ready)
    assert result.failure is not None
    assert result.failure.reason == "turn-deadline"
    assert result.counters.dropped_responses == 1
    methods = [frame.get("method") for frame in scene.agent.received]
    assert "session/close" not in methods  # nothing is asked of an agent that does not answer
