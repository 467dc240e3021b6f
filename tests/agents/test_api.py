"""Agents written elsewhere, through the public API."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from acp_subagent import (
    PermissionDecision,
    PermissionPolicy,
    SubagentResult,
    SubagentRun,
    SubagentStopReason,
    SupportsResume,
    TextChunk,
    open_subagents,
)
from tests.agents.launch import PROVISION_TIMEOUT_SECONDS, RUN_BOUND_SECONDS, Launch, first_of
from tests.agents.scenes import NOTE, Dsh, RealAgent, Scene

pytestmark = [pytest.mark.agents, pytest.mark.timeout(PROVISION_TIMEOUT_SECONDS)]


async def run_through(
    launch: Launch, scene: Scene, permission: PermissionPolicy = PermissionPolicy.REJECT
) -> SubagentResult:
    """Start, wait, dispose; nothing is left."""
    with trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(launch.provider(scene, permission))
            result = await subagents.run("real", launch.request(scene))
            assert result.teardown is not None
            assert result.teardown.clean
            assert launch.alive() == []
    return result


async def test_a_prompt_is_answered_and_nothing_is_left(agent: RealAgent, launch: Launch) -> None:
    with agent.answers(launch.workspace) as scene:
        result = await run_through(launch, scene)
    assert result.stop_reason is SubagentStopReason.COMPLETED
    assert result.text.endswith(scene.answer)
    assert result.diagnostic is None
    assert result.exit_status is not None
    assert result.exit_status.code == 0, "it ended by itself when its stdin was closed"


async def test_an_allowed_tool_call_is_done(agent: RealAgent, launch: Launch) -> None:
    with agent.asks(launch.workspace) as scene:
        result = await run_through(launch, scene, PermissionPolicy.ALLOW)
    assert result.stop_reason is SubagentStopReason.COMPLETED
    assert result.text.endswith(scene.answer)
    (record,) = result.permissions
    assert (record.decision, record.kind) == (PermissionDecision.ALLOWED, scene.kind)
    if scene.trace is not None:
        assert scene.trace.read_text().strip() == NOTE


async def test_a_denied_tool_call_is_not_done(agent: RealAgent, launch: Launch) -> None:
    with agent.asks(launch.workspace) as scene:
        result = await run_through(launch, scene, PermissionPolicy.REJECT)
    assert result.stop_reason is SubagentStopReason.COMPLETED
    assert result.text.endswith(scene.answer_denied)
    (record,) = result.permissions
    assert (record.decision, record.kind) == (PermissionDecision.DENIED, scene.kind)
    assert result.counters.permission_violations == 0
    assert scene.trace is None or not scene.trace.exists()


async def first_words(run: SubagentRun) -> None:
    """Wait for the first piece of the answer."""
    async with run.events() as events:
        async for event in events:
            if isinstance(event, TextChunk):
                return


async def cancel_in_the_middle(launch: Launch, scene: Scene) -> SubagentResult:
    """Start, cancel when the work has begun, dispose; nothing is left, the work neither."""
    with trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(launch.provider(scene))
            async with await subagents.start("real", launch.request(scene)) as run:
                has_begun = await first_of(scene.begun or partial(first_words, run), run.result)
                assert has_begun, (await run.result()).diagnostic
                assert launch.alive(), "what runs can be seen"
                run.cancel()
                result = await run.result()
                report = await run.dispose()
                assert report.clean
                assert scene.over()
                assert launch.alive() == []
    return result


async def test_a_turn_is_cancelled_in_the_middle(agent: RealAgent, launch: Launch) -> None:
    with agent.works_on(launch.workspace) as scene:
        result = await cancel_in_the_middle(launch, scene)
    assert result.stop_reason is SubagentStopReason.ABORTED
    assert result.diagnostic is None


async def test_a_turn_is_cancelled_while_the_model_answers(dsh: Dsh, launch: Launch) -> None:
    with dsh.listens(launch.workspace) as scene:
        result = await cancel_in_the_middle(launch, scene)
    assert result.stop_reason is SubagentStopReason.ABORTED


async def test_a_second_prompt_goes_on_in_the_same_session(dsh: Dsh, launch: Launch) -> None:
    with dsh.answers(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(launch.provider(scene))
            async with await subagents.start("real", launch.request(scene)) as run:
                assert (await run.result()).text == "Good morning."
                assert isinstance(run, SupportsResume)
                async with await run.resume("Good evening") as second:
                    assert (await second.result()).text == "Good evening."
                assert second.session == run.session
        assert launch.alive() == []


async def test_a_model_at_its_token_limit_ends_the_run_with_what_it_said(dsh: Dsh, launch: Launch) -> None:
    with dsh.is_cut_off(launch.workspace) as scene:
        result = await run_through(launch, scene)
    assert result.stop_reason is SubagentStopReason.MAX_TOKENS
    assert result.text == scene.answer


async def test_a_refused_request_to_the_model_is_an_error_without_the_models_words(
    dsh: Dsh, launch: Launch
) -> None:
    with dsh.is_refused(launch.workspace) as scene:
        result = await run_through(launch, scene)
    assert result.stop_reason is SubagentStopReason.ERROR
    assert result.failure is not None
    assert (result.failure.stage, result.failure.category) == ("prompt", "remote-error")
    assert result.failure.rpc_error is not None
    assert "scripted failure" in result.failure.rpc_error.message
    assert "scripted" not in f"{result.diagnostic} {result!r} {result.failure!r}"
