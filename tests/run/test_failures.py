"""Every row of the failure table that one turn can meet, each provoked with a real child."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from acp_subagent import (
    AcpConfig,
    ConfigurationError,
    Deadlines,
    ExitStatus,
    Failure,
    Parent,
    PermissionRequest,
    SubagentResult,
    SubagentStartError,
)
from acp_subagent.acp.vocabulary import ADVICE, Reason
from tests.process.test_launch import as_an_ordinary_user
from tests.process.test_spawn import descriptors_left
from tests.run.rows import ASK, START_ROWS, Row, line
from tests.run.stage import Stage
from tests.run.turn_rows import TURN_ROWS
from tests.run.waiting import passing


@pytest.mark.parametrize("row", START_ROWS, ids=lambda row: row.name)
async def test_a_failed_start_says_why(row: Row, stage: Stage, clock: MockClock) -> None:
    async with stage.service(row.scenario, faulty=True, **row.settings) as subagents:
        async with passing(clock, row, stage.logs[0][0]):
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("fake", stage.request())
    assert str(caught.value) == row.expected
    assert caught.value.teardown is None
    assert [failure.diagnostic for failure in stage.failures] == [row.expected]
    expect_advice(caught.value.failure)


@pytest.mark.parametrize("row", TURN_ROWS, ids=lambda row: row.name)
async def test_a_turn_says_how_it_ended(row: Row, stage: Stage, clock: MockClock) -> None:
    async with stage.service(row.scenario, faulty=True, **row.settings) as subagents:
        async with passing(clock, row, stage.logs[0][0]):
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
        expect_advice(result.failure)


def expect_advice(failure: Failure) -> None:
    """Every reason comes with its sentence of advice, and nothing else does."""
    assert failure.advice == (None if failure.reason is None else ADVICE[Reason(failure.reason)])
    assert f"reason: {failure.reason}" in failure.diagnostic or failure.reason is None


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
    expect_advice(caught.value.failure)


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
    expect_advice(caught.value.failure)


async def test_a_start_without_a_descriptor_left_is_refused(stage: Stage) -> None:
    async with stage.service({}, service={"reaper": False}) as subagents:
        assert (await subagents.run("fake", stage.request())).stop_reason == "completed"
        for spare in (0, 2, 4):
            with descriptors_left(spare), pytest.raises(SubagentStartError) as caught:
                await subagents.start("fake", stage.request())
            expected = line("stage: process; category: process-start; reason: out-of-descriptors")
            assert str(caught.value) == expected
            assert caught.value.failure.retryable
            expect_advice(caught.value.failure)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "cwd-not-found"),
        ("a\0b", "cwd-not-found"),
        ("file", "cwd-not-directory"),
    ],
)
async def test_a_parents_directory_that_cannot_be_used_is_refused(
    name: str, reason: str, stage: Stage
) -> None:
    (stage.folder / "file").write_text("")
    async with stage.service({}, cwd=None) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request(parent=Parent(cwd=str(stage.folder / name))))
    assert str(caught.value) == line(f"stage: initialize; category: configuration; reason: {reason}")
    expect_advice(caught.value.failure)


async def test_a_parents_directory_that_may_not_be_entered_is_refused(stage: Stage) -> None:
    # Not below the test's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as closed:
        async with stage.service({}, cwd=None) as subagents:
            with as_an_ordinary_user(closed), pytest.raises(SubagentStartError) as caught:
                await subagents.start("fake", stage.request(parent=Parent(cwd=closed)))
    expected = line("stage: initialize; category: configuration; reason: cwd-not-enterable")
    assert str(caught.value) == expected
    expect_advice(caught.value.failure)


async def test_a_directory_that_goes_after_the_provider_was_made_is_refused(stage: Stage) -> None:
    directory = stage.folder / "gone"
    directory.mkdir()
    async with stage.service({}, cwd=str(directory)) as subagents:
        directory.rmdir()
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert str(caught.value) == line("stage: initialize; category: configuration; reason: cwd-not-found")


async def test_a_directory_that_goes_while_the_start_waits_is_refused(stage: Stage) -> None:
    directory, texts = stage.folder / "gone", list[str]()
    directory.mkdir()

    async def start_second() -> None:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("second", stage.request())
        texts.append(str(caught.value))

    async with stage.service({}, service={"max_concurrent_runs": 1}) as subagents:
        subagents.register(stage.provider({}, name="second", cwd=str(directory)))
        async with trio.open_nursery() as nursery:
            async with await subagents.start("fake", stage.request()):
                nursery.start_soon(start_second)
                await trio.testing.wait_all_tasks_blocked()
                directory.rmdir()
    assert texts == [line("stage: initialize; category: configuration; reason: cwd-not-found")]


async def test_waiting_for_a_place_counts_in_the_startup_deadline(stage: Stage) -> None:
    scenario = {"turns": [[{"wait_cancel": True}]]}
    async with stage.service(scenario, service={"max_concurrent_runs": 1}) as subagents:
        async with await subagents.start("fake", stage.request()):
            late = stage.request(deadlines=Deadlines(startup_seconds=0.2))
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("fake", late)
    expected = line("stage: initialize; category: timeout; reason: startup-deadline")
    assert str(caught.value) == expected


@pytest.mark.parametrize(("wish", "decision"), [("allow", "allowed"), ("deny", "denied"), (None, "denied")])
async def test_the_decision_of_a_handler_is_told(wish: str | None, decision: str, stage: Stage) -> None:
    async def handler(request: PermissionRequest) -> str | None:
        return wish

    settings: dict[str, Any] = {"permission": "ask", "permission_handler": handler}
    async with stage.service({"turns": [[ASK, {"stop": "refusal"}]]}, **settings) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.diagnostic == f"ACP permission (policy: ask; request: edit; decision: {decision})"
    assert result.failure is None


async def test_the_policy_rules_is_refused_and_would_deny(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="`rules` is not available"):
        stage.provider({}, permission="rules")
    monkeypatch.setattr(AcpConfig, "check", lambda config: None)
    scenario = {"turns": [[ASK, {"stop": "refusal"}]]}
    async with stage.service(scenario, permission="rules") as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.diagnostic == "ACP permission (policy: rules; request: edit; decision: denied)"


async def test_a_request_that_is_still_open_is_no_decision(stage: Stage, clock: MockClock) -> None:
    async def never(request: PermissionRequest) -> None:
        clock.jump(10.0)
        await trio.sleep_forever()

    settings: dict[str, Any] = {
        "permission": "ask",
        "permission_handler": never,
        "turn_timeout_seconds": 10.0,
    }
    async with stage.service({"turns": [[ASK, {"wait_cancel": True}]]}, **settings) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.diagnostic == line("stage: prompt; category: timeout; reason: turn-deadline")
    assert [record.decision for record in result.permissions] == ["cancelled"]


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


async def test_the_host_finds_how_the_agent_stopped_in_the_failure(stage: Stage) -> None:
    async with stage.service({"turns": [[{"stop": "because so"}]]}, faulty=True) as subagents:
        odd = await subagents.run("fake", stage.request())
    async with stage.service({"turns": [[{"signal": "KILL"}]]}, faulty=True) as subagents:
        killed = await subagents.run("fake", stage.request())
    assert odd.failure is not None
    assert odd.failure.stop_reason == "because so"
    assert killed.failure is not None
    assert killed.failure.exit_status == ExitStatus(signal=9)


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
