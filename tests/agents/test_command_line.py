"""Agents written elsewhere, through ``python -m acp_subagent run``."""

from __future__ import annotations

import signal

import pytest
import trio

from tests.agents.launch import PROVISION_TIMEOUT_SECONDS, RUN_BOUND_SECONDS, Launch, first_of
from tests.agents.scenes import NOTE, RealAgent

pytestmark = [pytest.mark.agents, pytest.mark.timeout(PROVISION_TIMEOUT_SECONDS)]

#: What a shell is told about a program that was interrupted.
INTERRUPTED = 130


async def test_the_answer_is_printed_and_a_denial_is_told_on_stderr(agent: RealAgent, launch: Launch) -> None:
    with agent.asks(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        async with launch.command_line(scene) as running:
            code, output = await running.outcome()
    assert code == 0, running.errors
    assert output.rstrip().endswith(scene.answer_denied)
    assert b"--permission" in running.errors, "it says which option changes that"
    assert scene.trace is None or not scene.trace.exists()
    assert launch.alive() == []


async def test_an_allowed_tool_call_is_in_the_object(agent: RealAgent, launch: Launch) -> None:
    with agent.asks(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        options = ["--permission", "allow", "--format", "json"]
        async with launch.command_line(scene, *options) as running:
            code, result = await running.json_outcome()
    assert code == 0, running.errors
    assert result["stop_reason"] == "completed"
    assert result["text"].endswith(scene.answer)
    assert [record["decision"] for record in result["permissions"]] == ["allowed"]
    assert result["teardown"]["survivors"] == 0
    if scene.trace is not None:
        assert scene.trace.read_text().strip() == NOTE
    assert launch.alive() == []


async def test_an_interrupt_cancels_the_turn_in_the_middle(agent: RealAgent, launch: Launch) -> None:
    with agent.works_on(launch.workspace) as scene, trio.fail_after(RUN_BOUND_SECONDS):
        # As it streams, the text shows that the turn has begun; the object comes only at the end.
        options = [] if scene.begun is None else ["--format", "json"]
        async with launch.command_line(scene, *options) as running:
            has_begun = await first_of(scene.begun or running.first_words, running.process.wait)
            assert has_begun, running.errors
            running.process.send_signal(signal.SIGINT)
            if scene.begun is None:
                code, _ = await running.outcome()
            else:
                code, result = await running.json_outcome()
                assert result["stop_reason"] == "aborted"
                assert result["diagnostic"] is None
                assert result["teardown"]["survivors"] == 0
        assert code == INTERRUPTED, running.errors
        assert scene.over()
    assert launch.alive() == []
