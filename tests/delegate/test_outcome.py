"""What is said of each way in which a delegated task can end: whole texts, so that a word too many fails."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from acp_subagent import (
    JobStatus,
    SubagentAbortedError,
    SubagentResult,
    SubagentStartError,
    TextBlock,
    UnknownProviderError,
    UnsupportedCapabilityError,
)
from acp_subagent.delegate.outcome import (
    Outcome,
    job_detail,
    job_status,
    outcome_of,
    outcome_of_error,
    tool_result,
)
from acp_subagent.seam.diagnostic import MAX_DIAGNOSTIC_BYTES
from tests.delegate.players import START_LINE, SURVIVORS, TURN_LINE, start_failed, teardown_failed

PERMISSION = "ACP permission (policy: reject; request: edit; decision: denied)"


def result(stop_reason: str, diagnostic: str | None = None, *, said: str = "") -> SubagentResult:
    output = (TextBlock(said),) if said else ()
    return SubagentResult(stop_reason=stop_reason, diagnostic=diagnostic, output=output)


def with_failed_disposal(settled: SubagentResult) -> Outcome:
    error = teardown_failed()
    error.result = settled
    return outcome_of_error(error)


@dataclass(frozen=True)
class Row:
    """An outcome, and all that is said of it."""

    name: str
    outcome: Outcome
    text: str
    status: JobStatus
    detail: str | None = None


FAILED, KILLED = JobStatus.FAILED, JobStatus.KILLED

ROWS = [
    Row("completed", outcome_of(result("completed", said="yes")), "yes", JobStatus.COMPLETED),
    Row("completed without a word", outcome_of(result("completed")), "", JobStatus.COMPLETED),
    Row("cancelled", outcome_of(result("aborted")), "The subagent was cancelled.", KILLED),
    Row(
        "cancelled in the middle",
        outcome_of(result("aborted", said="half\nof it")),
        "The subagent was cancelled.\nPartial output before the run ended:\nhalf\nof it",
        KILLED,
    ),
    Row(
        "cancelled by the agent's side",
        outcome_of(result("aborted", PERMISSION)),
        f"The subagent was cancelled.\nDiagnostic: {PERMISSION}",
        FAILED,
        f"aborted; diagnostic: {PERMISSION}",
    ),
    Row(
        "failed",
        outcome_of(result("error", TURN_LINE, said="half")),
        f"The subagent failed.\nDiagnostic: {TURN_LINE}\nPartial output before the run ended:\nhalf",
        FAILED,
        f"error; diagnostic: {TURN_LINE}",
    ),
    Row(
        "failed after a denial",
        outcome_of(result("error", f"{TURN_LINE}\n{PERMISSION}")),
        f"The subagent failed.\nDiagnostic: {TURN_LINE}\n{PERMISSION}",
        FAILED,
        f"error; diagnostic: {TURN_LINE}\n{PERMISSION}",
    ),
    Row("failed without a diagnostic", outcome_of(result("error")), "The subagent failed.", FAILED, "error"),
    Row(
        "token limit",
        outcome_of(result("max-tokens", said="half")),
        "The subagent reached its token limit before it finished.\n"
        "Partial output before the run ended:\nhalf",
        FAILED,
        "max-tokens",
    ),
    Row("refusal", outcome_of(result("refusal")), "The subagent declined the task.", FAILED, "refusal"),
    Row(
        "a word of a provider's own",
        outcome_of(result("paused", said="half")),
        "The subagent ended abnormally.\nPartial output before the run ended:\nhalf",
        FAILED,
        "paused",
    ),
    Row(
        "the start failed",
        outcome_of_error(start_failed()),
        f"The subagent failed.\nDiagnostic: {START_LINE}",
        FAILED,
        f"error; diagnostic: {START_LINE}",
    ),
    Row(
        "the start failed, and its clean-up",
        outcome_of_error(start_failed(teardown_failed())),
        f"The subagent failed.\nDiagnostic: {START_LINE}\n{SURVIVORS}",
        FAILED,
        f"error; diagnostic: {START_LINE}\n{SURVIVORS}",
    ),
    Row("aborted", outcome_of_error(SubagentAbortedError()), "The subagent was cancelled.", KILLED),
    Row(
        "aborted, and the clean-up failed",
        outcome_of_error(teardown_failed()),
        f"The subagent was cancelled.\nDiagnostic: {SURVIVORS}",
        FAILED,
        f"aborted\n{SURVIVORS}",
    ),
    Row(
        "cancelled in the middle, and the disposal failed",
        with_failed_disposal(result("aborted", said="half")),
        f"The subagent was cancelled.\nDiagnostic: {SURVIVORS}\nPartial output before the run ended:\nhalf",
        FAILED,
        f"aborted\n{SURVIVORS}",
    ),
    Row(
        "failed, and the disposal failed",
        with_failed_disposal(result("error", TURN_LINE, said="half")),
        f"The subagent failed.\nDiagnostic: {TURN_LINE}\n{SURVIVORS}\n"
        "Partial output before the run ended:\nhalf",
        FAILED,
        f"error; diagnostic: {TURN_LINE}\n{SURVIVORS}",
    ),
    Row(
        "completed, and the disposal failed",
        with_failed_disposal(result("completed", said="yes")),
        f"The subagent ended abnormally.\nDiagnostic: {SURVIVORS}\nPartial output before the run ended:\nyes",
        FAILED,
        f"completed\n{SURVIVORS}",
    ),
    Row(
        "no such provider any more",
        outcome_of_error(UnknownProviderError("No provider is registered under this name.")),
        "The subagent failed.\nDiagnostic: No provider is registered under this name.",
        FAILED,
        "error; diagnostic: No provider is registered under this name.",
    ),
    Row(
        "a capability that is not there",
        outcome_of_error(UnsupportedCapabilityError("depth_limit")),
        "The subagent failed.\nDiagnostic: capability not supported: depth_limit",
        FAILED,
        "error; diagnostic: capability not supported: depth_limit",
    ),
    Row(
        "a foreign exception",
        outcome_of_error(RuntimeError("CANARY")),
        "The subagent failed.",
        FAILED,
        "error",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_outcome_is_told_in_these_words(row: Row) -> None:
    told = tool_result(row.outcome)
    assert told.text == row.text
    assert told.is_error == (row.status is not JobStatus.COMPLETED)
    assert job_status(row.outcome) is row.status
    assert job_detail(row.outcome) == row.detail


def test_both_the_result_and_the_failed_disposal_are_kept() -> None:
    error = teardown_failed()
    error.result = result("error", TURN_LINE)
    told = tool_result(outcome_of_error(error))
    assert told.result is error.result
    assert told.errors == (error,)


def test_both_errors_of_a_failed_start_are_kept() -> None:
    teardown = teardown_failed()
    start = start_failed(teardown)
    told = tool_result(outcome_of_error(start))
    assert told.result is None
    assert told.errors == (start, teardown)


def test_a_kept_error_holds_no_frames() -> None:
    with pytest.raises(SubagentStartError) as caught:
        raise start_failed()
    assert outcome_of_error(caught.value).errors == (caught.value,)
    assert caught.value.__traceback__ is None


def test_two_long_diagnostics_are_one_of_the_permitted_length() -> None:
    long = "x" * MAX_DIAGNOSTIC_BYTES
    text = tool_result(with_failed_disposal(result("error", long))).text
    headline, diagnostic = text.split("\nDiagnostic: ")
    assert headline == "The subagent failed."
    assert len(diagnostic.encode()) == MAX_DIAGNOSTIC_BYTES
    assert diagnostic.endswith("\n[diagnostic truncated]")


def test_no_repr_shows_what_an_agent_said() -> None:
    outcome = with_failed_disposal(result("aborted", said="CANARY"))
    told = tool_result(outcome)
    assert "CANARY" in told.text
    assert "CANARY" not in f"{outcome!r}{told!r}{told.errors!r}"
    assert repr(told) == "<ToolResult error>"
    assert "CANARY" not in repr(outcome_of_error(RuntimeError("CANARY")))
