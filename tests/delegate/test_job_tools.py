"""The tools by which a model looks after its background jobs."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from acp_subagent import JobKillTool, JobOutputTool, ModelTool, SubagentTool, open_job_table
from acp_subagent.delegate.arguments import NO_OBJECT
from acp_subagent.delegate.job_tools import NO_SUCH_JOB
from tests.delegate.players import (
    CALL,
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

IN_BACKGROUND = {**CALL, "run_in_background": True}
JOB = {"job_id": "job-1"}


async def test_a_model_follows_a_job_from_its_start_to_its_end() -> None:
    async with service_of(Player(waits)) as subagents, open_job_table() as jobs:
        subagent: ModelTool = SubagentTool(subagents, "player", jobs=jobs)
        read: ModelTool = JobOutputTool(jobs)
        kill: ModelTool = JobKillTool(jobs)
        assert [tool.available for tool in (read, kill)] == [True, True]
        assert [tool.definition.name for tool in (read, kill)] == [read.name, kill.name]
        await subagent.call(IN_BACKGROUND, PARENT)
        told = await read.call(JOB, PARENT)
        assert (told.text, told.is_error) == ("Status: running\n\nThere is no output yet.", False)
        await trio.testing.wait_all_tasks_blocked()
        told = await read.call(JOB, PARENT)
        assert (told.text, told.is_error) == ("Status: running\n\nOutput so far:\nso far", False)
        told = await kill.call(JOB, PARENT)
        assert (told.text, told.is_error) == ("The background job job-1 has ended, killed.", False)
        told = await read.call('{"job_id": "job-1"}', PARENT)
        assert (told.text, told.is_error, told.job_id) == (
            "Status: killed\n\nThe subagent was cancelled.\nPartial output before the run ended:\nso far",
            True,
            "job-1",
        )


@pytest.mark.parametrize(
    ("player", "text", "is_error"),
    [
        (Player(answers), "Status: completed\n\nyes", False),
        (
            Player(ends("max-tokens", saying="half")),
            "Status: failed\n\nThe subagent reached its token limit before it finished.\n"
            "Partial output before the run ended:\nhalf",
            True,
        ),
    ],
)
async def test_a_finished_job_reads_as_the_tool_would_have_answered(
    player: Player, text: str, is_error: bool
) -> None:
    async with service_of(player) as subagents, open_job_table() as jobs:
        await SubagentTool(subagents, "player", jobs=jobs).call(IN_BACKGROUND, PARENT)
        await jobs.wait("job-1")
        told = await JobOutputTool(jobs).call(JOB)
        assert (told.text, told.is_error) == (text, is_error)
        killed = await JobKillTool(jobs).call(JOB)
        assert killed.text.startswith("The background job job-1 has ended, ")


async def test_a_kill_while_the_job_starts_waits_for_its_end() -> None:
    player = Player(answers, start=never)
    async with service_of(player) as subagents, open_job_table() as jobs:
        await SubagentTool(subagents, "player", jobs=jobs).call(IN_BACKGROUND, PARENT)
        await trio.testing.wait_all_tasks_blocked()
        told = await JobKillTool(jobs).call(JOB)
        assert told.text == "The background job job-1 has ended, killed."
        assert player.open_runs == 0


async def test_a_kill_whose_clean_up_failed_says_so() -> None:
    async with service_of(Player(waits, teardown=teardown_failed())) as subagents, open_job_table() as jobs:
        await SubagentTool(subagents, "player", jobs=jobs).call(IN_BACKGROUND, PARENT)
        await trio.testing.wait_all_tasks_blocked()
        told = await JobKillTool(jobs).call(JOB)
        assert told.text == f"The background job job-1 has ended, failed: aborted\n{SURVIVORS}"
        assert told.is_error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (JOB, NO_SUCH_JOB),
        ([], NO_OBJECT),
        ({}, "The argument job_id is missing."),
        ({"job_id": 1}, "The argument job_id must be a string."),
        ({"job_id": "job-1", "wait": True}, "There is an unknown argument; known are: job_id."),
    ],
)
async def test_what_the_model_got_wrong_is_answered(arguments: object, sentence: str) -> None:
    async with open_job_table() as jobs:
        for tool in (JobOutputTool(jobs), JobKillTool(jobs)):
            told = await tool.call(arguments, PARENT)
            assert (told.text, told.is_error, told.job_id) == (sentence, True, None)
