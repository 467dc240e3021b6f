"""What the agent did in one turn, as it is said in ACP: tool calls, its plan, its usage.

Owns the reading of the agent's own shapes, leniently: whatever junk stands in a field, nothing raises; the
field keeps what it had or gets its default, and a bad list entry is left out. Pure. How mentions of a call
are merged is `supervised.tool_calls`'; which updates belong to the turn is decided by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from acp_subagent.seam.activity import Cost, PlanEntry, ToolKind, ToolStatus, Usage
from acp_subagent.supervised.reading import MAX_UINT64, count
from acp_subagent.supervised.tool_calls import Mention, ToolCalls, TrackedCall

#: entries kept of one plan
MAX_PLAN_ENTRIES = 1000

#: the words of the protocol; the two of ours (`unknown`, `cancelled`) mean nothing when an agent sends them
_KINDS = {kind.value: kind for kind in ToolKind if kind is not ToolKind.UNKNOWN}
_STATUSES = {status.value: status for status in ToolStatus if status is not ToolStatus.CANCELLED}

_PLAN_PRIORITIES = frozenset({"high", "medium", "low"})
_PLAN_STATUSES = frozenset({"pending", "in_progress", "completed"})


def note_call(calls: ToolCalls, raw: object) -> TrackedCall:
    """Merge one mention of a call into `calls` and return the call as it then is.

    `raw` is a `tool_call` or `tool_call_update`, or the `toolCall` of a permission request; each may be
    the first mention. Absent and null mean unchanged, and a list replaces the whole list. A mention
    without a usable id gives a call of id '' that is not kept.
    """
    patch: Mapping[str, object] = raw if isinstance(raw, dict) else {}
    call_id, title, status = patch.get("toolCallId"), patch.get("title"), patch.get("status")
    announced = patch.get("sessionUpdate") == "tool_call"
    mention = Mention(
        title if isinstance(title, str) else None,
        _kind(patch.get("kind")),
        _STATUSES.get(status) if isinstance(status, str) else None,
        _locations(patch["locations"]) if "locations" in patch else None,
        _content(patch["content"]) if "content" in patch else None,
        patch.get("rawInput"),
        patch.get("rawOutput"),
        # The protocol's default, for announcements only.
        ToolKind.OTHER if announced else None,
    )
    return calls.note(call_id if isinstance(call_id, str) else "", mention)


def plan_from(raw: object) -> tuple[PlanEntry, ...]:
    """The plan of a `plan` update; each update is the whole plan. Bad entries are left out."""
    entries = raw.get("entries") if isinstance(raw, dict) else None
    if not isinstance(entries, list):
        return ()
    read = (_plan_entry(entry) for entry in entries[:MAX_PLAN_ENTRIES])
    return tuple(entry for entry in read if entry is not None)


def usage_from(raw: object) -> Usage:
    """The usage of a `usage_update`; what is missing or no proper number is None."""
    if not isinstance(raw, dict):
        return Usage()
    return Usage(count(raw.get("used")), count(raw.get("size")), _cost(raw.get("cost")))


def _kind(word: object) -> ToolKind | None:
    if word is None:
        return None
    return (_KINDS.get(word) if isinstance(word, str) else None) or ToolKind.UNKNOWN


def _content(content: object) -> tuple[object, ...] | None:
    if not isinstance(content, list):
        return None
    return tuple(item for item in content if isinstance(item, dict))


def _locations(locations: object) -> tuple[str, ...] | None:
    if not isinstance(locations, list):
        return None
    paths = (item.get("path") for item in locations if isinstance(item, dict))
    return tuple(path for path in paths if isinstance(path, str))


def _plan_entry(raw: object) -> PlanEntry | None:
    if not isinstance(raw, dict):
        return None
    content, priority, status = raw.get("content"), raw.get("priority"), raw.get("status")
    if not (isinstance(content, str) and isinstance(priority, str) and isinstance(status, str)):
        return None
    if priority not in _PLAN_PRIORITIES or status not in _PLAN_STATUSES:
        return None
    return PlanEntry(content, priority, status)


def _cost(raw: object) -> Cost | None:
    amount, currency = (raw.get("amount"), raw.get("currency")) if isinstance(raw, dict) else (None, None)
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not isinstance(currency, str):
        return None
    # An integer from JSON can be too large for a float.
    if abs(amount) > MAX_UINT64 or not math.isfinite(amount):
        return None
    return Cost(float(amount), currency)
