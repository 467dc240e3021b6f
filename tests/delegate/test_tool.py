"""Calls of the tool, with agents that play in this process."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from acp_subagent import (
    ConfigurationError,
    Deadlines,
    ServiceClosedError,
    SubagentAbortedError,
    SubagentResult,
    SubagentTool,
    TextBlock,
    ToolResult,
    UnknownProviderError,
    UnsupportedCapabilityError,
    open_job_table,
)
from acp_subagent.delegate.arguments import NO_BACKGROUND
from acp_subagent.delegate.tool import TOO_MANY_JOBS
from tests.delegate.players import (
    CALL,
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

IN_BACKGROUND = {**CALL, "run_in_background": True}
CANCELLED = "The subagent was cancelled."
NOT_REGISTERED = "The subagent failed.\nDiagnostic: No provider is registered under this name."


async def test_success_is_the_final_text_and_the_subagent_is_disposed() -> None:
    player = Player(answers)
    async with service_of(player) as subagents:
        told = await SubagentTool(subagents, "player").call(CALL, PARENT)
    assert (told.text, told.is_error, told.errors, told.job_id) == ("yes", False, (), None)
    assert told.result is not None
    assert told.result.stop_reason == "completed"
    assert repr(told) == "<ToolResult ok>"


async def test_the_request_is_what_the_model_and_the_host_said() -> None:
    player = Player(answers, depth_limit=True, persona=True, deadlines=frozenset({"turn_seconds"}))
    limits = Deadlines(turn_seconds=5)
    async with service_of(player) as subagents:
        tool = SubagentTool(subagents, "player", max_depth=2, persona="calm", deadlines=limits)
        await tool.call('{"description": "a label", "prompt": "a task"}', PARENT)
    request = player.requests[0]
    assert request.blocks == (TextBlock("a task"),)
    assert (request.label, request.parent, request.abort) == ("a label", PARENT, None)
    assert (request.max_depth, request.persona, request.deadlines) == (2, "calm", limits)


async def test_a_failed_run_says_why_and_what_there_was() -> None:
    async with service_of(Player(ends("error", "Subagent failure (x)", saying="half"))) as subagents:
        told = await SubagentTool(subagents, "player").call(CALL, PARENT)
    assert told.is_error
    assert told.text == (
        "The subagent failed.\nDiagnostic: Subagent failure (x)\nPartial output before the run ended:\nhalf"
    )


async def test_a_failed_start_is_an_error_result() -> None:
    error = start_failed()
    async with service_of(Player(answers, start=raises(error))) as subagents:
        told = await SubagentTool(subagents, "player").call(CALL, PARENT)
    assert (told.is_error, told.errors, told.result) == (True, (error,), None)
    assert told.text == f"The subagent failed.\nDiagnostic: {START_LINE}"


async def test_a_failed_disposal_is_told_beside_the_result() -> None:
    error = teardown_failed()
    async with service_of(Player(ends("refusal", saying="no"), teardown=error)) as subagents:
        told = await SubagentTool(subagents, "player").call(CALL, PARENT)
    assert told.text == (
        f"The subagent declined the task.\nDiagnostic: {SURVIVORS}\nPartial output before the run ended:\nno"
    )
    assert told.errors == (error,)
    assert told.result is not None
    assert told.result.stop_reason == "refusal"


async def test_a_call_that_is_aborted_already_starts_nothing() -> None:
    abort = trio.Event()
    abort.set()
    player = Player(answers)
    async with service_of(player) as subagents, open_job_table() as jobs:
        tool = SubagentTool(subagents, "player", jobs=jobs)
        for arguments in (CALL, IN_BACKGROUND):
            told = await tool.call(arguments, PARENT, abort=abort)
            assert (told.text, told.is_error) == (CANCELLED, True)
            assert [type(error) for error in told.errors] == [SubagentAbortedError]
        assert jobs.jobs() == ()
    assert player.started == 0


@pytest.mark.parametrize("start", [None, never])
async def test_an_abort_ends_the_call_with_what_there_was(start: Any) -> None:
    abort = trio.Event()
    told: list[ToolResult] = []
    async with service_of(Player(waits, start=start)) as subagents:
        tool = SubagentTool(subagents, "player")

        async def call() -> None:
            told.append(await tool.call(CALL, PARENT, abort=abort))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            abort.set()
    partial = "" if start else "\nPartial output before the run ended:\nso far"
    assert (told[0].text, told[0].is_error) == (CANCELLED + partial, True)


async def test_sibling_calls_overlap() -> None:
    arrived = 0
    both = trio.Event()

    async def meets(run: PlayedRun) -> SubagentResult:
        nonlocal arrived
        arrived += 1
        if arrived == 2:
            both.set()
        await both.wait()
        return run.ended("completed")

    async with service_of(Player(meets)) as subagents:
        tool = SubagentTool(subagents, "player")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tool.call, CALL, PARENT)
            nursery.start_soon(tool.call, CALL, PARENT)


async def test_what_the_model_got_wrong_is_answered_and_starts_nothing() -> None:
    player = Player(answers)
    async with service_of(player) as subagents:
        tool = SubagentTool(subagents, "player")
        told = await tool.call({"prompt": 1}, PARENT)
        assert (told.text, told.is_error) == ("The argument description is missing.", True)
        told = await tool.call(IN_BACKGROUND, PARENT)
        assert (told.text, told.is_error) == (NO_BACKGROUND, True)
    assert player.started == 0


async def test_what_the_host_got_wrong_is_raised() -> None:
    async with service_of(Player(answers)) as subagents:
        tool = SubagentTool(subagents, "player")
        with pytest.raises(ConfigurationError):
            await tool.call(CALL, "/srv")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ServiceClosedError):
        await tool.call(CALL, PARENT)


async def test_a_foreign_exception_of_a_provider_is_the_hosts() -> None:
    async with service_of(Player(answers, start=raises(RuntimeError("bug")))) as subagents:
        with pytest.raises(RuntimeError, match="bug"):
            await SubagentTool(subagents, "player").call(CALL, PARENT)


# -- when it is there, and what it may be asked


async def test_the_tool_is_there_only_while_its_provider_is_registered() -> None:
    async with service_of() as subagents, open_job_table() as jobs:
        with pytest.raises(UnknownProviderError):
            SubagentTool(subagents, "player")
        registration = subagents.register(Player(answers))
        tool = SubagentTool(subagents, "player", jobs=jobs)
        assert tool.available
        assert repr(tool) == "<SubagentTool subagent available>"
        registration.unregister()
        assert not tool.available
        with pytest.raises(UnknownProviderError):
            _ = tool.definition
        for arguments in (CALL, IN_BACKGROUND):
            told = await tool.call(arguments, PARENT)
            assert (told.text, told.is_error) == (NOT_REGISTERED, True)
        assert jobs.jobs() == ()
        subagents.register(Player(answers, inherits_parent_context=True))
        assert "sees every finished turn" in tool.definition.description


async def test_the_definition_follows_the_provider_and_the_jobs() -> None:
    async with service_of(Player(answers)) as subagents, open_job_table() as jobs:
        plain = SubagentTool(subagents, "player", "delegate", purpose="It is quick.").definition
        assert plain.name == "delegate"
        assert "It is quick." in plain.description
        assert "stands alone" in plain.description
        assert "run_in_background" not in plain.schema["properties"]
        assert (
            "run_in_background"
            in SubagentTool(subagents, "player", jobs=jobs).definition.schema["properties"]
        )


async def test_options_that_the_provider_cannot_honour_are_refused_at_once() -> None:
    async with service_of(Player(answers), Player(answers, name="deep", depth_limit=True)) as subagents:
        SubagentTool(subagents, "player", max_depth="provider-managed")
        with pytest.raises(UnsupportedCapabilityError) as caught:
            SubagentTool(subagents, "player", max_depth=1)
        assert caught.value.capability == "depth_limit"
        SubagentTool(subagents, "deep", max_depth=0)
        with pytest.raises(ConfigurationError):
            SubagentTool(subagents, "deep", max_depth=-1)
        with pytest.raises(ConfigurationError):
            SubagentTool(subagents, "deep", max_depth="unlimited")  # type: ignore[arg-type]  # wrong on purpose
        for options in (
            {"persona": "calm"},
            {"tool_filter": ["read"]},
            {"agent_options": {"a": 1}},
            {"deadlines": Deadlines(turn_seconds=1)},
        ):
            with pytest.raises(UnsupportedCapabilityError):
                SubagentTool(subagents, "player", **options)
        with pytest.raises(ConfigurationError):
            SubagentTool(subagents, "player", "no name")


async def test_a_provider_that_was_replaced_by_a_lesser_one_is_an_error_result() -> None:
    async with service_of() as subagents:
        registration = subagents.register(Player(answers, depth_limit=True))
        tool = SubagentTool(subagents, "player", max_depth=1)
        registration.unregister()
        subagents.register(Player(answers))
        told = await tool.call(CALL, PARENT)
    assert told.text == "The subagent failed.\nDiagnostic: capability not supported: depth_limit"


# -- in the background


async def test_a_call_in_the_background_returns_the_id_of_a_job() -> None:
    async with service_of(Player(answers)) as subagents, open_job_table() as jobs:
        told = await SubagentTool(subagents, "player", jobs=jobs).call(IN_BACKGROUND, PARENT)
        assert told.text == (
            "Started the background job job-1. Read it with job_output, end it with job_kill."
        )
        assert (told.is_error, told.job_id) == (False, "job-1")
        job = await jobs.wait("job-1")
        assert job is not None
        assert (job.status, job.label, job.provider) == ("completed", "a task", "player")


async def test_the_abort_of_the_call_does_not_reach_the_job() -> None:
    abort = trio.Event()
    async with service_of(Player(waits)) as subagents, open_job_table() as jobs:
        await SubagentTool(subagents, "player", jobs=jobs).call(IN_BACKGROUND, PARENT, abort=abort)
        abort.set()
        await trio.testing.wait_all_tasks_blocked()
        assert [job.status for job in jobs.jobs()] == ["running"]


async def test_with_a_table_a_call_can_wait_all_the_same() -> None:
    async with service_of(Player(answers)) as subagents, open_job_table() as jobs:
        tool = SubagentTool(subagents, "player", jobs=jobs)
        assert (await tool.call({**CALL, "run_in_background": False}, PARENT)).text == "yes"
        assert (await tool.call(CALL, PARENT)).text == "yes"
        assert jobs.jobs() == ()


async def test_more_jobs_than_the_table_allows_are_refused() -> None:
    async with service_of(Player(waits)) as subagents, open_job_table(max_running_jobs=1) as jobs:
        tool = SubagentTool(subagents, "player", jobs=jobs)
        await tool.call(IN_BACKGROUND, PARENT)
        told = await tool.call(IN_BACKGROUND, PARENT)
        assert (told.text, told.is_error) == (TOO_MANY_JOBS, True)
        assert len(jobs.jobs()) == 1
