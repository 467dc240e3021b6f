"""What the agent did in one turn: tool calls merged by id, its plan, its usage.

Owns how a patch changes a call, and reads the agent's own shapes leniently: whatever junk stands in a field,
nothing raises; the field keeps what it had or gets its default, and a bad list entry is left out. Pure. Which
updates belong to the turn is decided by the caller.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from acp_subagent.seam.activity import Cost, PlanEntry, ToolCall, ToolKind, ToolStatus, Usage
from acp_subagent.supervised.output import MAX_ID_CHARACTERS, json_bytes
from acp_subagent.supervised.reading import MAX_UINT64, count

#: calls kept of one turn; the oldest goes
MAX_CALLS = 10_000

#: What the calls of one turn may hold together of content, raw input, raw output and locations. Beyond it
#: those of the call that was longest not updated go; kind, status and title stay. At last whole calls go.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

#: a longer title is cut
MAX_TITLE_CHARACTERS = 1000

#: entries kept of one plan
MAX_PLAN_ENTRIES = 1000

#: the words of the protocol; the two of ours (`unknown`, `cancelled`) mean nothing when an agent sends them
_KINDS = {kind.value: kind for kind in ToolKind if kind is not ToolKind.UNKNOWN}
_STATUSES = {status.value: status for status in ToolStatus if status is not ToolStatus.CANCELLED}

_UNFINISHED = frozenset({ToolStatus.PENDING, ToolStatus.IN_PROGRESS})

_PLAN_PRIORITIES = frozenset({"high", "medium", "low"})
_PLAN_STATUSES = frozenset({"pending", "in_progress", "completed"})

#: what a call is before anything was said of it
_UNMENTIONED = ToolCall(id="", title="", kind=ToolKind.UNKNOWN, status=ToolStatus.PENDING)

#: the parts of a payload, and a mention that brings none of them
_PAYLOAD = ("content", "locations", "in", "out")
_NOTHING = (None, None, None, None)

_Word = TypeVar("_Word", ToolKind, ToolStatus)


class ToolCalls:
    """The tool calls of one turn, by the agent's id, in the order in which they were first mentioned."""

    __slots__ = ("_calls", "_payload_bytes", "_payloads", "_running")

    def __init__(self) -> None:
        self._calls: OrderedDict[str, _Tracked] = OrderedDict()
        #: ids of the calls that hold a payload; the one that was longest not updated is the first
        self._payloads: OrderedDict[str, None] = OrderedDict()
        self._payload_bytes = 0
        self._running = 0

    def __repr__(self) -> str:
        return f"<ToolCalls {len(self._calls)}, {self._running} in progress>"

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def in_progress(self) -> bool:
        """True while some call is in progress."""
        return self._running > 0

    def get(self, call_id: object) -> ToolCall | None:
        """The call of this id as it is now; None when it was never mentioned, or is no longer kept."""
        tracked = self._calls.get(call_id) if isinstance(call_id, str) else None
        return tracked.call if tracked else None

    def all(self) -> tuple[ToolCall, ...]:
        """Every call, as it is now."""
        return tuple(tracked.call for tracked in self._calls.values())

    def update(self, raw: object) -> ToolCall:
        """Merge one mention of a call and return the call as it then is.

        `raw` is a `tool_call` or `tool_call_update`, or the `toolCall` of a permission request; each may be
        the first mention. Absent and null mean unchanged, and a list replaces the whole list. A mention
        without a usable id gives a call of id '' that is not kept.
        """
        patch: Mapping[str, object] = raw if isinstance(raw, dict) else {}
        call_id = patch.get("toolCallId")
        if not isinstance(call_id, str) or len(call_id) > MAX_ID_CHARACTERS:
            call_id = ""
        tracked = self._calls.get(call_id) or _Tracked(call_id)
        was_running, was_bytes = tracked.running, tracked.payload_bytes
        tracked.merge(patch)
        call = tracked.call
        if call_id:
            self._running += tracked.running - was_running
            self._payload_bytes += tracked.payload_bytes - was_bytes
            self._calls[call_id] = tracked
            if tracked.payload_bytes:
                self._payloads[call_id] = None
                self._payloads.move_to_end(call_id)
            self._hold_bounds()
        return call

    def finish(self) -> tuple[ToolCall, ...]:
        """Mark what is unfinished `cancelled`, since the turn is over; return the calls that changed."""
        unfinished = [tracked for tracked in self._calls.values() if tracked.call.status in _UNFINISHED]
        for tracked in unfinished:
            tracked.call = replace(tracked.call, status=ToolStatus.CANCELLED)
        self._running = 0
        return tuple(tracked.call for tracked in unfinished)

    def _hold_bounds(self) -> None:
        while self._payload_bytes > MAX_PAYLOAD_BYTES and self._payloads:
            stale_id, _ = self._payloads.popitem(last=False)
            self._payload_bytes -= self._calls[stale_id].drop_payload()
        while len(self._calls) > MAX_CALLS or self._payload_bytes > MAX_PAYLOAD_BYTES:
            oldest_id, oldest = self._calls.popitem(last=False)
            self._running -= oldest.running
            self._payload_bytes -= oldest.payload_bytes
            self._payloads.pop(oldest_id, None)


class _Tracked:
    """One call, and what is known beside it."""

    __slots__ = ("_id", "_kind", "_sizes", "call", "payload_bytes")

    def __init__(self, call_id: str) -> None:
        self._id = call_id
        self.call = _UNMENTIONED
        self._kind: ToolKind | None = None  #: None while the agent has said nothing about it
        self._sizes: dict[str, int] = {}  #: what each part of the payload needs
        self.payload_bytes = 0  #: all of them together

    @property
    def running(self) -> bool:
        """Whether the call is in progress."""
        return self.call.status is ToolStatus.IN_PROGRESS

    def merge(self, patch: Mapping[str, object]) -> None:
        """Take over what this mention says; what it leaves out stays."""
        call = self.call
        self._kind = _kind(patch, self._kind)
        content, locations = _content(patch.get("content")), _locations(patch.get("locations"))
        raw_input, raw_output = patch.get("rawInput"), patch.get("rawOutput")
        self.call = ToolCall(
            id=self._id,
            title=_title(patch.get("title"), call.title),
            kind=self._kind or ToolKind.UNKNOWN,
            status=_word(_STATUSES, patch.get("status")) or call.status,
            locations=call.locations if locations is None else locations,
            content=call.content if content is None else content,
            raw_input=call.raw_input if raw_input is None else raw_input,
            raw_output=call.raw_output if raw_output is None else raw_output,
        )
        given = (content, locations, raw_input, raw_output)
        if given != _NOTHING:
            # Only what is new is weighed: a patch costs what it brings, not what the call has become.
            weights = zip(_PAYLOAD, given, strict=True)
            self._sizes |= {name: json_bytes(value) for name, value in weights if value is not None}
            self.payload_bytes = sum(self._sizes.values())

    def drop_payload(self) -> int:
        """Let go what it holds and return how much that was.

        The locations of an unfinished call stay, since its permissions are judged by them.
        """
        before = self.payload_bytes
        kept = {"locations"} if self.call.status in _UNFINISHED else set()
        self._sizes = {name: size for name, size in self._sizes.items() if name in kept}
        self.payload_bytes = sum(self._sizes.values())
        locations = self.call.locations if kept else ()
        self.call = replace(self.call, locations=locations, content=(), raw_input=None, raw_output=None)
        return before - self.payload_bytes


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


def _kind(patch: Mapping[str, object], known: ToolKind | None) -> ToolKind | None:
    """What kind the call has after this mention; None when nothing was ever said."""
    word = patch.get("kind")
    if word is not None:
        return _word(_KINDS, word) or ToolKind.UNKNOWN
    if known is None and patch.get("sessionUpdate") == "tool_call":
        return ToolKind.OTHER  # the protocol's default, for announcements only
    return known


def _word(words: Mapping[str, _Word], word: object) -> _Word | None:
    return words.get(word) if isinstance(word, str) else None


def _title(title: object, known: str) -> str:
    return title[:MAX_TITLE_CHARACTERS] if isinstance(title, str) else known


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
