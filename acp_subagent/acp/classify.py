"""From the facts of how something ended to what is said about it.

Owns the way from a row of `acp.failure_table` to a verdict and its diagnostic. Pure and total: every
combination of facts has one answer. Gathering the facts is the driver's work; the form of the line and its
size limit are `seam.diagnostic`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from acp_subagent.acp.failure_table import Facts, Row, row_of
from acp_subagent.acp.permissions import PermissionPolicy
from acp_subagent.acp.vocabulary import PROVIDER_LABEL, Category, Reason, Stage
from acp_subagent.seam.activity import PermissionDecision, PermissionRecord, TeardownReport
from acp_subagent.seam.diagnostic import failure_line, join_lines
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.ending import End

__all__ = ["Facts", "Verdict", "classify", "classify_teardown", "permission_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is said about it. `category` is None when nothing failed, and then there is no failure line."""

    stop_reason: SubagentStopReason
    stage: Stage
    category: Category | None = None
    reason: Reason | None = None
    diagnostic: str | None = None  #: the safe, bounded text; None when there is nothing to say


def classify(facts: Facts) -> Verdict:
    """What is said about `facts`. Total: every combination has an answer, and nothing raises."""
    row = row_of(facts)
    stage = facts.stage if facts.stage in row.stages else row.stages[0]
    reason = _reason(row, facts)
    line = None
    if row.category is not None:
        line = failure_line(
            provider=PROVIDER_LABEL,
            stage=stage,
            category=row.category,
            stop_reason=row.shown_stop_reason,
            exit_status=facts.exit_status if row.shows_exit else None,
            rpc_code=facts.rpc_code if row.shows_code else None,
            reason=reason,
        )
    # Only a turn has permissions to speak of; those of a start belong to no task yet.
    in_turn = row.shows_permission and facts.stage is Stage.PROMPT
    permission = permission_line(facts.permission) if in_turn else None
    return Verdict(
        stop_reason=row.stop_reason,
        stage=stage,
        category=row.category,
        reason=reason,
        diagnostic=join_lines(line, permission) or None,
    )


def classify_teardown(report: TeardownReport) -> Verdict | None:
    """What is said about a teardown; None when the tree is gone and its end was seen."""
    if report.clean:
        return None
    return classify(
        Facts(
            stage=Stage.TEARDOWN,
            end=End.UNEXPECTED if report.failed else End.UNANSWERED,
            exit_status=report.exit_status,
            survivors=report.survivors,
        )
    )


def permission_line(record: PermissionRecord | None) -> str | None:
    """The line for a decision; None for no record, and for one that nobody decided."""
    if record is None or record.decision is PermissionDecision.CANCELLED:
        return None
    # The record's policy is a plain string in the seam; only our own words get into a diagnostic.
    policy = next((word for word in PermissionPolicy if word == record.policy), None)
    if policy is None:
        return None
    return f"ACP permission (policy: {policy}; request: {record.kind}; decision: {record.decision})"


def _reason(row: Row, facts: Facts) -> Reason | None:
    """The reason to give: the row's own, or the one that came with the facts where the row says so.

    A word that is not one of `Reason` is dropped, so that none can slip into a diagnostic.
    """
    if row.reason is not None:
        return row.reason
    word = facts.deadline if row.shows_deadline else facts.reason if row.shows_reason else None
    return next((reason for reason in Reason if reason == word), None)
