"""From the facts of how something ended to what is said about it.

Owns what a verdict of this provider has beside its failure line: the permission line. Pure and total: every
combination of facts has one answer. The rows are `acp.failure_table`'s, the way from a row to a verdict is
`supervised.verdicts`', gathering the facts is the driver's work.
"""

from __future__ import annotations

from acp_subagent.acp.failure_table import Facts, row_of
from acp_subagent.acp.permissions import PermissionPolicy
from acp_subagent.acp.vocabulary import PROVIDER_LABEL, Reason, Stage
from acp_subagent.seam.activity import PermissionDecision, PermissionRecord, TeardownReport
from acp_subagent.supervised.verdicts import Verdict, teardown_facts, verdict_of

__all__ = ["Facts", "Verdict", "classify", "classify_teardown", "permission_line"]


def classify(facts: Facts) -> Verdict:
    """What is said about `facts`. Total: every combination has an answer, and nothing raises."""
    row = row_of(facts)
    # Only a turn has permissions to speak of; those of a start belong to no task yet.
    in_turn = row.shows_permission and facts.stage is Stage.PROMPT
    permission = permission_line(facts.permission) if in_turn else None
    return verdict_of(row, facts, provider=PROVIDER_LABEL, reasons=Reason, second_line=permission)


def classify_teardown(report: TeardownReport) -> Verdict | None:
    """What is said about a teardown; None when the tree is gone and its end was seen."""
    facts = teardown_facts(Facts, Stage.TEARDOWN, report)
    return None if facts is None else classify(facts)


def permission_line(record: PermissionRecord | None) -> str | None:
    """The line for a decision; None for no record, and for one that nobody decided."""
    if record is None or record.decision is PermissionDecision.CANCELLED:
        return None
    # The record's policy is a plain string in the seam; only our own words get into a diagnostic.
    policy = next((word for word in PermissionPolicy if word == record.policy), None)
    if policy is None:
        return None
    return f"ACP permission (policy: {policy}; request: {record.kind}; decision: {record.decision})"
