"""The tool calls of one turn, merged by id, whatever words an agent uses for them.

Owns how one mention changes a call, and the bounds of what is kept. Pure. How a mention is read from what an
agent sent is each provider's own.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

from acp_subagent.seam.activity import ToolCall, ToolKind, ToolStatus
from acp_subagent.supervised.output import MAX_ID_CHARACTERS, json_bytes

#: calls kept of one turn; the oldest goes
MAX_CALLS = 10_000

#: What the calls of one turn may hold together of content, raw input, raw output and locations. Beyond it
#: those of the call that was longest not updated go; kind, status and title stay. At last whole calls go.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

#: a longer title is cut
MAX_TITLE_CHARACTERS = 1000

_UNFINISHED = frozenset({ToolStatus.PENDING, ToolStatus.IN_PROGRESS})

#: what a call is before anything was said of it
_UNMENTIONED = ToolCall(id="", title="", kind=ToolKind.UNKNOWN, status=ToolStatus.PENDING)

#: the parts of a payload, and a mention that brings none of them
_PAYLOAD = ("content", "locations", "in", "out")
_NOTHING = (None, None, None, None)


class Mention(NamedTuple):
    """What an agent said of a call at one time; None leaves a member as it was, a tuple replaces it."""

    title: str | None = None
    kind: ToolKind | None = None
    status: ToolStatus | None = None
    locations: tuple[str, ...] | None = None
    content: tuple[object, ...] | None = None
    raw_input: object = None
    raw_output: object = None
    default_kind: ToolKind | None = None  #: the kind from now on, when none was said so far

    def __repr__(self) -> str:
        return f"<Mention {self.kind} {self.status}>"


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

    def note(self, call_id: str, mention: Mention) -> ToolCall:
        """Merge one mention of a call, maybe the first of it, and return the call as it then is.

        An empty or overlong id is unusable: it gives a call of id '' that is not kept.
        """
        if len(call_id) > MAX_ID_CHARACTERS:
            call_id = ""
        tracked = self._calls.get(call_id) or _Tracked(call_id)
        was_running, was_bytes = tracked.running, tracked.payload_bytes
        tracked.merge(mention)
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

    def merge(self, mention: Mention) -> None:
        """Take over what is said now; what is left out stays as it was."""
        call = self.call
        title, kind, status, locations, content, raw_input, raw_output, default_kind = mention
        self._kind = kind or self._kind or default_kind
        self.call = ToolCall(
            id=self._id,
            title=call.title if title is None else title[:MAX_TITLE_CHARACTERS],
            kind=self._kind or ToolKind.UNKNOWN,
            status=status or call.status,
            locations=call.locations if locations is None else locations,
            content=call.content if content is None else content,
            raw_input=call.raw_input if raw_input is None else raw_input,
            raw_output=call.raw_output if raw_output is None else raw_output,
        )
        given = (content, locations, raw_input, raw_output)
        if given != _NOTHING:
            # Only what is new is weighed: a mention costs what it brings, not what the call has become.
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
