"""What one turn has brought: the record that becomes the result.

Owns the folding of a turn's updates into output, tool calls, plan and permissions, and how they fill a
result. Pure: it is told what came, in order, and never waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acp_subagent.acp.permissions import latest_decision
from acp_subagent.acp.tool_calls import note_call
from acp_subagent.seam.activity import (
    PermissionDecision,
    PermissionRecord,
    PlanEntry,
    ToolStatus,
    Usage,
)
from acp_subagent.seam.events import SessionChange, Snapshot
from acp_subagent.seam.result import Counters, SubagentResult
from acp_subagent.supervised.output import TurnOutput
from acp_subagent.supervised.tool_calls import ToolCalls, TrackedCall

#: permission records kept of one turn; the oldest goes
MAX_PERMISSIONS = 10_000


class AcpTurnRecord:
    """One turn of an ACP session, folded together."""

    def __init__(
        self,
        *,
        max_output_bytes: int,
        usage: Callable[[], Usage],
        counted: Callable[[], Counters],
        session: Callable[[], tuple[SessionChange, ...]],
    ) -> None:
        self._session = session
        self._usage = usage
        self._counted = counted
        self._denied: set[str] = set()  # ids of calls that were denied and have not been completed
        self.output = TurnOutput(max_output_bytes)
        self.tool_calls = ToolCalls()
        self.plan: tuple[PlanEntry, ...] = ()
        self.permissions: list[PermissionRecord] = []  # most turns have none, and an empty deque is large
        self.permission_violations = 0
        self.context_lost = False

    @property
    def tool_in_progress(self) -> bool:
        """Whether a tool call is in progress."""
        return self.tool_calls.in_progress

    @property
    def latest_decision(self) -> PermissionRecord | None:
        """The latest permission that somebody decided."""
        return latest_decision(self.permissions)

    def note_tool_call(self, raw: object) -> TrackedCall:
        """Merge one mention of a tool call; a denied one that is completed all the same is a violation."""
        call = note_call(self.tool_calls, raw)
        if call.id in self._denied and call.status is ToolStatus.COMPLETED:
            self._denied.discard(call.id)
            self.permission_violations += 1
        return call

    def note_permission(self, record: PermissionRecord) -> None:
        """A permission request was answered."""
        self.permissions.append(record)
        if len(self.permissions) > MAX_PERMISSIONS:
            del self.permissions[0]
        if record.decision is PermissionDecision.DENIED and len(self._denied) < MAX_PERMISSIONS:
            self._denied.add(record.tool_call_id)
        elif record.decision is PermissionDecision.ALLOWED:
            self._denied.discard(record.tool_call_id)

    def snapshot(self, stage: str) -> Snapshot:
        """The turn so far, for a subscriber that comes late."""
        return Snapshot(
            stage=str(stage),
            messages=self.output.messages(),
            tool_calls=self.tool_calls.all(),
            plan=self.plan,
            usage=self._usage(),
            permissions=tuple(self.permissions),
            session=self._session(),
        )

    def fill(self, result: SubagentResult) -> SubagentResult:
        """The result with everything that the turn brought; calls without an end are marked cancelled."""
        self.tool_calls.finish()
        self.output.finish()
        counters = replace(
            self._counted(),
            permission_violations=self.permission_violations,
            output_dropped_bytes=self.output.dropped_bytes,
        )
        return replace(
            result,
            output=self.output.output(),
            messages=self.output.messages(),
            usage=self._usage(),
            permissions=tuple(self.permissions),
            tool_calls=self.tool_calls.all(),
            plan=self.plan,
            context_lost=self.context_lost,
            counters=counters,
        )
