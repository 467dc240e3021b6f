"""What happens while a run goes on: the event types. Their delivery is `seam.feed`'s.

Event records are plain slotted dataclasses, not frozen ones (three times as dear to make, and text chunks
come by the million): treat them as read-only. Their `repr` leaves out what the agent said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_subagent.seam.activity import PermissionRecord, PlanEntry, ToolCall, ToolKind, Usage
from acp_subagent.seam.content import ContentBlock


@dataclass(slots=True)
class TextChunk:
    """A piece of the agent's answer."""

    text: str = field(repr=False)
    message_id: str | None = field(default=None, repr=False)  #: the agent's id of the message, if it has one


@dataclass(slots=True)
class ThoughtChunk:
    """A piece of the agent's reasoning; no part of the answer."""

    text: str = field(repr=False)
    message_id: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class ContentChunk:
    """A piece of the answer (or of the reasoning, when `thought` is true) that is not text."""

    block: ContentBlock
    message_id: str | None = field(default=None, repr=False)
    thought: bool = False


@dataclass(slots=True)
class UserChunk:
    """The agent repeats what the user said; no part of the answer."""

    block: ContentBlock
    message_id: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class ToolCallChanged:
    """A tool call is new or has changed; `call` is the merged record."""

    call: ToolCall


@dataclass(slots=True)
class PlanChanged:
    """The agent's plan, whole."""

    entries: tuple[PlanEntry, ...]


@dataclass(slots=True)
class UsageChanged:
    """The agent reported its usage."""

    usage: Usage


@dataclass(slots=True)
class ModeChanged:
    """The session's mode changed."""

    mode_id: str = field(repr=False)


@dataclass(slots=True)
class OptionsChanged:
    """The session's configuration options, whole, as the agent sent them."""

    options: tuple[Mapping[str, object], ...] = field(repr=False)


@dataclass(slots=True)
class CommandsChanged:
    """The commands that the agent offers, whole, as it sent them."""

    commands: tuple[Mapping[str, object], ...] = field(repr=False)


@dataclass(slots=True)
class SessionInfoChanged:
    """Title or time of the session changed; only the members in `changes` did, None clears one."""

    changes: Mapping[str, object] = field(repr=False)


#: What is the session's and not the turn's. What comes of these between turns is told when the next begins.
SessionChange = ModeChanged | OptionsChanged | CommandsChanged | SessionInfoChanged


@dataclass(slots=True)
class PermissionRequested:
    """The agent asks whether it may go on with a tool call."""

    kind: ToolKind
    tool_call_id: str = field(repr=False)


@dataclass(slots=True)
class PermissionDecided:
    """A permission request was answered."""

    record: PermissionRecord


@dataclass(slots=True)
class StageChanged:
    """The run has come to another stage (a word of the provider)."""

    stage: str


@dataclass(slots=True)
class UnknownUpdate:
    """An update of a kind that this version does not know, as the agent sent it."""

    raw: Mapping[str, object] = field(repr=False)


@dataclass(slots=True)
class StderrLine:
    """A line that the child wrote to stderr; only for subscriptions made with `stderr=True`.

    Nobody waits for a reader of stderr: while a subscription is behind, such lines pass it by.
    """

    text: str = field(repr=False)
    lost: int = 0  #: lines just before this one that passed this subscription by


@dataclass(slots=True)
class Snapshot:
    """What a subscription that was made late has missed, folded together; its first event."""

    stage: str
    messages: tuple[tuple[ContentBlock, ...], ...] = field(repr=False)
    tool_calls: tuple[ToolCall, ...]
    plan: tuple[PlanEntry, ...]
    usage: Usage
    permissions: tuple[PermissionRecord, ...] = ()
    session: tuple[SessionChange, ...] = ()  #: of each kind the latest, also what came before the turn


@dataclass(slots=True)
class EventsLagged:
    """The subscription fell behind for too long; `count` events were not delivered. Its last event."""

    count: int


Event = (
    TextChunk
    | ThoughtChunk
    | ContentChunk
    | UserChunk
    | ToolCallChanged
    | PlanChanged
    | UsageChanged
    | ModeChanged
    | OptionsChanged
    | CommandsChanged
    | SessionInfoChanged
    | PermissionRequested
    | PermissionDecided
    | StageChanged
    | UnknownUpdate
    | StderrLine
    | Snapshot
    | EventsLagged
)
