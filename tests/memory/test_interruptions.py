"""Everything that can interrupt a run, at every stage it can be in; what comes out is plain, nothing is left.

Abort, the caller's scope, dispose, the end of the service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from acp_subagent import (
    Parent,
    RunEnded,
    RunStarted,
    ServiceClosedError,
    SubagentAbortedError,
    SubagentService,
    open_subagents,
)
from tests.memory.agent import Agent, Scene, text

#: A time at which the agent below is in the named stage.
STAGES = {
    "spawn": 0.5,
    "initialize": 1.5,
    "new-session": 3.0,
    "turn": 5.0,
    "settled": 7.0,
}
STARTING = ("spawn", "initialize", "new-session")


async def slowly(agent: Agent) -> None:
    """Takes a second or two for everything."""
    await trio.sleep(1)
    request = await agent.expect("initialize")
    await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})
    request = await agent.expect("session/new")
    await trio.sleep(2)
    await agent.send({"id": request["id"], "result": {"sessionId": "s"}})
    prompt = await agent.prompted()
    await agent.send(text("said", session="s"))
    with trio.move_on_after(2):
        await agent.expect("session/cancel")
        await agent.stop(prompt, "cancelled")
        return
    await agent.stop(prompt)


def scene(folder: Path, **settings: Any) -> Scene:
    made = Scene(folder, slowly, **settings)
    made.host.spawn_seconds = 1
    return made


def prompts(made: Scene) -> int:
    received = [frame for agent in made.host.agents for frame in agent.received]
    return sum(frame.get("method") == "session/prompt" for frame in received)


def assert_nothing_is_left(made: Scene) -> None:
    for agent in made.host.agents:
        assert agent.exited.is_set()
        assert agent.ended_at is not None
    assert made.failures == []


Doing = Callable[[SubagentService, Scene], Awaitable[None]]


async def start_and_wait(subagents: SubagentService, made: Scene) -> None:
    async with await subagents.start("memory", made.request()) as run:
        await run.result()
        await trio.sleep_forever()


async def run_and_stay(subagents: SubagentService, made: Scene) -> None:
    await subagents.run("memory", made.request())
    await trio.sleep_forever()


@pytest.mark.parametrize("doing", [start_and_wait, run_and_stay])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_cancelled_scope_goes_on_as_cancelled(stage: str, doing: Doing, tmp_path: Path) -> None:
    made = scene(tmp_path)
    caught: list[BaseException] = []
    events: list[object] = []
    async with made.service() as subagents:
        subagents.observe(events.append)
        with trio.move_on_after(STAGES[stage]) as scope:
            try:
                await doing(subagents, made)
            except BaseException as exc:
                caught.append(exc)
                raise
        assert scope.cancelled_caught
        assert_nothing_is_left(made)
    assert [type(exc) for exc in caught] == [trio.Cancelled]
    assert prompts(made) == (0 if stage in STARTING else 1)
    pair = [] if stage in STARTING else [RunStarted, RunEnded]
    assert [type(event) for event in events] == pair
    if stage == "turn":
        assert isinstance(events[1], RunEnded)
        assert events[1].stop_reason == "aborted"


@pytest.mark.parametrize("doing", [start_and_wait, run_and_stay])
@pytest.mark.parametrize("stage", STAGES)
async def test_cancelling_around_the_service_comes_out_plain(
    stage: str, doing: Doing, tmp_path: Path
) -> None:
    made = scene(tmp_path)
    caught: list[BaseException] = []
    with trio.move_on_after(STAGES[stage]) as scope:
        try:
            async with made.service() as subagents:
                await doing(subagents, made)
        except BaseException as exc:
            caught.append(exc)
            raise
    assert scope.cancelled_caught
    assert [type(exc) for exc in caught] == [trio.Cancelled]
    assert_nothing_is_left(made)


@pytest.mark.parametrize("stage", STAGES)
async def test_an_abort_at_every_stage(stage: str, tmp_path: Path) -> None:
    made, abort = scene(tmp_path), trio.Event()
    events: list[object] = []

    async def set_it() -> None:
        await trio.sleep(STAGES[stage])
        abort.set()
        abort.set()

    async with made.service() as subagents, trio.open_nursery() as nursery:
        subagents.observe(events.append)
        nursery.start_soon(set_it)
        if stage in STARTING:
            with pytest.raises(SubagentAbortedError) as caught:
                await subagents.start("memory", made.request(abort=abort))
            assert str(caught.value) == "The subagent was aborted before it was ready."
            assert caught.value.__context__ is None
            assert caught.value.__cause__ is None
            assert events == []
        else:
            async with await subagents.start("memory", made.request(abort=abort)) as run:
                result = await run.result()
                await trio.sleep(3)
            assert result.stop_reason == ("aborted" if stage == "turn" else "completed")
            assert (result.text, result.diagnostic, result.failure) == ("said", None, None)
            assert await run.result() is result
    assert_nothing_is_left(made)
    assert prompts(made) == (0 if stage in STARTING else 1)


@pytest.mark.parametrize("stage", STAGES)
async def test_the_service_is_closed_while_another_task_uses_it(stage: str, tmp_path: Path) -> None:
    made = scene(tmp_path)
    outcomes: list[object] = []

    async def use(subagents: SubagentService) -> None:
        try:
            run = await subagents.start("memory", made.request())
        except ServiceClosedError:
            outcomes.append("closed")
        else:
            outcomes.append((await run.result()).stop_reason)
            assert (await run.dispose()).clean

    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        async with made.service() as subagents:
            nursery.start_soon(use, subagents)
            await trio.sleep(STAGES[stage])
        assert trio.current_time() - began < STAGES[stage] + 1  # nothing was waited for but the end
        assert_nothing_is_left(made)
        with pytest.raises(ServiceClosedError):
            await subagents.start("memory", made.request())
    expected = {"turn": "aborted", "settled": "completed"}.get(stage, "closed")
    assert outcomes == [expected]
    assert prompts(made) == (0 if stage in STARTING else 1)


@pytest.mark.parametrize("stage", STAGES)
async def test_an_exception_of_the_body_comes_out_as_it_is(stage: str, tmp_path: Path) -> None:
    made, error = scene(tmp_path), ValueError("of the body")

    with pytest.raises(ValueError, match="of the body") as caught:
        async with made.service() as subagents:
            if stage in STARTING:
                subagents._nursery.start_soon(_ignore_closing, subagents, made)
                await trio.sleep(STAGES[stage])
                raise error
            async with await subagents.start("memory", made.request()):
                await trio.sleep(STAGES[stage] - 4)
                raise error
    assert caught.value is error
    assert error.__context__ is None
    assert_nothing_is_left(made)


async def _ignore_closing(subagents: SubagentService, made: Scene) -> None:
    with pytest.raises(ServiceClosedError):
        await subagents.start("memory", made.request())


async def test_an_exception_of_the_body_wins_over_a_cancellation(tmp_path: Path) -> None:
    made = scene(tmp_path)
    with trio.move_on_after(5):
        with pytest.raises(ValueError, match="on the way out"):
            async with made.service() as subagents:
                async with await subagents.start("memory", made.request()) as run:
                    try:
                        await run.result()
                        await trio.sleep_forever()
                    finally:
                        raise ValueError("on the way out")
    assert_nothing_is_left(made)


@pytest.mark.parametrize("how", ["dispose", "block", "twice at once"])
@pytest.mark.parametrize("stage", ["at once", "turn", "settled"])
async def test_dispose_in_every_state(stage: str, how: str, tmp_path: Path) -> None:
    made = scene(tmp_path)
    async with made.service() as subagents:
        run = await subagents.start("memory", made.request())
        if stage == "turn":
            await trio.sleep(1)
        elif stage == "settled":
            await run.result()
        if how == "block":
            async with run:
                pass
        elif how == "dispose":
            await run.dispose()
        else:
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(run.dispose)
        assert_nothing_is_left(made)
        report = await run.dispose()
        assert report is await run.dispose()
        result = await run.result()
    assert result.stop_reason == ("completed" if stage == "settled" else "aborted")
    if how != "twice at once":  # two tasks may come a moment too late for that
        assert prompts(made) == (0 if stage == "at once" else 1)


async def keeps_sessions(agent: Agent) -> None:
    """Takes its time to say which sessions it keeps, and to leave."""
    agent.ladder_seconds = 2
    await trio.sleep(1)
    request = await agent.expect("initialize")
    capabilities: dict[str, Any] = {"sessionCapabilities": {"list": {}}}
    await agent.send(
        {"id": request["id"], "result": {"protocolVersion": 1, "agentCapabilities": capabilities}}
    )
    request = await agent.expect("session/list")
    await trio.sleep(2)
    await agent.send({"id": request["id"], "result": {"sessions": []}})


@pytest.mark.parametrize("how", ["scope", "service"])
@pytest.mark.parametrize(
    ("at", "when"), [("spawn", 0.5), ("initialize", 1.5), ("list", 3.0), ("ladder", 5.0)]
)
async def test_an_errand_is_interrupted_at_every_stage(
    at: str, when: float, how: str, tmp_path: Path
) -> None:
    made, outcomes = Scene(tmp_path, keeps_sessions), list[object]()
    made.host.spawn_seconds = 1

    async def list_them(subagents: SubagentService, scope: trio.CancelScope) -> None:
        with scope:
            try:
                outcomes.append(await subagents.list_sessions("memory", Parent(cwd=str(tmp_path))))
            except BaseException as exc:
                outcomes.append(type(exc))
                if isinstance(exc, trio.Cancelled):
                    raise

    async with trio.open_nursery() as nursery:
        async with made.service() as subagents:
            scope = trio.CancelScope()
            nursery.start_soon(list_them, subagents, scope)
            await trio.sleep(when)
            if how == "scope":
                scope.cancel()
                await trio.sleep(10)
        assert_nothing_is_left(made)
    # What was asked for is there once the agent is only to leave.
    expected = {"scope": trio.Cancelled, "service": ServiceClosedError}[how]
    assert outcomes == [() if at == "ladder" else expected]


async def test_no_task_is_left_when_everything_has_been_interrupted(tmp_path: Path) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    for stage in STAGES.values():
        made = scene(tmp_path)
        with trio.move_on_after(stage):
            async with made.service() as subagents:
                await start_and_wait(subagents, made)
    await wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_service_that_was_not_used_costs_nothing() -> None:
    async with open_subagents() as subagents:
        assert subagents.providers() == ()
