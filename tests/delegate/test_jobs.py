"""Background jobs, with agents that play in this process."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
import trio.testing

from acp_subagent import (
    ConfigurationError,
    JobStatus,
    JobTable,
    SubagentRequest,
    SubagentResult,
    SubagentService,
    open_job_table,
)
from tests.delegate.players import (
    PARENT,
    START_LINE,
    SURVIVORS,
    PlayedRun,
    Player,
    answers,
    ends,
    never,
    raises,
    service_of,
    start_failed,
    teardown_failed,
    waits,
)

PERMISSION = "ACP permission (policy: reject; request: edit; decision: denied)"


def task(label: str | None = "a task") -> SubagentRequest:
    return SubagentRequest(prompt="do it", label=label, parent=PARENT)


async def ended(
    jobs: JobTable, service: SubagentService, provider: str = "player"
) -> tuple[str, str | None, str]:
    """Status, detail and text of a job that is run to its end."""
    id = jobs.start(service, provider, task())
    await jobs.wait(id)
    output = await jobs.output(id)
    assert output is not None
    return output.job.status, output.job.detail, output.text


async def test_the_id_is_there_before_the_subagent_is() -> None:
    player = Player(answers)
    async with service_of(player) as subagents, open_job_table() as jobs:
        id = jobs.start(subagents, "player", task())
        job = jobs.job(id)
        assert job is not None
        assert (job.id, job.status, job.detail) == ("job-1", JobStatus.RUNNING, None)
        assert player.started == 0
        output = await jobs.output(id)
        assert output is not None
        assert output.text == ""
        assert await jobs.wait(id) == jobs.job(id)


@pytest.mark.parametrize(
    ("player", "expected"),
    [
        (Player(answers), ("completed", None, "yes")),
        (
            Player(ends("error", "line", saying="half")),
            (
                "failed",
                "error; diagnostic: line",
                "The subagent failed.\nDiagnostic: line\nPartial output before the run ended:\nhalf",
            ),
        ),
        (
            Player(answers, start=raises(start_failed())),
            (
                "failed",
                f"error; diagnostic: {START_LINE}",
                f"The subagent failed.\nDiagnostic: {START_LINE}",
            ),
        ),
        (Player(ends("aborted")), ("killed", None, "The subagent was cancelled.")),
        (
            Player(ends("aborted", PERMISSION)),
            (
                "failed",
                f"aborted; diagnostic: {PERMISSION}",
                f"The subagent was cancelled.\nDiagnostic: {PERMISSION}",
            ),
        ),
        (
            Player(answers, teardown=teardown_failed()),
            (
                "failed",
                f"completed\n{SURVIVORS}",
                f"The subagent ended abnormally.\nDiagnostic: {SURVIVORS}\n"
                "Partial output before the run ended:\nyes",
            ),
        ),
        (
            Player(answers, start=raises(teardown_failed())),
            ("failed", f"aborted\n{SURVIVORS}", f"The subagent was cancelled.\nDiagnostic: {SURVIVORS}"),
        ),
        (Player(answers, start=raises(RuntimeError("CANARY"))), ("failed", "error", "The subagent failed.")),
        (
            Player(answers, start=raises(ConfigurationError("A sentence of ours."))),
            (
                "failed",
                "error; diagnostic: A sentence of ours.",
                "The subagent failed.\nDiagnostic: A sentence of ours.",
            ),
        ),
    ],
)
async def test_a_job_ends_as_its_run_did(
    player: Player, expected: tuple[str, str | None, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with service_of(player) as subagents, open_job_table() as jobs:
        assert await ended(jobs, subagents) == expected
    assert "CANARY" not in caplog.text


async def test_a_provider_that_is_not_registered_is_a_failed_job() -> None:
    async with service_of() as subagents, open_job_table() as jobs:
        status, detail, _ = await ended(jobs, subagents)
    assert (status, detail) == ("failed", "error; diagnostic: No provider is registered under this name.")


async def test_while_a_job_runs_its_output_is_all_that_it_said_so_far() -> None:
    go_on = trio.Event()

    async def part(run: PlayedRun) -> SubagentResult:
        run.say("one ")
        run.say("and more")
        await go_on.wait()
        run.say("two", new_message=True)
        return run.ended("completed")

    async with service_of(Player(part)) as subagents, open_job_table() as jobs:
        id = jobs.start(subagents, "player", task())
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            output = await jobs.output(id)
            assert output is not None
            assert (output.job.status, output.text) == ("running", "one and more")
        go_on.set()
        await jobs.wait(id)
        output = await jobs.output(id)
        assert output is not None
        assert (output.job.status, output.text) == ("completed", "two")


async def test_state_and_text_are_of_one_moment_when_the_job_ends_meanwhile() -> None:
    async with service_of(Player(waits)) as subagents, open_job_table() as jobs:
        for ticks in range(12):
            id = jobs.start(subagents, "player", task())
            await trio.testing.wait_all_tasks_blocked()
            jobs.kill(id)
            for _ in range(ticks):
                await trio.lowlevel.checkpoint()
            output = await jobs.output(id)
            assert output is not None
            assert (output.text == "so far") == (output.job.status is JobStatus.RUNNING)


@pytest.mark.parametrize("start", [None, never])
async def test_a_killed_job_is_killed_also_while_it_starts(start: Any) -> None:
    player = Player(waits, start=start)
    async with service_of(player) as subagents, open_job_table() as jobs:
        id = jobs.start(subagents, "player", task())
        await trio.testing.wait_all_tasks_blocked()
        assert jobs.kill(id)
        job = await jobs.wait(id)
        assert job is not None
        assert (job.status, job.detail) == (JobStatus.KILLED, None)
        assert player.open_runs == 0
        assert jobs.kill(id)


async def test_a_job_killed_at_once_never_starts() -> None:
    player = Player(answers)
    async with service_of(player) as subagents, open_job_table() as jobs:
        id = jobs.start(subagents, "player", task())
        jobs.kill(id)
        await jobs.wait(id)
    assert player.started == 0


async def test_a_kill_whose_clean_up_failed_is_a_failure() -> None:
    async with service_of(Player(waits, teardown=teardown_failed())) as subagents, open_job_table() as jobs:
        id = jobs.start(subagents, "player", task())
        await trio.testing.wait_all_tasks_blocked()
        jobs.kill(id)
        job = await jobs.wait(id)
        assert job is not None
        assert (job.status, job.detail) == (JobStatus.FAILED, f"aborted\n{SURVIVORS}")


async def test_an_abort_of_its_own_is_refused_for_a_job() -> None:
    async with service_of(Player(waits)) as subagents, open_job_table() as jobs:
        with pytest.raises(ConfigurationError):
            jobs.start(subagents, "player", SubagentRequest(prompt="x", abort=trio.Event()))


async def test_jobs_go_on_beside_each_other_and_one_that_fails_harms_none() -> None:
    bad = Player(answers, name="bad", start=raises(RuntimeError("bug")))
    async with service_of(Player(waits), bad) as subagents, open_job_table() as jobs:
        good = jobs.start(subagents, "player", task())
        await jobs.wait(jobs.start(subagents, "bad", task()))
        await trio.testing.wait_all_tasks_blocked()
        job = jobs.job(good)
        assert job is not None
        assert job.status is JobStatus.RUNNING
