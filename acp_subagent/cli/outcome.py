"""What a run came to, as one record, whether it was returned or raised.

Owns the reading of the three errors as results, so that text, JSON and exit code say the same. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from acp_subagent.errors import SubagentAbortedError, SubagentStartError, SubagentTeardownError
from acp_subagent.seam.diagnostic import join_lines
from acp_subagent.seam.result import SubagentResult, SubagentStopReason

#: what `SubagentService.run` returns, or raises for anything but a wrong call
Outcome: TypeAlias = SubagentResult | SubagentStartError | SubagentTeardownError | SubagentAbortedError


def as_result(outcome: Outcome) -> SubagentResult:
    """The outcome as a result; what an error does not know stays empty."""
    if isinstance(outcome, SubagentResult):
        return outcome
    if isinstance(outcome, SubagentStartError):
        return SubagentResult(
            stop_reason=SubagentStopReason.ERROR,
            diagnostic=str(outcome),
            failure=outcome.failure,
            exit_status=outcome.failure.exit_status,
            teardown=None if outcome.teardown is None else outcome.teardown.report,
        )
    aborted = SubagentResult(stop_reason=SubagentStopReason.ABORTED)
    if isinstance(outcome, SubagentAbortedError):
        return aborted
    settled = outcome.result or aborted
    return replace(
        settled,
        diagnostic=join_lines(settled.diagnostic, str(outcome)),
        failure=settled.failure or outcome.failure,
        exit_status=settled.exit_status or outcome.failure.exit_status,
        teardown=outcome.report,
    )
