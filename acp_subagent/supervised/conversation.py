"""What a provider supplies to supervision: its side of the talk with one child.

Owns the protocol between the two. Supervision decides when things happen and what ends them; a conversation
knows what to say, how to fold what it hears, and what the facts mean.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from acp_subagent.wire.jsonrpc import Receiver

if TYPE_CHECKING:
    from acp_subagent.seam.activity import ExitStatus, TeardownReport
    from acp_subagent.seam.content import ContentBlock
    from acp_subagent.seam.events import Snapshot
    from acp_subagent.seam.feed import EventFeed
    from acp_subagent.seam.request import SessionRef
    from acp_subagent.seam.result import RpcFault, SubagentResult
    from acp_subagent.supervised.ending import DeadlineName, End, Intent
    from acp_subagent.supervised.verdicts import Verdict
    from acp_subagent.wire.connection import Connection


class LifeEvent(StrEnum):
    """What supervision tells a conversation about the life of its child."""

    PROCESS_SPAWNED = "process-spawned"  #: the child is there; the handshake may begin
    RUN_FAILED = "run-failed"  #: the child cannot be used any more
    DISPOSED = "disposed"  #: the owner ends the child
    LADDER_ENDED = "ladder-ended"  #: the process tree has been ended (or what is left of it was counted)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How one wait for the agent ended: facts, not yet judged. The `repr` shows closed words only."""

    end: End
    value: object = field(default=None, repr=False)  #: the result of the answer
    rpc_error: RpcFault | None = None
    reason: str | None = None  #: a closed word that says more
    cause: BaseException | None = field(default=None, repr=False)
    exit_status: ExitStatus | None = None
    intent: Intent | None = None  #: our own reason to end it, if there was one first
    deadline: DeadlineName | None = None  #: which deadline passed, when that was the reason


class TurnRecord(Protocol):
    """Everything that one turn has brought so far; a provider's own class."""

    @property
    def tool_in_progress(self) -> bool:
        """Whether a tool call is in progress, so that the tool idle limit applies."""

    def snapshot(self, stage: str) -> Snapshot:
        """The turn so far, folded together for a late subscriber."""

    def fill(self, result: SubagentResult) -> SubagentResult:
        """The result with everything that the turn brought: output, tools, plan, usage, counters."""


class TurnPort(Protocol):
    """What a conversation can tell the turn that it serves."""

    @property
    def feed(self) -> EventFeed:
        """Where the turn's events go."""

    @property
    def begun(self) -> bool:
        """Whether what the child says belongs to the turn already."""

    @property
    def ending(self) -> bool:
        """Whether the turn is being cancelled (so that requests for permission are answered so)."""

    def answered(self, outcome: Outcome) -> None:
        """The agent answered the prompt."""

    def poke(self) -> None:
        """Something changed that moves the deadlines."""

    def pause(self) -> None:
        """The turn waits for the host: let the idle deadline stand still."""

    def unpause(self) -> None:
        """That wait is over."""


class Link(NamedTuple):
    """What a conversation can do while its child lives."""

    connection: Connection
    spawn: Callable[[Callable[[], Awaitable[None]]], None]  #: run a task of the conversation; it is contained
    timed: Callable[[str], None]  #: note that a part of the start is done (a field of `Timings`)


class Conversation(Receiver, Protocol):
    """One provider's talk with one child. All methods but `open` and `close` return at once."""

    @property
    def provider_label(self) -> str:
        """The provider's name in diagnostics."""

    @property
    def stage(self) -> str:
        """The published stage at this moment."""

    @property
    def can_prompt(self) -> bool:
        """Whether the session is ready for a prompt."""

    @property
    def session(self) -> SessionRef | None:
        """The open session."""

    @property
    def takes_leave(self) -> bool:
        """Whether `close` has something to say now."""

    def advance(self, event: LifeEvent) -> None:
        """The child's life went on."""

    async def open(self, link: Link) -> Outcome:
        """Shake hands and open the session: `End.ANSWERED` when a prompt can be sent.

        Raises `UnsupportedCapabilityError` when the agent cannot take the first prompt.
        """

    def check_prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Raise `UnsupportedCapabilityError` when the agent does not take such content."""

    def begin_turn(self, port: TurnPort) -> TurnRecord:
        """A turn begins; what comes from now on belongs to it."""

    def prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Send the prompt of the turn; its answer goes to the turn's port."""

    def cancel_turn(self) -> None:
        """Tell the agent to stop the turn, and answer what it asked."""

    def end_turn(self) -> None:
        """The turn has settled; what comes from now on is late."""

    async def close(self) -> None:
        """Take leave of the agent before its stdin is closed; bounded by the conversation itself.

        Called only when `takes_leave`, which is to be asked also for a child that cannot be used any more.
        """

    def classify(self, outcome: Outcome) -> Verdict:
        """What a failed start, or the end of a turn, means."""

    def classify_teardown(self, report: TeardownReport) -> Verdict | None:
        """What the report of a ladder means; None when nothing is wrong."""

    def raw_stop_reason(self, outcome: Outcome) -> str | None:
        """The stop reason as the agent sent it, bounded, for the host."""

    def retryable(self, verdict: Verdict) -> bool:
        """Whether the provider knows of nothing that would make another try fail the same way."""

    def advice(self, reason: str | None) -> str | None:
        """One fixed sentence on what to do about a reason."""
