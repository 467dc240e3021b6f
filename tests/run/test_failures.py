"""Every row of the failure table that one turn can meet, each provoked with a real child.

The expected texts are whole lines, so that a word or a field too many is a failure.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from acp_subagent import SubagentResult, SubagentStartError
from tests.run.stage import Stage

PERMISSION_LINE = "ACP permission (policy: reject; request: edit; decision: denied)"
ASK = {"permission": {"tool_call": {"toolCallId": "c", "title": "t", "kind": "edit"}}}


def line(fields: str) -> str:
    """The failure line of the ACP provider with these fields."""
    return f"Subagent failure (provider: ACP; {fields})"


@dataclass(frozen=True)
class Row:
    """A fact and what is said about it."""

    name: str
    scenario: dict[str, Any]
    expected: str | None
    stop_reason: str = "error"
    settings: dict[str, Any] = field(default_factory=dict)


def exits(**how: Any) -> list[dict[str, Any]]:
    return [how]


START_ROWS = [
    Row(
        "the process exits before initialize is answered",
        {"initialize": {"before_answer": exits(exit=4)}},
        line("stage: initialize; category: process-exit; exit code: 4"),
    ),
    Row(
        "the process exits cleanly before initialize is answered",
        {"initialize": {"before_answer": exits(exit=0)}},
        line("stage: initialize; category: process-exit; exit code: 0"),
    ),
    Row(
        "a signal ends the process before the session is open",
        {"session_new": {"before_answer": exits(signal="KILL")}},
        line("stage: new-session; category: process-exit; signal: SIGKILL"),
    ),
    Row(
        "stdout ends and the process stays",
        {"initialize": {"before_answer": [{"close_stdout": True}, {"sleep": 20}]}},
        line("stage: initialize; category: transport"),
    ),
    Row(
        "stdout ends before the session is open and the process stays",
        {"session_new": {"before_answer": [{"close_stdout": True}, {"sleep": 20}]}},
        line("stage: new-session; category: transport"),
    ),
    Row(
        "a login is needed",
        {"session_new": {"error": {"code": -32000, "message": "Authentication required"}}},
        line("stage: new-session; category: auth-required; rpc code: -32000"),
    ),
    Row(
        "initialize is answered with an error",
        {"initialize": {"error": {"code": -32602, "message": "no"}}},
        line("stage: initialize; category: remote-error; rpc code: -32602"),
    ),
    Row(
        "an error of a code that is not in the list",
        {"session_new": {"error": {"code": -31999, "message": "no"}}},
        line("stage: new-session; category: remote-error"),
    ),
    Row(
        "another protocol version",
        {"initialize": {"merge": {"protocolVersion": 2}}},
        line("stage: initialize; category: protocol; reason: version-mismatch"),
    ),
    Row(
        "noise and nothing else",
        {"start": [{"raw": {"text": "starting ...\n", "repeat": 200}}], "initialize": {"no_answer": True}},
        line("stage: initialize; category: protocol; reason: never-spoke-acp"),
    ),
    Row(
        "the answer to initialize is malformed",
        {"initialize": {"result": {"protocolVersion": "1"}}},
        line("stage: initialize; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "no session id",
        {"session_new": {"result": {}}},
        line("stage: new-session; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a session id that is no string",
        {"session_new": {"result": {"sessionId": 7}}},
        line("stage: new-session; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a frame that is too large",
        {"session_new": {"before_answer": [{"raw": {"text": "x", "repeat": 200_000}}, {"sleep": 20}]}},
        line("stage: new-session; category: protocol; reason: frame-too-large"),
        settings={"max_frame_bytes": 100_000},
    ),
    Row(
        "the startup deadline passes during initialize",
        {"initialize": {"no_answer": True}},
        line("stage: initialize; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": 0.5},
    ),
    Row(
        "the startup deadline passes before the session is open",
        {"session_new": {"no_answer": True}},
        line("stage: new-session; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": 1.0},
    ),
]


@pytest.mark.parametrize("row", START_ROWS, ids=lambda row: row.name)
async def test_a_failed_start_says_why(row: Row, stage: Stage) -> None:
    async with stage.service(row.scenario, faulty=True, **row.settings) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert str(caught.value) == row.expected
    assert caught.value.teardown is None
    assert [failure.diagnostic for failure in stage.failures] == [row.expected]


TURN_ROWS = [
    Row("end_turn", {"turns": [[ASK, {"stop": "end_turn"}]]}, None, "completed"),
    Row("max_tokens", {"turns": [[{"stop": "max_tokens"}]]}, None, "max-tokens"),
    Row(
        "max_tokens after a denial",
        {"turns": [[ASK, {"stop": "max_tokens"}]]},
        PERMISSION_LINE,
        "max-tokens",
    ),
    Row("refusal", {"turns": [[{"stop": "refusal"}]]}, None, "refusal"),
    Row("refusal after a denial", {"turns": [[ASK, {"stop": "refusal"}]]}, PERMISSION_LINE, "refusal"),
    Row("a remote cancel", {"turns": [[{"stop": "cancelled"}]]}, None, "aborted"),
    Row(
        "a remote cancel after a denial",
        {"turns": [[ASK, {"stop": "cancelled"}]]},
        PERMISSION_LINE,
        "aborted",
    ),
    Row(
        "max_turn_requests",
        {"turns": [[{"stop": "max_turn_requests"}]]},
        line("stage: prompt; category: remote-limit; stop reason: max_turn_requests"),
    ),
    Row(
        "a stop reason that is not known",
        {"turns": [[ASK, {"stop": "CANARY"}]]},
        line("stage: prompt; category: unknown; stop reason: unknown") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "no stop reason",
        {"turns": [[{"stop": {}}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a stop reason that is no string",
        {"turns": [[{"stop": 5}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a JSON-RPC error",
        {"turns": [[{"error": {"code": -32603, "message": "CANARY", "data": "CANARY"}}]]},
        line("stage: prompt; category: remote-error; rpc code: -32603"),
    ),
    Row(
        "a login is needed in the middle",
        {"turns": [[{"error": {"code": -32000, "message": "CANARY"}}]]},
        line("stage: prompt; category: auth-required; rpc code: -32000"),
    ),
    Row(
        "the process exits",
        {"turns": [[{"text": "x"}, {"exit": 255}]]},
        line("stage: process; category: process-exit; exit code: 255"),
    ),
    Row(
        "a signal ends the process after a denial",
        {"turns": [[ASK, {"signal": "SEGV"}]]},
        line("stage: process; category: process-exit; signal: SIGSEGV") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "stdout ends and the process stays",
        {"turns": [[{"close_stdout": True}, {"sleep": 20}]]},
        line("stage: prompt; category: transport"),
    ),
    Row(
        "a frame that is too large",
        {"turns": [[{"raw": {"text": "x", "repeat": 200_000}}, {"sleep": 20}]]},
        line("stage: prompt; category: protocol; reason: frame-too-large"),
        settings={"max_frame_bytes": 100_000},
    ),
    Row(
        "the turn deadline",
        {"turns": [[{"text": {"text": "x", "forever": True, "delay_seconds": 0.05}}]]},
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.5},
    ),
    Row(
        "the idle deadline",
        {"turns": [[{"text": "x"}, {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
    Row(
        "the tool idle deadline",
        {"turns": [[{"tool_call": {"title": "t", "status": "in_progress"}}, {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: tool-idle-deadline"),
        settings={"idle_timeout_seconds": 0.1, "tool_idle_timeout_seconds": 0.5},
    ),
    Row(
        "a deadline comes before whatever the agent then does",
        {"on_cancel": "exit", "turns": [[{"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
]


@pytest.mark.parametrize("row", TURN_ROWS, ids=lambda row: row.name)
async def test_a_turn_says_how_it_ended(row: Row, stage: Stage) -> None:
    async with stage.service(row.scenario, faulty=True, **row.settings) as subagents:
        result = await subagents.run("fake", stage.request())
    assert (result.stop_reason, result.diagnostic) == (row.stop_reason, row.expected)
    expect_failure(result, stage)


def expect_failure(result: SubagentResult, stage: Stage) -> None:
    """The failure agrees with the diagnostic, and the host was told once."""
    has_line = result.diagnostic is not None and result.diagnostic.startswith("Subagent failure")
    assert (result.failure is not None) == has_line
    assert stage.failures == ([result.failure] if has_line else [])
    if result.failure is not None:
        assert result.failure.prompt_dispatched
        assert not result.failure.retryable
        assert "CANARY" not in f"{result!r}{result.failure!r}{result.failure}"


async def test_an_agent_that_stops_reading_fails_the_run_as_write_blocked(stage: Stage) -> None:
    # Questions whose answers are never read fill the pipe, then our queue.
    asking = {
        "repeat": {
            "times": 4000,
            "steps": [{"permission": {"tool_call": {"toolCallId": "c"}, "options": [], "wait": False}}],
        }
    }
    turn = [{"stop_reading": True}, asking, {"sleep": 20}]
    async with stage.service({"turns": [turn]}, faulty=True, max_unsent_bytes=50_000) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.diagnostic is not None
    assert result.diagnostic.startswith(line("stage: prompt; category: transport; reason: write-blocked"))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_text("#!/bin/sh\n"), "not-executable"),
        (lambda path: executable(path, "echo no shebang\n"), "no-shebang"),
        (lambda path: executable(path, "#!/no/such/interpreter\n"), "interpreter-missing"),
    ],
)
async def test_a_command_that_cannot_run_is_refused_with_its_reason(
    make: Any, reason: str, stage: Stage
) -> None:
    command = stage.folder / "agent"
    make(command)
    async with stage.service({}, command=str(command)) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert str(caught.value) == line(f"stage: process; category: process-start; reason: {reason}")
    assert caught.value.failure.advice is not None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"command": ""}, "command-empty"),
        ({"command": "no-such-command-anywhere"}, "command-not-found"),
        ({"args": ["a\0b"]}, "nul-byte"),
        ({"args": ["x" * 200_000]}, "arguments-too-long"),
    ],
)
async def test_a_launch_that_cannot_work_is_refused_with_its_reason(
    settings: dict[str, Any], reason: str, stage: Stage
) -> None:
    async with stage.service({}, **settings) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert str(caught.value) == line(f"stage: process; category: process-start; reason: {reason}")


async def test_the_host_finds_the_details_in_the_failure(stage: Stage) -> None:
    turn = [
        {"stderr": "from stderr"},
        {"raw": "not json\n"},
        {"error": {"code": -32603, "message": "because", "data": [1]}},
    ]
    async with stage.service({"turns": [turn]}, faulty=True) as subagents:
        result = await subagents.run("fake", stage.request())
    failure = result.failure
    assert failure is not None
    assert failure.rpc_error is not None
    assert (failure.rpc_error.code, failure.rpc_error.message) == (-32603, "because")
    assert failure.rpc_error.data == [1]
    assert "from stderr" in failure.stderr_tail
    assert failure.noise == ("not json",)
    assert (failure.stage, failure.category) == ("prompt", "remote-error")
    assert result.counters.noise_lines == 1


async def test_a_start_that_failed_before_the_prompt_can_be_tried_again(stage: Stage) -> None:
    async with stage.service({"initialize": {"before_answer": [{"exit": 1}]}}, faulty=True) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert caught.value.failure.retryable
    assert not caught.value.failure.prompt_dispatched


def executable(path: Path, text: str) -> None:
    """Write an executable file."""
    path.write_text(text)
    os.chmod(path, stat.S_IRWXU)
