"""How long a cancelled turn may still take, to the moment, and what holds when one end meets another."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from acp_subagent import Deadlines, SessionEndedError, SubagentResult
from tests.memory.agent import Agent, Scene, text

CANCEL_GRACE_SECONDS = 5.0
SETTLE_GRACE_SECONDS = 0.05


async def deaf(agent: Agent) -> None:
    """Goes on whatever it is told."""
    agent.ladder_seconds = 1
    await agent.shake_hands()
    await agent.prompted()
    while True:
        await agent.send(text("x"))
        with trio.move_on_after(0.25):
            await agent.receive()


def obedient(seconds: float) -> Any:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        while True:
            prompt = await agent.prompted()
            await agent.expect("session/cancel")
            await trio.sleep(seconds)
            await agent.stop(prompt, "cancelled")

    return script


def cancels_sent(scene: Scene) -> int:
    return [frame.get("method") for frame in scene.agent.received].count("session/cancel")


@pytest.mark.parametrize(
    ("script", "grace_seconds", "takes_seconds"),
    [
        (deaf, 5.0, 5.0),
        (deaf, 2.0, 2.0),
        (obedient(0), 5.0, SETTLE_GRACE_SECONDS),
        (obedient(4.5), 5.0, 4.5 + SETTLE_GRACE_SECONDS),
        (obedient(6), 5.0, 5.0),
    ],
)
async def test_a_cancelled_turn_takes_as_long_as_its_answer_and_never_longer_than_the_grace(
    script: Any, grace_seconds: float, takes_seconds: float, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, script, cancel_grace_seconds=grace_seconds)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            await trio.sleep(10)
            run.cancel()
            result = await run.result()
            assert trio.current_time() == pytest.approx(10 + takes_seconds)
            answered = takes_seconds < grace_seconds
            await trio.sleep(0.1)
            # Of no more use without an answer: its tree is ended at once, without waiting for anybody.
            assert scene.agent.ended_at == (None if answered else pytest.approx(10 + takes_seconds))
    assert result.stop_reason == "aborted"
    assert cancels_sent(scene) == 1


@pytest.mark.parametrize("script", [deaf, obedient(0)], ids=["deaf", "obedient"])
async def test_disposing_a_borrower_takes_no_longer_than_the_grace(script: Any, tmp_path: Path) -> None:
    async def first_turn_answered(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stop(await agent.prompted())
        prompt = await agent.prompted()
        agent.ladder_seconds = 10
        if script is not deaf:
            await agent.expect("session/cancel")
            await agent.stop(prompt)

    scene = Scene(tmp_path, first_turn_answered)
    async with scene.service() as subagents:
        owner: Any = await subagents.start("memory", scene.request())
        await owner.result()
        borrower = await owner.resume("more")
        await trio.sleep(10)
        began = trio.current_time()
        report = await borrower.dispose()
        # It waits for the end of its turn only: the ladder of a child that is of no more use is the owner's.
        takes_seconds = CANCEL_GRACE_SECONDS if script is deaf else SETTLE_GRACE_SECONDS
        assert trio.current_time() - began == pytest.approx(takes_seconds)
        assert report.processes_found == 0
        assert (await borrower.result()).stop_reason == "aborted"
        if script is deaf:
            with pytest.raises(SessionEndedError):
                await owner.resume("again")
        began = trio.current_time()
        await owner.dispose()
        assert trio.current_time() - began == pytest.approx(10)
    assert (await owner.result()).stop_reason == "completed"


#: What can end a turn by our own intent, and what the result then is.
INTENTS = {
    "cancel": ("aborted", None),
    "abort": ("aborted", None),
    "dispose": ("aborted", None),
    "scope": ("aborted", None),
    "close": ("aborted", None),
    "turn deadline": ("error", "turn-deadline"),
    "idle deadline": ("error", "idle-deadline"),
}
PAIRS = [pair for pair in product(INTENTS, repeat=2) if pair[0] != pair[1]] + [("cancel", "cancel")]


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_the_first_end_of_a_turn_wins_and_the_second_prolongs_nothing(
    first: str, second: str, tmp_path: Path
) -> None:
    """The second comes in the middle of the cancel grace that the first one began."""
    at_seconds = {second: 12.0, first: 10.0}

    async def silent(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stay()

    scene, abort, settled = Scene(tmp_path, silent), trio.Event(), list[SubagentResult]()
    deadlines = Deadlines(
        turn_seconds=at_seconds.get("turn deadline"), idle_seconds=at_seconds.get("idle deadline", 1e6)
    )
    scopes, closing, settled_at = trio.CancelScope(), trio.Event(), list[float]()

    def note(result: SubagentResult) -> None:
        settled.append(result)
        settled_at.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        async with scene.service() as subagents:
            runs: list[Any] = []

            async def hold() -> None:
                with scopes:
                    async with await subagents.start(
                        "memory", scene.request(abort=abort, deadlines=deadlines)
                    ) as run:
                        runs.append(run)
                        run.when_settled(note)
                        await trio.sleep_forever()

            async def interfere(deed: str) -> None:
                await trio.sleep_until(trio.current_time() + at_seconds[deed])
                if deed == "cancel":
                    runs[0].cancel()
                elif deed == "abort":
                    abort.set()
                elif deed == "dispose":
                    await runs[0].dispose()
                elif deed == "scope":
                    scopes.cancel()
                elif deed == "close":
                    closing.set()

            nursery.start_soon(hold)
            for deed in {first, second}:
                nursery.start_soon(interfere, deed)
            with trio.move_on_after(30):
                await closing.wait()
        scopes.cancel()
    (result,) = settled
    began = min(at_seconds.values())
    assert settled_at == [pytest.approx(began + CANCEL_GRACE_SECONDS)]
    assert (result.stop_reason, result.failure and result.failure.reason) == INTENTS[first]
    assert scene.failures == ([] if result.failure is None else [result.failure])
    assert cancels_sent(scene) == 1
    assert scene.agent.exited.is_set()
