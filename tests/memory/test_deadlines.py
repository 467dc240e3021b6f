"""Every deadline at its real length, on a virtual clock: what expires when, and what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from acp_subagent import Deadlines, EventsLagged, SubagentStartError, TextChunk
from tests.memory.agent import (
    ALLOWED,
    CANCELLED,
    DENIED,
    OPTIONS,
    Agent,
    Scene,
    permission,
    text,
    update,
)

IN_PROGRESS = {"toolCallId": "call", "title": "t", "status": "in_progress"}


def said(reason: str, stage: str = "prompt") -> str:
    return f"Subagent failure (provider: ACP; stage: {stage}; category: timeout; reason: {reason})"


async def expired(scene: Scene, **request: Any) -> tuple[Any, float]:
    """The result of a run that is to pass a deadline, and the seconds from the ready run to it."""
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request(**request)) as run:
            began = trio.current_time()
            result = await run.result()
            seconds = trio.current_time() - began
    assert result.stop_reason == "error"
    assert result.failure is not None
    assert result.failure.category == "timeout"
    assert result.failure.deadline == result.failure.reason
    assert scene.failures == [result.failure]
    cancels = [frame for frame in scene.agent.received if frame.get("method") == "session/cancel"]
    assert len(cancels) == 1
    return result, seconds


# -- startup


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


# -- the turn


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


# -- silence


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
            second = await run.resume("more")  # type: ignore[attr-defined]
            result = await second.result()
            assert result.diagnostic == said("turn-deadline")
            third = await run.resume("more")  # type: ignore[attr-defined]
            assert (await third.result()).stop_reason == "completed"


# -- permissions


@pytest.mark.parametrize("manner", ["slow", "cannot be interrupted"])
async def test_a_handler_that_is_late_means_deny(manner: str, tmp_path: Path) -> None:
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        began = trio.current_time()
        await agent.send(permission(0))
        answers.append(await agent.answer_to(0))
        answers.append(trio.current_time() - began)
        await agent.stop(prompt)

    async def handler(request: object) -> str:
        with trio.CancelScope(shield=manner != "slow"):
            await trio.sleep(3000)
        return "allow"

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        result = await subagents.run("memory", scene.request())
    assert answers == [DENIED, pytest.approx(600)]
    assert [record.decision for record in result.permissions] == ["denied"]
    assert result.stop_reason == "completed"


async def test_a_request_has_its_own_permission_deadline(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission(0))
        await agent.answer_to(0)
        await agent.stop(prompt)

    async def handler(request: object) -> None:
        await trio.sleep_forever()

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        request = scene.request(deadlines=Deadlines(permission_seconds=4))
        result = await subagents.run("memory", request)
    assert result.timings.turn == pytest.approx(4)
    assert OPTIONS[1]["optionId"] == result.permissions[0].option_id


# -- what comes too late


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
