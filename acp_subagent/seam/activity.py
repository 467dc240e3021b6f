"""Words that every provider shares for what an agent did and how its process ended.

Owns plain records and closed vocabularies; decides nothing and waits for nothing. Records whose fields
can hold the agent's text show only closed words in their `repr`, so that a record in a log line or in a
traceback never carries that text along.
"""

from __future__ import annotations

import signal as _signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ToolKind(StrEnum):
    """What a tool call does, in the ten words of the protocol and one of ours."""

    READ = "read"  #: reads files or data
    EDIT = "edit"  #: changes files or content
    DELETE = "delete"  #: removes files or data
    MOVE = "move"  #: moves or renames files
    SEARCH = "search"  #: searches for information
    EXECUTE = "execute"  #: runs commands or code
    THINK = "think"  #: reasons or plans
    FETCH = "fetch"  #: retrieves outside data
    SWITCH_MODE = "switch_mode"  #: changes the session's mode
    OTHER = "other"  #: said to be something else, or a tool call that names no kind
    UNKNOWN = "unknown"  #: ours: a word outside the protocol's ten, or nothing known at all


class ToolStatus(StrEnum):
    """How far a tool call has come."""

    PENDING = "pending"  #: announced, not begun (input streaming or approval awaited)
    IN_PROGRESS = "in_progress"  #: running
    COMPLETED = "completed"  #: ended well
    FAILED = "failed"  #: ended with an error
    CANCELLED = "cancelled"  #: ours: still unfinished when the turn ended


class PermissionDecision(StrEnum):
    """What became of one permission request."""

    ALLOWED = "allowed"  #: the policy or the handler allowed it
    DENIED = "denied"  #: the policy or the handler denied it
    CANCELLED = "cancelled"  #: answered `cancelled` because the turn was ending; no decision


@dataclass(frozen=True, slots=True, repr=False)
class ToolCall:
    """One tool call of the agent, merged from everything it said about that call's id."""

    id: str  #: the agent's id of the call
    title: str  #: what the agent calls it; display text of the agent
    kind: ToolKind  #: what it does
    status: ToolStatus  #: how far it came
    locations: tuple[str, ...] = ()  #: paths that it declared
    content: tuple[object, ...] = ()  #: what it produced, as the agent sent it
    raw_input: object = None  #: its arguments, as the agent sent them
    raw_output: object = None  #: its raw result, as the agent sent it

    def __repr__(self) -> str:
        return f"<ToolCall {self.kind} {self.status}>"


@dataclass(frozen=True, slots=True, repr=False)
class PlanEntry:
    """One entry of the agent's plan."""

    content: str  #: the agent's text
    priority: str  #: `high`, `medium` or `low`
    status: str  #: `pending`, `in_progress` or `completed`

    def __repr__(self) -> str:
        return f"<PlanEntry {self.priority} {self.status}>"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a session has cost so far, by the agent's own account."""

    amount: float  #: cumulative for the session
    currency: str = field(repr=False)  #: free text of the agent, normally an ISO 4217 code


@dataclass(frozen=True, slots=True)
class Usage:
    """The last usage that the agent reported; every field is None when it never said."""

    used_tokens: int | None = None  #: tokens now in the context
    size_tokens: int | None = None  #: size of the context window
    cost: Cost | None = None  #: cumulative cost of the session


@dataclass(frozen=True, slots=True)
class PermissionRecord:
    """One permission request and what was decided."""

    kind: ToolKind  #: kind of the tool call that asked
    policy: str  #: the policy that decided (`reject`, `allow`, ...)
    decision: PermissionDecision  #: what was decided
    tool_call_id: str = field(repr=False)  #: the agent's id of the tool call
    option_id: str | None = field(default=None, repr=False)  #: the offered option that was sent, if any


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How the agent's process (the leader of its tree) ended: exactly one of the two is set."""

    code: int | None = None  #: exit code, 0 to 255
    signal: int | None = None  #: number of the signal that ended it

    def __post_init__(self) -> None:
        if (self.code is None) == (self.signal is None):
            raise ValueError("ExitStatus takes either a code or a signal")

    @property
    def signal_name(self) -> str | None:
        """The signal by name (`SIGKILL`); by number when it has none; None when no signal ended it."""
        if self.signal is None:
            return None
        try:
            return _signal.Signals(self.signal).name
        except ValueError:
            return str(self.signal)


class Rung(StrEnum):
    """One step of the ladder that ends a process tree."""

    EOF = "eof"  #: stdin was closed and the tree given time to end by itself
    TERM = "term"  #: SIGTERM to every process of the tree
    KILL = "kill"  #: SIGKILL to every process of the tree
    REAP = "reap"  #: the leader's exit status was collected


@dataclass(frozen=True, slots=True)
class TeardownReport:
    """What the teardown of one process tree did and found."""

    rungs: Mapping[Rung, float]  #: the rungs used, in order, with the seconds spent on each
    processes_found: int  #: processes of the tree ever seen, the leader included
    survivors: int  #: processes still alive after the whole ladder; 0 means that the tree is gone
    exit_status: ExitStatus | None  #: how the leader ended; None when its exit was not observed
    #: True when the ladder itself could not do its work, whatever it found: an unexpected exception, or a
    #: machine so busy that there was no time to look as often as it takes to know that nobody is left
    failed: bool = False
    #: that exception, for the host
    cause: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def clean(self) -> bool:
        """True when nothing survived, nothing went wrong, and the leader's exit was observed."""
        return self.survivors == 0 and not self.failed and self.exit_status is not None

    @property
    def seconds(self) -> float:
        """How long the whole ladder took."""
        return sum(self.rungs.values())
