"""The DSH SDK provider over the real runtime."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import trio

from acp_subagent import (
    DshConfig,
    DshProvider,
    Failure,
    SubagentResult,
    SubagentStartError,
    SubagentStopReason,
    SubagentTool,
    SupportsResume,
    ToolKind,
    ToolStatus,
    open_job_table,
    open_subagents,
)
from tests.agents.launch import MARK_VARIABLE, PROVISION_TIMEOUT_SECONDS, RUN_BOUND_SECONDS, Launch
from tests.agents.model_server import Answer, CallTool, ModelServer
from tests.agents.scenes import Dsh, Scene

pytestmark = [pytest.mark.agents, pytest.mark.timeout(PROVISION_TIMEOUT_SECONDS)]


def provider(launch: Launch, scene: Scene, **settings: object) -> DshProvider:
    """The provider ``real``: the scene's runtime with its other profile."""
    command, *_ = scene.command
    env = {MARK_VARIABLE: launch.mark, **scene.env}
    return DshProvider(DshConfig(name="real", command=command, env=env, **settings))


async def run_through(launch: Launch, scene: Scene) -> SubagentResult:
    """Start, wait, dispose; nothing is left, and the runtime ended by itself."""
    with trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(provider(launch, scene))
            result = await subagents.run("real", launch.request(scene))
    assert result.teardown is not None
    assert result.teardown.clean
    assert result.exit_status is not None
    assert result.exit_status.code == 0
    assert launch.alive() == []
    return result


async def test_a_prompt_is_answered_and_nothing_is_left(dsh: Dsh, launch: Launch) -> None:
    with dsh.answers(launch.workspace) as scene:
        result = await run_through(launch, scene)
    assert (result.stop_reason, result.text) == (SubagentStopReason.COMPLETED, scene.answer)
    assert result.diagnostic is None
    assert result.usage.used_tokens == 18
    assert result.usage.size_tokens is not None


async def test_a_turn_of_several_steps_ends_with_the_last_message(dsh: Dsh, launch: Launch) -> None:
    write = CallTool("write", {"file_path": "note.txt", "content": "milk"}, call_id="call_1")
    read = CallTool("read", {"file_path": "nothing.txt"}, call_id="call_2")
    with ModelServer([write, read, Answer(("That is ", "all."))]) as model:
        result = await run_through(launch, dsh.scene(launch.workspace, model))
        assert len(model.requests) == 3
    assert (result.stop_reason, result.text) == (SubagentStopReason.COMPLETED, "That is all.")
    assert len(result.messages) == 1
    assert [(call.title, call.kind, call.status) for call in result.tool_calls] == [
        ("write", ToolKind.EDIT, ToolStatus.COMPLETED),
        ("read", ToolKind.READ, ToolStatus.FAILED),
    ]
    assert all(call.raw_input and call.content for call in result.tool_calls)


async def test_a_model_at_its_token_limit_ends_the_run_with_what_it_said(dsh: Dsh, launch: Launch) -> None:
    with dsh.is_cut_off(launch.workspace) as scene:
        result = await run_through(launch, scene)
    assert (result.stop_reason, result.text) == (SubagentStopReason.MAX_TOKENS, scene.answer)
    assert result.diagnostic is None


async def test_a_failing_model_is_an_error_without_the_models_words(dsh: Dsh, launch: Launch) -> None:
    with dsh.is_refused(launch.workspace) as scene:
        result = await run_through(launch, scene)
    assert result.stop_reason is SubagentStopReason.ERROR
    assert result.diagnostic == (
        "Subagent failure (provider: DSH SDK; stage: session-run; category: child-error)"
    )
    assert "scripted" not in f"{result!r} {result.failure!r}"


async def test_what_a_failed_model_call_had_said_is_partial_output(dsh: Dsh, launch: Launch) -> None:
    with ModelServer([Answer(("The first", " half"), finish_reason="content_filter")]) as model:
        result = await run_through(launch, dsh.scene(launch.workspace, model))
    assert result.stop_reason is SubagentStopReason.ERROR
    assert result.text == "The first half"


async def test_a_tool_tells_the_parents_model_what_a_failure_says(dsh: Dsh, launch: Launch) -> None:
    with dsh.is_cut_off(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents, open_job_table() as jobs:
            subagents.register(provider(launch, scene))
            tool = SubagentTool(subagents, "real", jobs=jobs)
            parent = launch.request(scene).parent
            told = await tool.call({"description": "a task", "prompt": scene.prompt}, parent)
    assert told.is_error
    assert told.text == (
        "The subagent reached its token limit before it finished.\n"
        "Partial output before the run ended:\nThe first half"
    )
    assert launch.alive() == []


@pytest.mark.parametrize("make", [Dsh.listens, Dsh.works_on], ids=["its model answers", "its tool runs"])
async def test_a_turn_is_cancelled_in_the_middle(
    make: Callable[[Dsh, Path], AbstractContextManager[Scene]], dsh: Dsh, launch: Launch
) -> None:
    with make(dsh, launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(provider(launch, scene))
            async with await subagents.start("real", launch.request(scene)) as run:
                assert not isinstance(run, SupportsResume)
                assert scene.begun is not None
                await scene.begun()
                run.cancel()
                result = await run.result()
                report = await run.dispose()
        assert scene.over()
    assert (result.stop_reason, result.diagnostic) == (SubagentStopReason.ABORTED, None)
    assert report.clean
    assert launch.alive() == []


async def test_a_crash_in_the_middle_is_told(dsh: Dsh, launch: Launch) -> None:
    failures: list[Failure] = []
    with dsh.listens(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents(on_failure=failures.append) as subagents:
            subagents.register(provider(launch, scene))
            async with await subagents.start("real", launch.request(scene)) as run:
                assert scene.begun is not None
                await scene.begun()
                for pid in launch.processes():
                    os.kill(pid, signal.SIGKILL)
                result = await run.result()
    assert result.diagnostic == (
        "Subagent failure (provider: DSH SDK; stage: session-run; category: transport; signal: SIGKILL)"
    )
    assert failures == [result.failure]
    assert launch.alive() == []


async def test_a_model_that_the_runtime_does_not_have_fails_the_start(dsh: Dsh, launch: Launch) -> None:
    with dsh.answers(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(provider(launch, scene, provider="nobody"))
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("real", launch.request(scene))
    assert str(caught.value) == (
        "Subagent failure (provider: DSH SDK; stage: initialize; category: protocol; rpc code: -32603)"
    )
    assert "nobody" not in repr(caught.value)
    assert launch.alive() == []
