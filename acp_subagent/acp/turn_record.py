"""What one turn has brought: the record that becomes the result.

Owns the folding of a turn's updates into output, tool calls, plan and permissions, and how they fill a
result. Pure: it is told what came, in order, and never waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from acp_subagent.acp.tool_calls import note_call
from acp_subagent.seam.activity import (
    PermissionDecision,
    PermissionRecord,
    PlanEntry,
    ToolKind,
    ToolStatus,
    Usage,
)
from acp_subagent.seam.events import SessionChange, Snapshot
from acp_subagent.seam.result import Counters, SubagentResult
from acp_subagent.supervised.output import TurnOutput
from acp_subagent.supervised.tool_calls import ToolCalls, TrackedCall

#: permission records kept of one turn; the oldest goes
MAX_PERMISSIONS = 10_000

#: the fields of a `PermissionRecord`, which is made of them when somebody looks at it
Permission: TypeAlias = tuple[ToolKind, str, PermissionDecision, str, str | None]


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
        self._permissions: list[Permission] = []  # most turns have none, and an empty deque is large
        self.permission_violations = 0
        self.context_lost = False

    @property
    def tool_in_progress(self) -> bool:
        """Whether a tool call is in progress."""
        return self.tool_calls.in_progress

    @property
    def latest_decision(self) -> PermissionRecord | None:
        """The latest permission that somebody decided; one answered as the turn was ending does not count."""
        for permission in reversed(self._permissions):
            record = PermissionRecord(*permission)
            if record.decision is not PermissionDecision.CANCELLED:
                return record
        return None

    @property
    def permissions(self) -> tuple[PermissionRecord, ...]:
        """The permission requests that were answered."""
        return tuple(PermissionRecord(*permission) for permission in self._permissions)

    def note_tool_call(self, raw: object) -> TrackedCall:
        """Merge one mention of a tool call; a denied one that is completed all the same is a violation."""
        call = note_call(self.tool_calls, raw)
        if call.id in self._denied and call.status is ToolStatus.COMPLETED:
            self._denied.discard(call.id)
            self.permission_violations += 1
        return call

    def note_permission(self, permission: Permission) -> None:
        """A permission request was answered."""
        self._permissions.append(permission)
        if len(self._permissions) > MAX_PERMISSIONS:
            del self._permissions[0]
        _, _, decision, call_id, _ = permission
        if decision is PermissionDecision.DENIED:
            if len(self._denied) < MAX_PERMISSIONS:
                self._denied.add(call_id)
        elif self._denied and decision is PermissionDecision.ALLOWED:
            self._denied.discard(call_id)

    def snapshot(self, stage: str) -> Snapshot:
        """The turn so far, for a subscriber that comes late."""
        return Snapshot(
            stage=str(stage),
            messages=self.output.messages(),
            tool_calls=self.tool_calls.all(),
            plan=self.plan,
            usage=self._usage(),
            permissions=self.permissions,
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
            permissions=self.permissions,
            tool_calls=self.tool_calls.all(),
            plan=self.plan,
            context_lost=self.context_lost,
            counters=counters,
        )
