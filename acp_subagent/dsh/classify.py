"""The table of everything that a run of the DSH SDK provider can come to, and the verdicts from it.

Owns the facts that count, the rows, and their order: the first row that holds wins, and the last one always
holds. Pure and total. What the runtime wrote to stderr, in an error's message or in its data is not among the
facts. `docs/dsh.md` shows the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acp_subagent.dsh.activity import TurnEnd
from acp_subagent.dsh.vocabulary import (
    DISPOSED_CAUSE,
    PROVIDER_LABEL,
    REASONS,
    Category,
    Stage,
    TurnEndKind,
)
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.advice import TalkFault
from acp_subagent.supervised.ending import End, Intent
from acp_subagent.supervised.verdicts import (
    Facts as AnyFacts,
    Row,
    Verdict,
    ended,
    exited,
    first_row,
    teardown_facts,
    verdict_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(AnyFacts):
    """How the wait for one answer or activity (or the spawn before it, or the shutdown after it) ended."""

    turn_end: TurnEnd | None = None  #: how the last turn ended, with `End.ANSWERED`


_TALKING = (Stage.INITIALIZE, Stage.SESSION_RUN)


def _idle(facts: Facts) -> bool:
    return facts.end is End.ANSWERED and facts.stage == Stage.SESSION_RUN


def _last_turn(kind: TurnEndKind) -> Callable[[Facts], bool]:
    return lambda facts: _idle(facts) and facts.turn_end is not None and facts.turn_end.kind == kind


def _disposed(facts: Facts) -> bool:
    end = facts.turn_end
    return _last_turn(TurnEndKind.ABORTED)(facts) and end is not None and end.cause == DISPOSED_CAUSE


def _outcome(
    fact: str,
    holds: Callable[[Facts], bool],
    stop_reason: SubagentStopReason,
    category: Category | None = None,
) -> Row[Facts]:
    """A row for how an activity ended."""
    return Row(
        fact=fact, holds=holds, stages=(Stage.SESSION_RUN,), category=category, stop_reason=stop_reason
    )


#: whatever the agent, stream or process did then; what is wrong with the end of a tree is told all the same
_OUR_INTENT: tuple[Row[Facts], ...] = (
    Row(
        fact="we cancelled (abort, cancel, dispose)",
        holds=lambda facts: facts.intent is Intent.CANCELLED,
        stages=_TALKING,
        category=None,
        stop_reason=SubagentStopReason.ABORTED,
    ),
    Row(
        fact="our deadline passed",
        holds=lambda facts: facts.intent is Intent.DEADLINE,
        stages=_TALKING,
        category=Category.TIMEOUT,
        shows_deadline=True,
    ),
)

#: the agent became idle
_LAST_TURN: tuple[Row[Facts], ...] = (
    _outcome("`completed`", _last_turn(TurnEndKind.COMPLETED), SubagentStopReason.COMPLETED),
    _outcome("`max-tokens`", _last_turn(TurnEndKind.MAX_TOKENS), SubagentStopReason.MAX_TOKENS),
    _outcome(
        "`aborted`, and its cause is that the agent was disposed of",
        _disposed,
        SubagentStopReason.ABORTED,
        Category.CHILD_DISPOSED,
    ),
    _outcome("`aborted`, not asked for by us", _last_turn(TurnEndKind.ABORTED), SubagentStopReason.ABORTED),
    _outcome("`blocked`", _last_turn(TurnEndKind.BLOCKED), SubagentStopReason.REFUSAL),
    _outcome(
        "`interrupted` (only the repair of a stored session writes it)",
        _last_turn(TurnEndKind.INTERRUPTED),
        SubagentStopReason.ERROR,
    ),
    _outcome(
        "the last turn ended with `error`",
        _last_turn(TurnEndKind.ERROR),
        SubagentStopReason.ERROR,
        Category.CHILD_ERROR,
    ),
    _outcome(
        "no turn had ended",
        lambda facts: _idle(facts) and facts.turn_end is None,
        SubagentStopReason.ERROR,
        Category.MISSING_TERMINAL,
    ),
    _outcome(
        "the last turn ended with anything else (neither the value nor the message is copied)",
        _idle,
        SubagentStopReason.ERROR,
        Category.CHILD_UNKNOWN,
    ),
)

#: everything else that can go wrong before the shutdown
_FAULTS: tuple[Row[Facts], ...] = (
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
        stages=(Stage.INITIALIZE,),
        category=Category.CONFIGURATION,
        shows_reason=True,
    ),
    Row(
        fact="the process ended",
        holds=exited,
        stages=_TALKING,
        category=Category.TRANSPORT,
        shows_exit=True,
    ),
    Row(
        fact="the stream ended, or cannot be written, and the process was still there after the observation",
        holds=ended(End.STREAM_ENDED),
        stages=_TALKING,
        category=Category.TRANSPORT,
    ),
    Row(
        fact="the runtime does not read: more unsent bytes than the limit",
        holds=ended(End.WRITE_BLOCKED),
        stages=_TALKING,
        category=Category.TRANSPORT,
        reason=TalkFault.WRITE_BLOCKED,
    ),
    Row(
        fact="the runtime answered with a JSON-RPC error",
        holds=ended(End.RPC_ERROR),
        stages=_TALKING,
        category=Category.PROTOCOL,
        shows_code=True,
    ),
    Row(
        fact="answer malformed (also: no message id)",
        holds=ended(End.MALFORMED),
        stages=_TALKING,
        category=Category.PROTOCOL,
        reason=TalkFault.MALFORMED_ANSWER,
    ),
    Row(
        fact="frame limit passed",
        holds=ended(End.FRAME_TOO_LARGE),
        stages=_TALKING,
        category=Category.PROTOCOL,
        reason=TalkFault.FRAME_TOO_LARGE,
    ),
    Row(
        fact="the noise limit passed before the first message",
        holds=ended(End.NEVER_SPOKE),
        stages=(Stage.INITIALIZE,),
        category=Category.PROTOCOL,
    ),
)

#: the shutdown, whatever came before it
_SHUTDOWN: tuple[Row[Facts], ...] = (
    Row(
        fact="processes survived the whole ladder",
        holds=lambda facts: facts.survivors > 0,
        stages=(Stage.SHUTDOWN,),
        category=Category.SURVIVORS,
        shows_exit=True,
    ),
    Row(
        fact="the teardown failed otherwise",
        holds=lambda facts: facts.stage == Stage.SHUTDOWN,
        stages=(Stage.SHUTDOWN,),
        category=Category.UNKNOWN,
        shows_exit=True,
    ),
)

#: what is left: nothing that a runtime does gets here, and no bug of ours hides what a ladder has left
_OUR_FAULT: Row[Facts] = Row(
    fact="an unexpected exception of our own",
    holds=lambda facts: True,
    stages=tuple(Stage),
    category=Category.UNKNOWN,
)

#: the whole table; the first row that holds wins
ROWS: tuple[Row[Facts], ...] = (*_OUR_INTENT, *_LAST_TURN, *_FAULTS, *_SHUTDOWN, _OUR_FAULT)


def row_of(facts: Facts) -> Row[Facts]:
    """The first row that holds for `facts`; there always is one."""
    return first_row(ROWS, facts, teardown=Stage.SHUTDOWN)


def classify(facts: Facts) -> Verdict:
    """What is said about `facts`. Total: every combination has an answer, and nothing raises."""
    return verdict_of(row_of(facts), facts, provider=PROVIDER_LABEL, reasons=REASONS)


def classify_teardown(report: TeardownReport) -> Verdict | None:
    """What is said about a teardown; None when the tree is gone and its end was seen."""
    facts = teardown_facts(Facts, Stage.SHUTDOWN, report)
    return None if facts is None else classify(facts)
