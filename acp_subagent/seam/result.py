"""What a run brings back: the result, its closed stop reasons, and the host's local detail of a failure.

Owns the records; how they are filled is the providers' work. Their `repr` never shows what an agent said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from acp_subagent.seam.activity import (
    ExitStatus,
    PermissionRecord,
    PlanEntry,
    TeardownReport,
    ToolCall,
    Usage,
)
from acp_subagent.seam.content import ContentBlock, TextBlock
from acp_subagent.seam.request import SessionRef


class SubagentStopReason(StrEnum):
    """Why a run ended. Providers may add words; treat one that you do not know as a failure."""

    COMPLETED = "completed"  #: the agent says that it finished
    ABORTED = "aborted"  #: cancelled, by us or by the agent's own side
    ERROR = "error"  #: it failed; `diagnostic` says why
    MAX_TOKENS = "max-tokens"  #: the token limit was reached first
    REFUSAL = "refusal"  #: the agent declined the task


@dataclass(frozen=True, slots=True)
class RpcFault:
    """A JSON-RPC error of the agent, as it came; text and data are the agent's and may hold anything."""

    code: int
    message: str = field(repr=False)
    data: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Failure:
    """Why a run, a start or a teardown failed, for the host.

    Branch on `stage`, `category` and `reason`. Everything below them is local detail that can hold the
    agent's own text; it is given by attribute only: `str` and `repr` show the diagnostic and nothing else.
    """

    diagnostic: str  #: the bounded, safe line (or lines)
    stage: str  #: where it failed, a word of the provider
    category: str  #: what failed, a word of the provider
    reason: str | None = None  #: the closed reason word, when one applies
    cause: BaseException | None = None  #: the original exception, if any
    rpc_error: RpcFault | None = None  #: the agent's JSON-RPC error, if any
    stderr_tail: str = ""  #: the last that the child wrote to stderr
    stop_reason: str | None = None  #: the stop reason as the agent sent it, bounded
    noise: tuple[str, ...] = ()  #: samples of what was on stdout and was not JSON-RPC
    exit_status: ExitStatus | None = None  #: how the child ended, when seen
    deadline: str | None = None  #: which of our deadlines passed
    prompt_dispatched: bool = False  #: the prompt had been sent: its effects are unknown
    retryable: bool = False  #: worth another try; never true once the prompt was sent
    advice: str | None = None  #: one fixed sentence on what to do, when `reason` has one

    def __str__(self) -> str:
        return self.diagnostic

    def __repr__(self) -> str:
        return f"<Failure: {self.diagnostic}>"


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of a run went, in seconds; None for what did not happen (or has not yet)."""

    spawn: float | None = None
    initialize: float | None = None
    new_session: float | None = None
    turn: float | None = None
    teardown: float | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """What was counted while the run went on."""

    updates: int = 0  #: updates of this session that were handled
    unknown_updates: int = 0  #: of those, the ones of a kind that is not known
    repaired_frames: int = 0  #: frames with broken text that was replaced
    noise_lines: int = 0  #: lines on stdout that are not JSON-RPC
    late_updates: int = 0  #: updates of an earlier turn, dropped
    early_updates_dropped: int = 0  #: updates before the session was known, beyond the limit
    dropped_responses: int = 0  #: answers to requests that nobody waits for
    permission_violations: int = 0  #: denied tool calls that the agent completed all the same
    output_dropped_bytes: int = 0  #: output beyond the limit; the oldest went


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SubagentResult:
    """The outcome of one run. Anything but `completed` means that the output may be partial."""

    stop_reason: SubagentStopReason | str
    output: tuple[ContentBlock, ...] = ()  #: content of the last non-empty assistant message
    messages: tuple[tuple[ContentBlock, ...], ...] = ()  #: every assistant message of the turn, in order
    diagnostic: str | None = None  #: the bounded, safe failure text; None for success and our own cancel
    failure: Failure | None = None  #: the host's local detail, whenever something failed
    structured: object = None  #: output by the requested schema, where a provider supports it
    usage: Usage = field(default_factory=Usage)
    permissions: tuple[PermissionRecord, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    plan: tuple[PlanEntry, ...] = ()
    session: SessionRef | None = None
    exit_status: ExitStatus | None = None  #: set only when the result waited for the end of the child
    teardown: TeardownReport | None = None  #: set only when the result waited for the end of the child
    context_lost: bool = False  #: a new session replaced the one asked for
    timings: Timings = field(default_factory=Timings)
    counters: Counters = field(default_factory=Counters)

    @property
    def text(self) -> str:
        """The text blocks of the output, joined."""
        return "".join(block.text for block in self.output if isinstance(block, TextBlock))

    def __repr__(self) -> str:
        detail = "" if self.diagnostic is None else f": {self.diagnostic}"
        return f"<SubagentResult {self.stop_reason}{detail}>"
