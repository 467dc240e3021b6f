"""The tool calls of one turn, merged by id, whatever words an agent uses for them.

Owns how one mention changes a call, and the bounds of what is kept. Pure. How a mention is read from what an
agent sent is each provider's own.
"""

from __future__ import annotations

from collections import OrderedDict
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

#: kind and status of a call before anything was said of it
_UNMENTIONED = (ToolKind.UNKNOWN, ToolStatus.PENDING)

_UNFINISHED = frozenset({ToolStatus.PENDING, ToolStatus.IN_PROGRESS})


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


#: what is said of an unfinished call when the turn is over
_CANCELLED = Mention(status=ToolStatus.CANCELLED)


class ToolCalls:
    """The tool calls of one turn, by the agent's id, in the order in which they were first mentioned."""

    __slots__ = ("_calls", "_payload_bytes", "_payloads", "_running")

    def __init__(self) -> None:
        self._calls: OrderedDict[str, TrackedCall] = OrderedDict()
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

    def note(self, call_id: str, mention: Mention) -> TrackedCall:
        """Merge one mention of a call, maybe the first of it, and return the call as it then is.

        An empty or overlong id is unusable: it gives a call of id '' that is not kept.
        """
        if len(call_id) > MAX_ID_CHARACTERS:
            call_id = ""
        tracked = self._calls.get(call_id) or TrackedCall(call_id)
        old_status, old_bytes = tracked.status, tracked.payload_bytes
        tracked.merge(mention)
        if call_id:
            self._calls[call_id] = tracked
            if tracked.status is not old_status:
                self._running += _running(tracked.status) - _running(old_status)
            self._payload_bytes += tracked.payload_bytes - old_bytes
            if tracked.payload_bytes:
                self._payloads[call_id] = None
                self._payloads.move_to_end(call_id)
            self._hold_bounds()
        return tracked

    def finish(self) -> tuple[ToolCall, ...]:
        """Mark what is unfinished `cancelled`, since the turn is over; return the calls that changed."""
        unfinished = [tracked for tracked in self._calls.values() if tracked.status in _UNFINISHED]
        for tracked in unfinished:
            tracked.merge(_CANCELLED)
        self._running = 0
        return tuple(tracked.call for tracked in unfinished)

    def _hold_bounds(self) -> None:
        while self._payload_bytes > MAX_PAYLOAD_BYTES and self._payloads:
            stale_id, _ = self._payloads.popitem(last=False)
            stale = self._calls[stale_id]
            # Another one takes its place: whoever was just told of the call may still look at all of it.
            self._calls[stale_id] = lighter = stale.without_payload()
            self._payload_bytes -= stale.payload_bytes - lighter.payload_bytes
        while len(self._calls) > MAX_CALLS or self._payload_bytes > MAX_PAYLOAD_BYTES:
            oldest_id, oldest = self._calls.popitem(last=False)
            self._running -= _running(oldest.status)
            self._payload_bytes -= oldest.payload_bytes
            self._payloads.pop(oldest_id, None)


class TrackedCall:
    """One call as far as it is known. Few calls are looked at each time that something is said of them: the
    record, `call`, is made only then.
    """

    __slots__ = (
        "_content",
        "_locations",
        "_made",
        "_named_kind",
        "_raw_input",
        "_raw_output",
        "_sizes",
        "_title",
        "id",
        "kind",
        "payload_bytes",
        "status",
    )

    def __init__(self, call_id: str) -> None:
        self._made: ToolCall | None = None  #: the record, if it was made and still holds
        self._named_kind: ToolKind | None = None  #: None while the agent has said nothing about it
        self._sizes: dict[str, int] = {}  #: what each part of the payload needs
        self._title = ""
        self._locations: tuple[str, ...] = ()
        self._content: tuple[object, ...] = ()
        self._raw_input: object = None
        self._raw_output: object = None
        self.id = call_id  #: the agent's id of it
        self.kind, self.status = _UNMENTIONED  #: what it does, and how far it came
        self.payload_bytes = 0  #: what all parts of its payload need

    def __repr__(self) -> str:
        return f"<TrackedCall {self.kind} {self.status}>"

    @property
    def call(self) -> ToolCall:
        """The call as it is now."""
        if self._made is None:
            self._made = ToolCall(
                id=self.id,
                title=self._title,
                kind=self.kind,
                status=self.status,
                locations=self._locations,
                content=self._content,
                raw_input=self._raw_input,
                raw_output=self._raw_output,
            )
        return self._made

    def merge(self, mention: Mention) -> None:
        """Take over what is said now; what is left out stays as it was."""
        title, kind, status, locations, content, raw_input, raw_output, default_kind = mention
        self._made = None
        if title is not None:
            self._title = title[:MAX_TITLE_CHARACTERS]
        kind = kind or self._named_kind or default_kind
        if kind is not None:
            self._named_kind = self.kind = kind
        if status is not None:
            self.status = status
        # Only what is new is weighed: a mention costs what it brings, not what the call has become.
        if locations is not None:
            self._locations = locations
            self._weigh("locations", locations)
        if content is not None:
            self._content = content
            self._weigh("content", content)
        if raw_input is not None:
            self._raw_input = raw_input
            self._weigh("in", raw_input)
        if raw_output is not None:
            self._raw_output = raw_output
            self._weigh("out", raw_output)

    def without_payload(self) -> TrackedCall:
        """The same call with its payload let go.

        The locations of an unfinished call stay, since its permissions are judged by them.
        """
        kept = self._locations if self.status in _UNFINISHED else ()
        lighter = TrackedCall(self.id)
        lighter.merge(Mention(self._title, self._named_kind, self.status, kept or None))
        return lighter

    def _weigh(self, part: str, value: object) -> None:
        size = json_bytes(value)
        self.payload_bytes += size - self._sizes.get(part, 0)
        self._sizes[part] = size


def _running(status: ToolStatus) -> bool:
    return status is ToolStatus.IN_PROGRESS
