"""The table of background jobs: its bounds, its notices, and what its end leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from acp_subagent import (
    ConfigurationError,
    JobNotice,
    JobStatus,
    ServiceClosedError,
    SubagentRequest,
    open_job_table,
)
from acp_subagent.delegate.jobs import HEED_SECONDS, MAX_FINISHED_JOBS
from tests.delegate.players import (
    PARENT,
    SURVIVORS,
    Player,
    answers,
    ends,
    never,
    service_of,
    teardown_failed,
    waits,
)


def task(label: str | None = "a task") -> SubagentRequest:
    return SubagentRequest(prompt="do it", label=label, parent=PARENT)


async def test_the_last_hundred_finished_jobs_are_kept_and_no_running_one_is_lost() -> None:
    async with service_of(Player(answers), Player(waits, name="waits")) as subagents:
        async with open_job_table() as jobs:
            first = jobs.start(subagents, "waits", task())
            ids = []
            for _ in range(MAX_FINISHED_JOBS + 5):
                ids.append(jobs.start(subagents, "player", task()))
                await jobs.wait(ids[-1])
            assert [job.id for job in jobs.jobs()] == [*ids[5:], first]
            assert jobs.job(ids[4]) is None
            assert await jobs.output(ids[4]) is None
            assert await jobs.wait(ids[4]) is None
            assert not jobs.kill(ids[4])
            assert repr(jobs) == "<JobTable 1 running, 100 finished>"


async def test_the_number_of_running_jobs_is_bounded() -> None:
    async with service_of(Player(waits)) as subagents, open_job_table(max_running_jobs=2) as jobs:
        ids = [jobs.start(subagents, "player", task()) for _ in range(2)]
        assert jobs.full
        with pytest.raises(ConfigurationError):
            jobs.start(subagents, "player", task())
        jobs.kill(ids[0])
        await jobs.wait(ids[0])
        jobs.start(subagents, "player", task())


@pytest.mark.parametrize("bound", [0, True, 1.5])
async def test_an_impossible_bound_is_refused(bound: Any) -> None:
    with pytest.raises(ConfigurationError):
        async with open_job_table(max_running_jobs=bound):
            pytest.fail("the block must not be entered")


# -- notices


async def test_each_job_ends_with_one_notice() -> None:
    notices: list[JobNotice] = []
    failing = Player(ends("error", "line", saying="CANARY"), name="failing")
    async with service_of(Player(answers), failing, Player(waits, name="waits")) as subagents:
        async with open_job_table() as jobs:
            jobs.observe(notices.append)
            await jobs.wait(jobs.start(subagents, "player", task()))
            await jobs.wait(jobs.start(subagents, "failing", task(None)))
            jobs.start(subagents, "waits", task())
            await trio.testing.wait_all_tasks_blocked()
    assert [notice.text for notice in notices] == [
        "The background job job-1 (a task) completed.",
        "The background job job-2 failed: error; diagnostic: line",
        "The background job job-3 (a task) was killed.",
    ]
    assert notices[0].result.text == "yes"
    assert notices[1].result.result is not None
    assert notices[1].result.job_id == "job-2"
    assert "CANARY" not in repr(notices)
    assert "a task" not in repr(notices)


async def test_an_observer_that_raises_is_contained_and_one_that_stopped_hears_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raise_(notice: JobNotice) -> None:
        raise RuntimeError("CANARY")

    heard: list[JobNotice] = []
    async with service_of(Player(answers)) as subagents, open_job_table() as jobs:
        jobs.observe(raise_)
        stop = jobs.observe(heard.append)
        await jobs.wait(jobs.start(subagents, "player", task()))
        stop()
        stop()
        await jobs.wait(jobs.start(subagents, "player", task()))
    assert len(heard) == 1
    assert "an observer of jobs raised RuntimeError" in caplog.text
    assert "CANARY" not in caplog.text


# -- the end of the table


async def test_leaving_the_block_kills_what_runs_and_lets_nothing_start() -> None:
    player, starting = Player(waits), Player(waits, name="starting", start=never)
    async with service_of(player, starting) as subagents:
        async with open_job_table() as jobs:
            jobs.start(subagents, "player", task())
            jobs.start(subagents, "starting", task())
            await trio.testing.wait_all_tasks_blocked()
            jobs.start(subagents, "player", task())
        assert [job.status for job in jobs.jobs()] == [JobStatus.KILLED] * 3
        assert player.open_runs == 0
        with pytest.raises(ServiceClosedError):
            jobs.start(subagents, "player", task())


async def test_the_bodys_exception_comes_out_plain() -> None:
    error = RuntimeError("of the body")
    async with service_of(Player(waits)) as subagents:
        with pytest.raises(RuntimeError) as caught:
            async with open_job_table() as jobs:
                jobs.start(subagents, "player", task())
                await trio.testing.wait_all_tasks_blocked()
                raise error
        assert caught.value is error
        assert [job.status for job in jobs.jobs()] == [JobStatus.KILLED]


async def test_when_the_scope_is_cancelled_the_jobs_end_with_what_they_had_said() -> None:
    failing = Player(waits, name="failing", teardown=teardown_failed())
    async with service_of(Player(waits), failing) as subagents:
        with trio.CancelScope() as scope:
            async with open_job_table() as jobs:
                ids = [jobs.start(subagents, name, task()) for name in ("player", "failing")]
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        output = await jobs.output(ids[0])
        assert output is not None
        partial = "\nPartial output before the run ended:\nso far"
        assert (output.job.status, output.text) == ("killed", f"The subagent was cancelled.{partial}")
        job = jobs.job(ids[1])
        assert job is not None
        assert (job.status, job.detail) == ("failed", f"aborted\n{SURVIVORS}")


@pytest.mark.parametrize("teardown", [None, teardown_failed()])
async def test_a_run_that_does_not_heed_its_abort_is_cancelled_in_the_end(
    teardown: Any, autojump_clock: MockClock
) -> None:
    player = Player(waits, deaf=True, teardown=teardown)
    async with service_of(player, bound_seconds=2 * HEED_SECONDS) as subagents:
        async with open_job_table() as jobs:
            jobs.start(subagents, "player", task())
            await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == pytest.approx(HEED_SECONDS)
    expected = ("killed", None) if teardown is None else ("failed", f"aborted\n{SURVIVORS}")
    assert [(job.status, job.detail) for job in jobs.jobs()] == [expected]
    assert player.open_runs == 0


@pytest.mark.parametrize("leaves", [KeyboardInterrupt, SystemExit])
async def test_what_leaves_the_program_from_a_callback_comes_out_plain(leaves: type[BaseException]) -> None:
    def leave(notice: JobNotice) -> None:
        raise leaves

    with pytest.raises(leaves):
        async with service_of(Player(answers)) as subagents, open_job_table() as jobs:
            jobs.observe(leave)
            jobs.start(subagents, "player", task())
            await trio.sleep_forever()
