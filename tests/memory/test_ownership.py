"""Who owns the child, as a product: the states of a chain, times what is done to either of its runs."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    RunEnded,
    RunStarted,
    SessionEndedError,
    SubagentAbortedError,
    TurnInProgressError,
)
from tests.memory.agent import Agent, Scene, text


async def turns(agent: Agent) -> None:
    """Each turn takes four seconds, or ends when it is cancelled."""
    agent.ladder_seconds = 1
    await agent.shake_hands()
    while True:
        prompt = await agent.prompted()
        await agent.send(text("said"))
        with trio.move_on_after(4):
            await agent.expect("session/cancel")
            await agent.stop(prompt, "cancelled")
            continue
        await agent.stop(prompt)


#: Where a chain of two runs can be, with what `resume` then does.
STATES = {
    "first turn": TurnInProgressError,
    "between": None,
    "second turn": TurnInProgressError,
    "both settled": None,
    "owner being disposed": SessionEndedError,
    "owner disposed": SessionEndedError,
}


async def brought_to(state: str, scene: Scene, nursery: trio.Nursery, subagents: Any) -> list[Any]:
    """The runs of a chain that is in this state: the owner, and the borrower if there is one yet."""
    runs: list[Any] = [await subagents.start("memory", scene.request())]
    await trio.sleep(1)
    if state == "first turn":
        return runs
    await runs[0].result()
    if state == "between":
        return runs
    runs.append(await runs[0].resume("more"))
    await trio.sleep(1)
    if state == "both settled":
        await runs[1].result()
    elif state == "owner being disposed":
        nursery.start_soon(runs[0].dispose)
        await trio.sleep(0.5)
    elif state == "owner disposed":
        await runs[0].dispose()
    return runs


@pytest.mark.parametrize("state", STATES)
async def test_resume_in_every_state(state: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, turns)
    async with scene.service() as subagents, trio.open_nursery() as nursery:
        for run in await brought_to(state, scene, nursery, subagents):
            sent = len(scene.agent.received)
            refused = STATES[state]
            if refused is not None:
                with pytest.raises(refused) as caught:
                    await run.resume("again")
                assert caught.value.__context__ is None
                assert len(scene.agent.received) == sent
            else:
                async with await run.resume("again") as again:
                    assert (await again.result()).stop_reason == "completed"
                assert again.id != run.id
                assert again.session == run.session


@pytest.mark.parametrize(("state", "which"), list(product(STATES, ["owner", "borrower"])))
async def test_dispose_of_either_run_in_every_state(state: str, which: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, turns)
    async with scene.service() as subagents, trio.open_nursery() as nursery:
        runs = await brought_to(state, scene, nursery, subagents)
        if which == "owner" or len(runs) == 1:
            report = await runs[0].dispose()
            assert report is await runs[0].dispose()
            assert report.processes_found == 1
            assert scene.agent.exited.is_set()
            with pytest.raises(SessionEndedError):
                await runs[-1].resume("again")
        else:
            report = await runs[1].dispose()
            assert report.processes_found == 0
            ended = state in {"owner being disposed", "owner disposed"}
            if not ended:
                assert not scene.agent.exited.is_set()
                async with await runs[0].resume("again") as again:
                    assert (await again.result()).stop_reason == "completed"
        results = [await run.result() for run in runs]
    cut_short = {
        "first turn": 0,
        "second turn": 1,
        "owner being disposed": 1,
        "owner disposed": 1,
    }.get(state)
    expected = ["aborted" if number == cut_short else "completed" for number in range(len(runs))]
    assert [result.stop_reason for result in results] == expected
    assert [result.text for result in results] == ["said"] * len(runs)
    assert scene.failures == []


@pytest.mark.parametrize("which", ["owner", "borrower"])
async def test_the_abort_of_each_ends_its_own_turn_only(which: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, turns)
    aborts = trio.Event(), trio.Event()
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request(abort=aborts[0])) as owner:
            run: Any = owner
            if which == "owner":
                await trio.sleep(1)
                aborts[0].set()
                assert (await owner.result()).stop_reason == "aborted"
                run = await run.resume("more", abort=aborts[1])
                assert (await run.result()).stop_reason == "completed"
            else:
                await owner.result()
                run = await run.resume("more", abort=aborts[1])
                await trio.sleep(1)
                aborts[0].set()  # of a run that has settled
                await trio.sleep(1)
                aborts[1].set()
                assert (await run.result()).stop_reason == "aborted"
                assert (await owner.result()).stop_reason == "completed"
            with pytest.raises(SubagentAbortedError):
                await run.resume("more", abort=aborts[0])


async def test_of_parallel_resumes_one_wins(tmp_path: Path) -> None:
    scene = Scene(tmp_path, turns)
    outcomes: list[str] = []

    async def resume(run: Any) -> None:
        try:
            outcomes.append(str((await (await run.resume("more")).result()).stop_reason))
        except TurnInProgressError:
            outcomes.append("refused")

    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            await run.result()
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(resume, run)
    assert sorted(outcomes) == ["completed", *["refused"] * 4]
    assert [frame.get("method") for frame in scene.agent.received].count("session/prompt") == 2


async def test_every_run_of_a_chain_has_its_own_lifecycle_pair(tmp_path: Path) -> None:
    scene, events = Scene(tmp_path, turns), list[Any]()
    async with scene.service() as subagents:
        subagents.observe(events.append)
        async with await subagents.start("memory", scene.request()) as owner:
            run: Any = owner
            await run.result()
            async with await run.resume("more") as second:
                await second.result()
            third = await second.resume("and more")
    assert [type(event) for event in events] == [RunStarted, RunEnded] * 3
    assert [event.id for event in events[::2]] == [owner.id, second.id, third.id]
    assert [event.stop_reason for event in events[1::2]] == ["completed", "completed", "aborted"]
    assert len({event.run_id for event in events}) == 3


async def test_a_one_shot_run_cannot_be_resumed_once_it_has_answered(tmp_path: Path) -> None:
    scene, runs = Scene(tmp_path, turns), list[Any]()
    async with scene.service() as subagents:

        async def resume() -> None:
            await trio.sleep(1)
            with pytest.raises(TurnInProgressError):
                await runs[0].resume("more")
            await trio.sleep(3.5)
            with pytest.raises(SessionEndedError):
                await runs[0].resume("more")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(resume)
            result = await subagents.run("memory", scene.request(), on_ready=runs.append)
    assert result.stop_reason == "completed"
    assert result.teardown is not None


async def test_a_child_that_dies_between_turns_ends_the_session(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stop(await agent.prompted())
        await trio.sleep(1)
        agent.exit(3)

    scene = Scene(tmp_path, script)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            result = await run.result()
            await trio.sleep(2)
            assert scene.agent.ended_at == pytest.approx(1, abs=0.1)  # its tree is ended at once
            with pytest.raises(SessionEndedError):
                await run.resume("more")  # type: ignore[attr-defined]
            assert await run.result() is result
    assert scene.failures == []
