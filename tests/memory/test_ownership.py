"""Who owns the child, as a product: the states of a chain, times what is done to either of its runs."""

from __future__ import annotations

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

WORK, DIE, IGNORE = "work", "die", "ignore the cancel"  # what an agent is asked to do


async def turns(agent: Agent) -> None:
    """Each turn takes four seconds, or ends half a second after it was cancelled."""
    agent.ladder_seconds = 1
    await agent.shake_hands()
    while True:
        request = await agent.expect("session/prompt")
        asked = request["params"]["prompt"][0]["text"]
        await agent.send(text("said"))
        if asked == DIE:
            await trio.sleep(2)
            agent.exit(3)
            return
        with trio.move_on_after(4) as working:
            await agent.expect("session/cancel")
        if not working.cancelled_caught:
            if asked == IGNORE:
                return
            await trio.sleep(0.5)
        await agent.stop(request["id"], "end_turn" if working.cancelled_caught else "cancelled")


#: Where a chain of one or two runs can be: what `resume` raises then, and how the runs end when nothing more
#: is done to them.
STATES: dict[str, tuple[type[Exception] | None, list[str]]] = {
    "first turn": (TurnInProgressError, ["completed"]),
    "first turn, being cancelled": (TurnInProgressError, ["aborted"]),
    "first aborted": (None, ["aborted"]),
    "first unanswered": (SessionEndedError, ["aborted"]),
    "first died": (SessionEndedError, ["error"]),
    "between": (None, ["completed"]),
    "second turn": (TurnInProgressError, ["completed", "completed"]),
    "second turn, being cancelled": (TurnInProgressError, ["completed", "aborted"]),
    "second aborted": (None, ["completed", "aborted"]),
    "second unanswered": (SessionEndedError, ["completed", "aborted"]),
    "second died": (SessionEndedError, ["completed", "error"]),
    "both settled": (None, ["completed", "completed"]),
    "owner being disposed": (SessionEndedError, ["completed", "aborted"]),
    "owner disposed": (SessionEndedError, ["completed", "aborted"]),
}
#: Each state with each run that there is in it: 0 is the owner, 1 the borrower.
STATES_AND_RUNS = [(state, which) for state, (_, ends) in STATES.items() for which in range(len(ends))]


class Chain:
    """A chain of runs that was brought to a state."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.runs: list[Any] = []  #: the owner, and the borrower if there is one yet
        self.aborts = [trio.Event(), trio.Event()]

    async def bring_to(self, state: str, subagents: Any, nursery: trio.Nursery) -> None:
        """Do what leads to `state`."""
        prompt = {"died": DIE, "unanswered": IGNORE}.get(state.rsplit(maxsplit=1)[-1], WORK)
        in_first = state.startswith("first")
        request = self.scene.request(prompt if in_first else WORK, abort=self.aborts[0])
        self.runs.append(await subagents.start("memory", request))
        if not in_first:
            await self.runs[0].result()
            if state == "between":
                return
            self.runs.append(await self.runs[0].resume(prompt, abort=self.aborts[1]))
        await trio.sleep(1)
        run = self.runs[-1]
        if state.endswith("being cancelled"):
            run.cancel()
            await trio.sleep(0.2)
        elif state.endswith(("aborted", "unanswered")):
            run.cancel()
            await run.result()
        elif state.endswith(("settled", "died")):
            await run.result()
        elif state == "owner being disposed":
            nursery.start_soon(self.runs[0].dispose)
            await trio.sleep(0.2)
        elif state == "owner disposed":
            await self.runs[0].dispose()

    async def ends(self) -> list[str]:
        """How the runs have ended."""
        return [str((await run.result()).stop_reason) for run in self.runs]

    @property
    def prompts(self) -> int:
        """How many prompts were sent."""
        return [frame.get("method") for frame in self.scene.agent.received].count("session/prompt")

    async def check_resume(self, refused: type[Exception] | None) -> None:
        """Every run of the chain can be resumed, or none can and nothing is sent."""
        for run in self.runs:
            sent = self.prompts
            if refused is None:
                async with await run.resume("again") as again:
                    assert (await again.result()).stop_reason == "completed"
                assert again.id != run.id
                assert again.session == run.session
            else:
                with pytest.raises(refused) as caught:
                    await run.resume("again")
                assert caught.value.__context__ is None
                assert self.prompts == sent

    def check_failures(self, state: str) -> None:
        """The host was told of the child's own fault, once, and of nothing that we did."""
        told = [failure.category for failure in self.scene.failures]
        assert told == (["process-exit"] if state.endswith("died") else [])


def cut_short(state: str) -> list[str]:
    """How the runs end when the turn that runs in this state is ended by us."""
    _, ends = STATES[state]
    return [*ends[:-1], "aborted"] if state in {"first turn", "second turn"} else ends


@pytest.mark.parametrize("state", STATES)
async def test_resume_in_every_state(state: str, tmp_path: Path) -> None:
    refused, ends = STATES[state]
    chain = Chain(Scene(tmp_path, turns))
    async with chain.scene.service() as subagents, trio.open_nursery() as nursery:
        await chain.bring_to(state, subagents, nursery)
        await chain.check_resume(refused)
        assert await chain.ends() == ends
    chain.check_failures(state)


@pytest.mark.parametrize("state", STATES)
async def test_of_parallel_resumes_one_wins_where_one_can(state: str, tmp_path: Path) -> None:
    refused, ends = STATES[state]
    chain, outcomes = Chain(Scene(tmp_path, turns)), list[Any]()

    async def resume(run: Any) -> None:
        try:
            outcomes.append((await (await run.resume("more")).result()).stop_reason)
        except (TurnInProgressError, SessionEndedError) as exc:
            outcomes.append(type(exc))

    async with chain.scene.service() as subagents, trio.open_nursery() as nursery:
        await chain.bring_to(state, subagents, nursery)
        sent = chain.prompts
        async with trio.open_nursery() as resuming:
            for number in range(5):
                resuming.start_soon(resume, chain.runs[number % len(chain.runs)])
        assert chain.prompts == sent + (refused is None)
        assert await chain.ends() == ends
    winners = [outcome for outcome in outcomes if isinstance(outcome, str)]
    losers = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    assert winners == (["completed"] if refused is None else [])
    assert losers == [refused or TurnInProgressError] * (5 - len(winners))


@pytest.mark.parametrize(("state", "which"), STATES_AND_RUNS)
async def test_dispose_of_either_run_in_every_state(state: str, which: int, tmp_path: Path) -> None:
    refused, ends = STATES[state]
    chain = Chain(Scene(tmp_path, turns))
    async with chain.scene.service() as subagents, trio.open_nursery() as nursery:
        await chain.bring_to(state, subagents, nursery)
        run, agent = chain.runs[which], chain.scene.agent
        report = await run.dispose()
        if which == 0:
            assert report is await run.dispose()
            assert report.processes_found == 1
            assert agent.exited.is_set()
            await chain.check_resume(SessionEndedError)
        else:
            assert report.processes_found == 0
            await chain.check_resume(SessionEndedError if refused is SessionEndedError else None)
            await trio.sleep(2)  # the ladder of a child that is of no more use may be under way
            assert agent.exited.is_set() == (refused is SessionEndedError)
        assert await chain.ends() == cut_short(state)
        assert [(await run.result()).text for run in chain.runs] == ["said"] * len(ends)
    chain.check_failures(state)


@pytest.mark.parametrize("deed", ["cancel", "abort"])
@pytest.mark.parametrize(("state", "which"), STATES_AND_RUNS)
async def test_cancel_and_abort_of_either_run_in_every_state(
    state: str, which: int, deed: str, tmp_path: Path
) -> None:
    refused, ends = STATES[state]
    chain = Chain(Scene(tmp_path, turns))
    async with chain.scene.service() as subagents, trio.open_nursery() as nursery:
        await chain.bring_to(state, subagents, nursery)
        if deed == "cancel":
            chain.runs[which].cancel()
        else:
            chain.aborts[which].set()
        # Its own turn only: of a run that has settled it is nothing, whatever the other one does.
        assert await chain.ends() == (cut_short(state) if which == len(chain.runs) - 1 else ends)
        await chain.check_resume(SessionEndedError if refused is SessionEndedError else None)
        with pytest.raises(SubagentAbortedError):
            await chain.runs[0].resume("never", abort=_set())
    chain.check_failures(state)


def _set() -> trio.Event:
    event = trio.Event()
    event.set()
    return event


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
                await run.resume("more")  # type: ignore[attr-defined]  # an ACP run has it
            assert await run.result() is result
    assert scene.failures == []
