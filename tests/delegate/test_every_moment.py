"""A call or a job that is cancelled at any moment whatever: nothing is left, and the end is an orderly one.

A moment is a number of ticks of the scheduler: each test goes through them one by one, until the whole thing
has come to its end uncancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from acp_subagent import (
    JobNotice,
    JobStatus,
    SubagentResult,
    SubagentService,
    SubagentTool,
    ToolResult,
    open_job_table,
)
from tests.delegate.players import CALL, PARENT, SURVIVORS, PlayedRun, Player, service_of, teardown_failed

IN_BACKGROUND = {**CALL, "run_in_background": True}
#: more moments than anything here has
MANY = 60


async def ticks(number: int) -> None:
    for _ in range(number):
        await trio.lowlevel.checkpoint()


async def slow_start() -> None:
    await ticks(5)


async def slow_answer(run: PlayedRun) -> SubagentResult:
    for word in ("one ", "two ", "three"):
        await ticks(2)
        run.say(word)
    return run.ended("completed")


@asynccontextmanager
async def after(number: int, action: Callable[[], None]) -> AsyncIterator[None]:
    """Do something so many ticks after the beginning of the block, unless it has ended by then."""

    async def act() -> None:
        await ticks(number)
        action()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(act)
        yield
        nursery.cancel_scope.cancel()


def a_player(*, fails: bool) -> Player:
    return Player(slow_answer, start=slow_start, teardown=teardown_failed() if fails else None)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_whose_scope_is_cancelled_at_any_moment(fails: bool) -> None:
    player = a_player(fails=fails)
    ended = []
    async with service_of(player) as subagents:
        tool = SubagentTool(subagents, "player")
        for moment in range(MANY):
            told = None
            with trio.CancelScope() as scope:
                async with after(moment, scope.cancel):
                    told = await tool.call(CALL, PARENT)
            assert player.open_runs == 0
            assert told is not None or scope.cancelled_caught
            ended.append(told is not None)
    # Cancelled up to some moment, and from then on whole.
    assert not ended[0]
    assert ended[-1]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_that_is_aborted_at_any_moment(fails: bool) -> None:
    player = a_player(fails=fails)
    texts = []
    async with service_of(player) as subagents:
        tool = SubagentTool(subagents, "player")
        for moment in range(MANY):
            abort = trio.Event()
            async with after(moment, abort.set):
                told = await tool.call(CALL, PARENT, abort=abort)
            assert player.open_runs == 0
            texts.append(told.text)
            assert told.is_error == (fails or told.text != "one two three")
    diagnostic = f"\nDiagnostic: {SURVIVORS}" if fails else ""
    partial = f"The subagent was cancelled.{diagnostic}\nPartial output before the run ended:\n"
    expected = {"The subagent was cancelled.", f"{partial}one ", f"{partial}one two "}
    assert expected <= set(texts)
    assert texts[0] == "The subagent was cancelled."
    assert texts[-1].endswith("one two three")


async def one_job(subagents: SubagentService, moment: int) -> tuple[JobStatus, str]:
    """Kill a job at this moment; how it ended, with its text."""
    notices: list[JobNotice] = []
    async with open_job_table() as jobs:
        jobs.observe(notices.append)
        tool = SubagentTool(subagents, "player", jobs=jobs)
        id = (await tool.call(IN_BACKGROUND, PARENT)).job_id or ""
        async with after(moment, lambda: _kill(jobs.kill, id)):
            await jobs.wait(id)
    assert [notice.job for notice in notices] == list(jobs.jobs())
    return notices[0].job.status, notices[0].result.text


def _kill(kill: Callable[[str], bool], id: str) -> None:
    assert kill(id)
    assert kill(id)  # once more is harmless


@pytest.mark.parametrize("fails", [False, True])
async def test_a_job_that_is_killed_at_any_moment(fails: bool) -> None:
    player = a_player(fails=fails)
    statuses = []
    async with service_of(player) as subagents:
        for moment in range(MANY):
            started = player.started
            status, text = await one_job(subagents, moment)
            assert player.open_runs == 0
            assert (status is JobStatus.COMPLETED) == (text == "one two three")
            if fails and "Partial output" in text:
                assert status is JobStatus.FAILED
            assert player.started - started in {0, 1}
            statuses.append(status)
    assert statuses[0] is JobStatus.KILLED
    assert statuses[-1] is (JobStatus.FAILED if fails else JobStatus.COMPLETED)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_table_that_is_left_or_cancelled_at_any_moment(cancelled: bool) -> None:
    player = a_player(fails=False)
    statuses = []
    async with service_of(player) as subagents:
        for moment in range(MANY):
            notices: list[JobNotice] = []
            with trio.CancelScope() as scope:
                async with open_job_table() as jobs:
                    jobs.observe(notices.append)
                    tool = SubagentTool(subagents, "player", jobs=jobs)
                    for _ in range(2):
                        await tool.call(IN_BACKGROUND, PARENT)
                    await ticks(moment)
                    if cancelled:
                        scope.cancel()
                        await trio.lowlevel.checkpoint()
            assert scope.cancelled_caught == cancelled
            assert player.open_runs == 0
            assert [notice.job for notice in notices] == list(jobs.jobs())
            statuses.append({notice.job.status for notice in notices})
    assert statuses[0] == {JobStatus.KILLED}
    assert statuses[-1] == {JobStatus.COMPLETED}


async def test_calls_and_jobs_beside_each_other_end_each_for_itself() -> None:
    player = a_player(fails=False)
    told: list[ToolResult] = []
    async with service_of(player) as subagents, open_job_table() as jobs:
        tool = SubagentTool(subagents, "player", jobs=jobs)

        async def call(moment: int) -> None:
            abort = trio.Event()
            async with after(moment, abort.set):
                told.append(await tool.call(CALL, PARENT, abort=abort))

        async with trio.open_nursery() as nursery:
            for moment in range(0, MANY, 4):
                nursery.start_soon(call, moment)
                await tool.call(IN_BACKGROUND, PARENT)
        await jobs.wait("job-1")
    texts = {one.text for one in told}
    assert "one two three" in texts
    assert "The subagent was cancelled." in texts
