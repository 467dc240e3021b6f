"""The table of everything that a run can come to: facts on the left, what is said about them on the right.

Owns the facts that count, the rows, and their order: the first row that holds wins, and the last one always
holds. Pure data and predicates over closed words, integers and the protocol's own stop reasons; what the
agent wrote to stderr, in an error's message or in its data is not among the facts. `acp.classify` makes the
words of a row into a verdict; `docs/diagnostics.md` shows the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from acp_subagent.acp.vocabulary import (
    AUTH_REQUIRED_CODE,
    UNKNOWN_STOP_REASON,
    Category,
    Reason,
    Stage,
    StopReason,
)
from acp_subagent.seam.activity import PermissionRecord
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.ending import End, Intent
from acp_subagent.supervised.verdicts import Facts as AnyFacts, Row as AnyRow, ended, exited, first_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(AnyFacts):
    """How the wait for one answer (or the spawn before it, or the teardown after it) ended."""

    stop_reason: object = field(default=None, repr=False)  #: as the agent sent it, with `End.ANSWERED`
    session_required: bool = False  #: an existing session was asked for, and no new one is allowed
    permission: PermissionRecord | None = None  #: the latest decision of the turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(AnyRow[Facts]):
    """One row of the table: when it holds and what it then says."""

    shows_permission: bool = True  #: add the permission line when there was a decision


_STARTING = (Stage.INITIALIZE, Stage.NEW_SESSION)
_TALKING = (Stage.INITIALIZE, Stage.NEW_SESSION, Stage.PROMPT)


def _unacceptable(reason: Reason) -> Callable[[Facts], bool]:
    return lambda facts: facts.end is End.UNACCEPTABLE and facts.reason == reason


def _answered(facts: Facts) -> bool:
    return facts.end is End.ANSWERED and facts.stage is Stage.PROMPT


def _stopped(word: StopReason) -> Callable[[Facts], bool]:
    return lambda facts: _answered(facts) and isinstance(facts.stop_reason, str) and facts.stop_reason == word


#: Our own intent: it comes before everything, whatever agent, stream or process did then. What is wrong with
#: the end of a tree is told all the same.
_OUR_INTENT: tuple[Row, ...] = (
    Row(
        fact="we cancelled (abort, cancel, dispose)",
        holds=lambda facts: facts.intent is Intent.CANCELLED,
        stages=(Stage.PROCESS, *_TALKING),
        category=None,
        stop_reason=SubagentStopReason.ABORTED,
        shows_permission=False,
    ),
    Row(
        fact="our deadline passed",
        holds=lambda facts: facts.intent is Intent.DEADLINE,
        stages=_TALKING,
        category=Category.TIMEOUT,
        shows_deadline=True,
    ),
)

#: the turn was answered
_STOP_REASONS: tuple[Row, ...] = (
    Row(
        fact="`end_turn`",
        holds=_stopped(StopReason.END_TURN),
        stages=(Stage.PROMPT,),
        category=None,
        stop_reason=SubagentStopReason.COMPLETED,
        shows_permission=False,
    ),
    Row(
        fact="`max_tokens`",
        holds=_stopped(StopReason.MAX_TOKENS),
        stages=(Stage.PROMPT,),
        category=None,
        stop_reason=SubagentStopReason.MAX_TOKENS,
    ),
    Row(
        fact="`refusal`",
        holds=_stopped(StopReason.REFUSAL),
        stages=(Stage.PROMPT,),
        category=None,
        stop_reason=SubagentStopReason.REFUSAL,
    ),
    Row(
        fact="`cancelled`, not asked for by us (remote)",
        holds=_stopped(StopReason.CANCELLED),
        stages=(Stage.PROMPT,),
        category=None,
        stop_reason=SubagentStopReason.ABORTED,
    ),
    Row(
        fact="the turn ended with `max_turn_requests`",
        holds=_stopped(StopReason.MAX_TURN_REQUESTS),
        stages=(Stage.PROMPT,),
        category=Category.REMOTE_LIMIT,
        shown_stop_reason=StopReason.MAX_TURN_REQUESTS,
    ),
    Row(
        fact="the turn ended with any other string (its value is not copied)",
        holds=lambda facts: _answered(facts) and isinstance(facts.stop_reason, str),
        stages=(Stage.PROMPT,),
        category=Category.UNKNOWN,
        shown_stop_reason=UNKNOWN_STOP_REASON,
    ),
)

#: everything else that can go wrong before the teardown
_FAULTS: tuple[Row, ...] = (
    Row(
        fact="no usable working directory, or unusable configuration; nothing was spawned",
        holds=ended(End.NOT_CONFIGURED),
        stages=(Stage.INITIALIZE,),
        category=Category.CONFIGURATION,
        shows_reason=True,
    ),
    Row(
        fact="the command cannot be started (found before the spawn, or by it)",
        holds=ended(End.NOT_SPAWNED),
        stages=(Stage.PROCESS,),
        category=Category.PROCESS_START,
        shows_reason=True,
    ),
    Row(
        fact="the process ended before the answer",
        holds=lambda facts: exited(facts) and facts.stage in _STARTING,
        stages=_STARTING,
        category=Category.PROCESS_EXIT,
        shows_exit=True,
    ),
    Row(
        fact="the process ended before the terminal answer to the prompt",
        holds=exited,
        stages=(Stage.PROCESS,),
        category=Category.PROCESS_EXIT,
        shows_exit=True,
    ),
    Row(
        fact="the stream ended, or cannot be written, and the process was still there after the observation",
        holds=ended(End.STREAM_ENDED),
        stages=_TALKING,
        category=Category.TRANSPORT,
    ),
    Row(
        fact="the agent does not read: more unsent bytes than the limit",
        holds=ended(End.WRITE_BLOCKED),
        stages=_TALKING,
        category=Category.TRANSPORT,
        reason=Reason.WRITE_BLOCKED,
    ),
    Row(
        fact="the agent answered -32000, and no configured login helped",
        holds=lambda facts: facts.end is End.RPC_ERROR and facts.rpc_code == AUTH_REQUIRED_CODE,
        stages=_TALKING,
        category=Category.AUTH_REQUIRED,
        shows_code=True,
    ),
    Row(
        fact="a requested model, mode or option could not be set and read back",
        holds=_unacceptable(Reason.OPTION_NOT_SET),
        stages=(Stage.NEW_SESSION,),
        category=Category.CONFIGURATION,
        reason=Reason.OPTION_NOT_SET,
    ),
    Row(
        fact="load or resume failed, and a new session was not allowed",
        holds=lambda facts: (
            facts.session_required
            and facts.stage is Stage.NEW_SESSION
            and facts.end in {End.RPC_ERROR, End.MALFORMED, End.UNACCEPTABLE}
        ),
        stages=(Stage.NEW_SESSION,),
        category=Category.SESSION_LOST,
        shows_code=True,
    ),
    Row(
        fact="the agent answered with another JSON-RPC error",
        holds=ended(End.RPC_ERROR),
        stages=_TALKING,
        category=Category.REMOTE_ERROR,
        shows_code=True,
    ),
    Row(
        fact="the agent's protocol version is not ours",
        holds=_unacceptable(Reason.VERSION_MISMATCH),
        stages=(Stage.INITIALIZE,),
        category=Category.PROTOCOL,
        reason=Reason.VERSION_MISMATCH,
    ),
    Row(
        fact="the noise limit passed before the first message",
        holds=ended(End.NEVER_SPOKE),
        stages=(Stage.INITIALIZE,),
        category=Category.PROTOCOL,
        reason=Reason.NEVER_SPOKE_ACP,
    ),
    Row(
        fact="answer malformed (also: no session id, no stop reason, or one that is no string)",
        # What is left of answered turns here has no stop reason that could be read.
        holds=lambda facts: facts.end is End.MALFORMED or _answered(facts),
        stages=_TALKING,
        category=Category.PROTOCOL,
        reason=Reason.MALFORMED_ANSWER,
    ),
    Row(
        fact="frame limit passed",
        holds=ended(End.FRAME_TOO_LARGE),
        stages=_TALKING,
        category=Category.PROTOCOL,
        reason=Reason.FRAME_TOO_LARGE,
    ),
)

#: the teardown, whatever came before it
_TEARDOWN: tuple[Row, ...] = (
    Row(
        fact="processes survived the whole ladder",
        holds=lambda facts: facts.survivors > 0,
        stages=(Stage.TEARDOWN,),
        category=Category.SURVIVORS,
        shows_exit=True,
    ),
    Row(
        fact="teardown failed otherwise, exit observed",
        holds=lambda facts: facts.stage is Stage.TEARDOWN and facts.exit_status is not None,
        stages=(Stage.TEARDOWN,),
        category=Category.PROCESS_EXIT,
        shows_exit=True,
    ),
    Row(
        fact="teardown failed otherwise, exit not observed",
        holds=lambda facts: facts.stage is Stage.TEARDOWN,
        stages=(Stage.TEARDOWN,),
        category=Category.UNKNOWN,
    ),
)

#: What is left: nothing that an agent does gets here. The rows of the teardown come before it, since a bug of
#: ours that ends a ladder must not hide the processes that were left, or how the leader ended.
_OUR_FAULT = Row(
    fact="an unexpected exception of our own",
    holds=lambda facts: True,
    stages=tuple(Stage),
    category=Category.UNKNOWN,
)

#: the whole table; the first row that holds wins
ROWS: tuple[Row, ...] = (*_OUR_INTENT, *_STOP_REASONS, *_FAULTS, *_TEARDOWN, _OUR_FAULT)


def row_of(facts: Facts) -> Row:
    """The first row that holds for `facts`; there always is one."""
    return first_row(ROWS, facts, teardown=Stage.TEARDOWN)
