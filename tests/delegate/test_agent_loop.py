"""The agent loop of the documents, over several providers, and cancelled at every moment."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from acp_subagent import SubagentProvider, SubagentResult
from tests.conftest import children
from tests.delegate.players import PlayedRun, Player
from tests.dsh.stage import DshStage
from tests.run.stage import BOUND_SECONDS, Stage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "delegate.md"

Work = Callable[[SubagentProvider], Awaitable[list[str]]]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """The loop as the page has it, with a working directory that is there."""
    block = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    code, ending = block.group(1).replace("/srv/repo", str(tmp_path)).split("trio.run(main)")
    assert not ending.strip()
    names: dict[str, Work] = {}
    exec(code, names)
    return names["work"]


async def slow_answer(run: PlayedRun) -> SubagentResult:
    for word in ("done ", "and ", "dusted"):
        await trio.lowlevel.checkpoint()
        run.say(word)
    return run.ended("completed")


MESSAGES = [
    "Say whether this repository is ready for a release.",
    "{answer}",
    "Started the background job job-1. Read it with job_output, end it with job_kill.",
    "The background job job-1 (run the tests) completed.",
    "Status: completed\n\n{answer}",
]


def messages_with(answer: str) -> list[str]:
    return sorted(message.format(answer=answer) for message in MESSAGES)


async def test_the_loop_brings_back_a_call_and_a_job_of_a_player(work: Work) -> None:
    with trio.fail_after(10):
        assert sorted(await work(Player(slow_answer))) == messages_with("done and dusted")


@pytest.fixture(params=["acp", "dsh"])
def provider(request: pytest.FixtureRequest, stage: Stage, dsh_stage: DshStage) -> SubagentProvider:
    """Each kind of child, with an agent that says that it is done."""
    if request.param == "dsh":
        return dsh_stage.provider({})
    made = stage.provider({"turns": [[{"text": "done"}]]})
    stage.logs.clear()  # one log of two conversations at once cannot be judged
    return made


async def test_the_loop_brings_back_a_call_and_a_job_of_real_children(
    work: Work, provider: SubagentProvider
) -> None:
    with trio.fail_after(BOUND_SECONDS):
        assert sorted(await work(provider)) == messages_with("done")


async def test_the_loop_is_cancelled_at_any_moment_and_leaves_no_run(work: Work) -> None:
    caught = []
    with trio.fail_after(30):
        for moment in range(80):
            player = Player(slow_answer)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(work, player)
                    for _ in range(moment):
                        await trio.lowlevel.checkpoint()
                    if nursery.child_tasks:
                        scope.cancel()
            assert player.open_runs == 0
            caught.append(scope.cancelled_caught)
    assert caught[1]
    assert not caught[-1]


#: A run of two short-lived children takes about a quarter of a second.
MOMENTS_SECONDS = [0.05 * step for step in range(12)]


@pytest.mark.parametrize("after_seconds", MOMENTS_SECONDS)
async def test_the_loop_is_cancelled_at_any_time_and_leaves_no_process(
    after_seconds: float, work: Work, provider: SubagentProvider
) -> None:
    before = children()
    with trio.fail_after(BOUND_SECONDS):
        with trio.move_on_after(after_seconds):
            await work(provider)
        assert children() == before
