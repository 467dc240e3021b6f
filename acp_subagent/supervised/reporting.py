"""From verdicts to what a caller gets: the failure record, and the start and teardown errors.

Owns how the facts that only the host may see are gathered into a `Failure`. The diagnostic is the
classifier's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from acp_subagent.errors import (
    ServiceClosedError,
    SubagentAbortedError,
    SubagentError,
    SubagentStartError,
    SubagentTeardownError,
    UnsupportedCapabilityError,
)
from acp_subagent.process.child import Child
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.seam.diagnostic import failure_line, join_lines
from acp_subagent.seam.request import SessionRef
from acp_subagent.seam.result import Counters, Failure, SubagentResult, SubagentStopReason, Timings
from acp_subagent.supervised.conversation import Conversation, Outcome
from acp_subagent.supervised.ending import End
from acp_subagent.supervised.line import Line

if TYPE_CHECKING:
    from acp_subagent.supervised.verdicts import Verdict
    from acp_subagent.wire.jsonrpc import Counters as WireCounters

_log = logging.getLogger("acp_subagent.supervised")

#: Ends after which another try may go better, as long as no prompt was sent.
_PASSING = {End.EXITED, End.STREAM_ENDED, End.WRITE_BLOCKED, End.RPC_ERROR, End.UNANSWERED}
#: Spawn faults that pass by themselves.
_PASSING_REASONS = {"out-of-descriptors"}


def describe(
    conversation: Conversation,
    verdict: Verdict,
    outcome: Outcome,
    *,
    line: Line | None = None,
    dispatched: bool = False,
) -> Failure | None:
    """The host's local detail of a failed start or turn; None when nothing failed."""
    if verdict.category is None:
        return None
    child = None if line is None else line.child
    connection = None if line is None else line.connected
    passing = outcome.end in _PASSING or outcome.reason in _PASSING_REASONS
    stderr = b"" if child is None else child.stderr_tail
    noise = [] if connection is None else connection.noise_samples
    return Failure(
        diagnostic=verdict.diagnostic or "",
        stage=str(verdict.stage),
        category=str(verdict.category),
        reason=None if verdict.reason is None else str(verdict.reason),
        cause=outcome.cause,
        rpc_error=outcome.rpc_error,
        stderr_tail=stderr.decode("utf-8", errors="replace"),
        stop_reason=conversation.raw_stop_reason(outcome),
        noise=tuple(sample.decode("utf-8", errors="replace") for sample in noise),
        exit_status=outcome.exit_status if child is None else child.exit_status,
        deadline=None if outcome.deadline is None else str(outcome.deadline),
        prompt_dispatched=dispatched,
        retryable=passing and not dispatched and conversation.retryable(verdict),
        advice=conversation.advice(verdict.reason),
    )


def bare_result(
    verdict: Verdict,
    failure: Failure | None,
    session: SessionRef | None,
    seconds: Mapping[str, float | None],
    report: TeardownReport | None,
) -> SubagentResult:
    """The result without what the turn brought.

    `seconds` are the fields of `Timings`; `report` is None when nobody waits for the ladder.
    """
    return SubagentResult(
        stop_reason=verdict.stop_reason,
        diagnostic=verdict.diagnostic,
        failure=failure,
        session=session,
        timings=Timings(**seconds),
        teardown=report,
        exit_status=None if report is None else report.exit_status,
    )


def barest_result(
    conversation: Conversation,
    outcome: Outcome,
    describe: Callable[..., Failure | None],
    *,
    dispatched: bool,
) -> SubagentResult:
    """The result of a turn where gathering what it brought may be what failed. Raises nothing."""
    result = SubagentResult(stop_reason=SubagentStopReason.ERROR)
    try:
        verdict = conversation.classify(outcome)
        failure = describe(verdict, outcome, dispatched=dispatched)
        return replace(result, diagnostic=verdict.diagnostic, failure=failure)
    except Exception as exc:  # noqa: BLE001  then there is nothing more to say
        _log.error("the end of a run cannot be told: %s", type(exc).__name__)
    return result


def with_wire(counters: Counters, wire: WireCounters) -> Counters:
    """A provider's counters, and what was counted on the wire."""
    return replace(
        counters,
        repaired_frames=wire.repaired_frames,
        noise_lines=wire.noise_lines,
        dropped_responses=wire.dropped_responses,
    )


def start_error(failure: Failure, teardown: SubagentTeardownError | None = None) -> SubagentStartError:
    """The error of a failed start; its text has the teardown's line too when the clean-up failed."""
    second = None if teardown is None else str(teardown)
    return SubagentStartError(join_lines(failure.diagnostic, second), failure=failure, teardown=teardown)


def why_not_ready(
    refusal: UnsupportedCapabilityError | None,
    failure: Failure | None,
    teardown: SubagentTeardownError | None,
    *,
    service_closed: bool,
) -> SubagentError:
    """The error for the caller of a start that brought no ready run."""
    if refusal is not None:
        if teardown is not None:
            refusal.add_note(str(teardown))
        return refusal
    if failure is not None:
        return start_error(failure, teardown)
    if teardown is not None:
        return teardown.with_traceback(None)
    if service_closed:
        return ServiceClosedError("The block of open_subagents() was left before the subagent was ready.")
    return SubagentAbortedError()


def teardown_error(
    conversation: Conversation, report: TeardownReport, child: Child | None
) -> SubagentTeardownError | None:
    """The error of a ladder that did not do all its work; None when it did."""
    verdict = conversation.classify_teardown(report)
    if verdict is None or verdict.category is None:
        return None
    failure = Failure(
        diagnostic=verdict.diagnostic or "",
        stage=str(verdict.stage),
        category=str(verdict.category),
        reason=None if verdict.reason is None else str(verdict.reason),
        cause=report.cause,
        stderr_tail="" if child is None else child.stderr_tail.decode("utf-8", errors="replace"),
        exit_status=report.exit_status,
    )
    return SubagentTeardownError(failure.diagnostic, failure=failure, report=report)


def barest_teardown_error(
    conversation: Conversation, report: TeardownReport, cause: Exception
) -> SubagentTeardownError | None:
    """The same where judging the report is what failed; None when there is nothing to tell."""
    if report.clean:
        return None
    stage, category = "teardown", "unknown"
    line = failure_line(provider=conversation.provider_label, stage=stage, category=category)
    failure = Failure(
        diagnostic=line, stage=stage, category=category, cause=cause, exit_status=report.exit_status
    )
    return SubagentTeardownError(line, failure=failure, report=report)


def log_teardown(child: Child | None, report: TeardownReport) -> None:
    """Leave a note of the ladder for whoever maintains the host."""
    if child is not None and _log.isEnabledFor(logging.DEBUG):
        rungs = ", ".join(f"{rung} {seconds:.3f} s" for rung, seconds in report.rungs.items())
        _log.debug(
            "child %d ended: %s; %d processes found, %d survived",
            child.pid,
            rungs,
            report.processes_found,
            report.survivors,
        )
