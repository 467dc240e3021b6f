"""The exit code: every outcome has one, as a product, and each code is met with a real agent."""

from __future__ import annotations

import os
import signal
from itertools import product
from pathlib import Path

import pytest

from acp_subagent.acp.vocabulary import Category
from acp_subagent.cli.exit_codes import BY_CATEGORY, ExitCode, exit_code
from acp_subagent.cli.outcome import as_result
from acp_subagent.errors import (
    ConfigurationError,
    SubagentAbortedError,
    SubagentStartError,
    SubagentTeardownError,
    UnsupportedCapabilityError,
)
from acp_subagent.seam.activity import ExitStatus, Rung, TeardownReport
from acp_subagent.seam.result import Failure, SubagentResult, SubagentStopReason
from tests.cli.driver import NOTHING_IS_KILLED, CommandLine, Scenario, arguments, run, turn
from tests.fake.driver import LifeSocket

CLEAN = TeardownReport({Rung.EOF: 0.1}, processes_found=1, survivors=0, exit_status=ExitStatus(code=0))
SURVIVED = TeardownReport({Rung.KILL: 2.0}, processes_found=2, survivors=1, exit_status=None)
FAILED = TeardownReport({}, processes_found=1, survivors=0, exit_status=None, failed=True)

#: the codes of a failed run or start, by category, spelled out here a second time
CODES = {
    Category.CONFIGURATION: 2,
    Category.PROCESS_START: 2,
    Category.PROCESS_EXIT: 1,
    Category.TRANSPORT: 1,
    Category.AUTH_REQUIRED: 6,
    Category.SESSION_LOST: 4,
    Category.REMOTE_ERROR: 1,
    Category.REMOTE_LIMIT: 7,
    Category.PROTOCOL: 1,
    Category.TIMEOUT: 3,
    Category.SURVIVORS: 8,
    Category.UNKNOWN: 1,
}


def failure(category: str, stage: str = "prompt") -> Failure:
    return Failure(diagnostic="a line", stage=stage, category=category)


def ended(stop_reason: str, category: str | None = None) -> SubagentResult:
    return SubagentResult(
        stop_reason=stop_reason, failure=None if category is None else failure(category), teardown=CLEAN
    )


def teardown_error(report: TeardownReport, result: SubagentResult | None) -> SubagentTeardownError:
    category = Category.SURVIVORS if report.survivors else Category.UNKNOWN
    return SubagentTeardownError(
        "a line", failure=failure(category, "teardown"), report=report, result=result
    )


def test_the_table_of_categories_is_total() -> None:
    assert set(CODES) == set(Category)
    assert set(BY_CATEGORY) <= set(Category)


@pytest.mark.parametrize(("category", "interrupted"), list(product(Category, [False, True])))
def test_a_failure_has_the_code_of_its_category(category: Category, interrupted: bool) -> None:
    expected = CODES[category]
    assert exit_code(ended("error", category), interrupted=interrupted) == expected
    error = SubagentStartError("a line", failure=failure(category))
    assert exit_code(error, interrupted=interrupted) == expected


@pytest.mark.parametrize(
    ("stop_reason", "code"),
    [
        (SubagentStopReason.COMPLETED, 0),
        (SubagentStopReason.REFUSAL, 5),
        (SubagentStopReason.MAX_TOKENS, 7),
        (SubagentStopReason.ERROR, 1),
        ("a-word-of-another-provider", 1),
    ],
)
def test_a_run_that_ended_by_itself_has_the_code_of_its_stop_reason(stop_reason: str, code: int) -> None:
    """A signal that came too late to change anything does not change the code either."""
    assert exit_code(ended(stop_reason)) == code
    assert exit_code(ended(stop_reason), interrupted=True) == code


def test_aborted_is_interrupted_only_when_it_was_our_signal() -> None:
    for outcome in (ended("aborted"), SubagentAbortedError(), teardown_error(FAILED, None)):
        assert exit_code(outcome, interrupted=True) == ExitCode.INTERRUPTED
        assert exit_code(outcome) == ExitCode.FAILED


@pytest.mark.parametrize(
    ("stop_reason", "category", "interrupted"),
    [
        *product(SubagentStopReason, [None], [False, True]),
        *product(["error"], Category, [False, True]),
    ],
)
def test_survivors_win_over_every_other_outcome(
    stop_reason: str, category: str | None, interrupted: bool
) -> None:
    error = teardown_error(SURVIVED, ended(stop_reason, category))
    assert exit_code(error, interrupted=interrupted) == ExitCode.SURVIVORS
    start = SubagentStartError(
        "a line", failure=failure(category or "unknown"), teardown=teardown_error(SURVIVED, None)
    )
    assert exit_code(start, interrupted=interrupted) == ExitCode.SURVIVORS
    assert exit_code(teardown_error(SURVIVED, None), interrupted=interrupted) == ExitCode.SURVIVORS


@pytest.mark.parametrize(("stop_reason", "code"), [("completed", 1), ("refusal", 5), ("max-tokens", 7)])
def test_a_teardown_in_doubt_is_never_a_success(stop_reason: str, code: int) -> None:
    assert exit_code(teardown_error(FAILED, ended(stop_reason))) == code


def test_a_wrong_call_is_a_usage_error_and_anything_unexpected_a_failure() -> None:
    assert exit_code(ConfigurationError("a sentence")) == ExitCode.USAGE
    assert exit_code(UnsupportedCapabilityError("image")) == ExitCode.USAGE
    assert exit_code(KeyError("x")) == ExitCode.FAILED


def test_a_teardown_error_keeps_what_the_result_said() -> None:
    result = SubagentResult(stop_reason="error", diagnostic="the first", failure=failure("timeout"))
    both = as_result(
        SubagentTeardownError("the second", failure=failure("survivors"), report=SURVIVED, result=result)
    )
    assert both.diagnostic == "the first\nthe second"
    assert both.failure is result.failure
    assert both.teardown is SURVIVED


AUTH: Scenario = {"session_new": {"needs_auth": True}, "auth_methods": [{"id": "login", "name": "Login"}]}


@pytest.mark.parametrize(
    ("scenario", "options", "code"),
    [
        pytest.param(turn({"text": "done"}), [], 0, id="completed"),
        pytest.param(turn({"error": {"code": -32603, "message": "no"}}), [], 1, id="remote error"),
        pytest.param(turn({"stop": "cancelled"}), [], 1, id="cancelled by the agent"),
        pytest.param(turn({"exit": 0}), [], 1, id="exit in the turn"),
        pytest.param(["/no/such/agent"], [], 2, id="command not found"),
        pytest.param([""], [], 2, id="empty command"),
        pytest.param({}, ["--cwd", "/no/such/directory"], 2, id="working directory not found"),
        pytest.param(turn({"wait_cancel": True}), ["--turn-timeout", "0.2"], 3, id="turn deadline"),
        pytest.param(
            {"initialize": {"no_answer": True}}, ["--startup-timeout", "1"], 3, id="startup deadline"
        ),
        pytest.param(turn({"stop": "refusal"}), [], 5, id="refused"),
        pytest.param(AUTH, [], 6, id="login needed"),
        pytest.param(turn({"stop": "max_tokens"}), [], 7, id="token limit"),
        pytest.param(turn({"stop": "max_turn_requests"}), [], 7, id="limit of model calls"),
    ],
)
def test_a_real_run_has_the_code_of_its_end(
    scenario: Scenario | list[str], options: list[str], code: int
) -> None:
    done = run(scenario, "--format", "json", *options)
    assert done.code == code, done.stderr
    assert "Traceback" not in done.stderr
    assert set(done.json) >= {"stop_reason", "failure", "teardown"}


@pytest.mark.parametrize("output", ["text", "json"])
def test_survivors_are_told_and_win_over_an_interruption(tmp_path: Path, output: str) -> None:
    marker = tmp_path / "cancelled"
    with LifeSocket(tmp_path) as life:
        stubborn = turn(
            {"text": "begun"},
            {"wait_cancel": True},
            {"touch_file": str(marker)},
            {"sleep": 600},
            start=[{"ignore_term": True}],
            on_eof={"ignore": True},
            on_cancel="ignore",
            life_socket=life.path,
            lifetime_seconds=60,
        )
        with CommandLine(arguments(stubborn, "--format", output), code=NOTHING_IS_KILLED) as started:
            connection, said = life.accept()
            if output == "text":
                started.read_until("begun")
            else:
                started.read_until("stage: prompt", "stderr")
            started.signal(signal.SIGINT)
            started.read_until("once more", "stderr")
            started.signal(signal.SIGINT)
            done = started.end()
            os.kill(int(said.split()[1]), signal.SIGKILL)
            assert connection.recv(1) == b""
    assert done.code == 8, done.stderr
    assert "category: survivors" in done.stderr
    if output == "json":
        assert done.json["teardown"]["survivors"] == 1
        assert done.json["stop_reason"] == "aborted"
        assert done.json["failure"] == {"stage": "teardown", "category": "survivors", "reason": None}
    else:
        assert done.stdout == "begun\n"
        assert "survivors: 1" in done.stderr
