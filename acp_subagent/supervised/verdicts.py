"""How facts become a verdict: one ordered table of rows, of which the first that holds wins.

Owns the form of a table, the way from a row to what is said, and that a reason is only ever one of the closed
words. Pure. The rows and the words are each provider's own; the form of the line and its size limit are
`seam.diagnostic`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from acp_subagent.seam.activity import ExitStatus, TeardownReport
from acp_subagent.seam.diagnostic import failure_line, join_lines
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.ending import DeadlineName, End, Intent

#: Ends without an answer: a process that has ended by then explains them all.
NO_ANSWER = frozenset(
    {End.STREAM_ENDED, End.WRITE_BLOCKED, End.FRAME_TOO_LARGE, End.NEVER_SPOKE, End.UNANSWERED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How the wait for one answer (or the spawn before it, or the teardown after it) ended.

    A provider adds what else its rows look at.
    """

    stage: str  #: the published stage at that moment
    end: End  #: how the wait ended
    intent: Intent | None = None  #: our own reason to end it, whatever then came
    deadline: DeadlineName | None = None  #: which deadline passed, with `Intent.DEADLINE`
    rpc_code: int | None = None  #: with `End.RPC_ERROR`
    exit_status: ExitStatus | None = None  #: how the process ended, when that was seen by then
    reason: str | None = None  #: with the ends that need one to say what it was
    survivors: int = 0  #: processes that outlived the ladder; only in the teardown


AnyFacts = TypeVar("AnyFacts", bound=Facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[AnyFacts]):
    """One row of a table: when it holds and what it then says."""

    fact: str  #: the fact in words; the documentation is generated from it
    holds: Callable[[AnyFacts], bool]
    #: Where it can happen. Facts of another stage are reported with the first of these; the teardown is
    #: apart: only rows that name it hold there.
    stages: tuple[str, ...]
    category: str | None  #: None means that there is no failure line
    stop_reason: SubagentStopReason = SubagentStopReason.ERROR
    reason: str | None = None  #: the reason of this row, when there is just one
    shows_reason: bool = False  #: show the reason that came with the facts
    shows_deadline: bool = False  #: the reason is which deadline passed
    shows_exit: bool = False  #: show how the process ended
    shows_code: bool = False  #: show the agent's JSON-RPC code
    shown_stop_reason: str | None = None  #: the stop reason to show; a word of ours or of the protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is said about it. `category` is None when nothing failed, and then there is no failure line."""

    stop_reason: SubagentStopReason
    stage: str
    category: str | None = None
    reason: str | None = None
    diagnostic: str | None = None  #: the safe, bounded text; None when there is nothing to say


def exited(facts: Facts) -> bool:
    """Whether the end of the process is what ended the wait."""
    return facts.end is End.EXITED or (facts.end in NO_ANSWER and facts.exit_status is not None)


def ended(end: End) -> Callable[[Facts], bool]:
    """A row's predicate: the wait ended so."""
    return lambda facts: facts.end is end


AnyRow = TypeVar("AnyRow", bound=Row[Any])


def first_row(rows: Iterable[AnyRow], facts: Facts, *, teardown: str) -> AnyRow:
    """The first row that holds for `facts`; `teardown` is the stage that stands apart."""
    in_teardown = facts.stage == teardown
    return next(row for row in rows if (teardown in row.stages or not in_teardown) and row.holds(facts))


def stage_of(row: Row[AnyFacts], facts: AnyFacts) -> str:
    """The stage to report: that of the facts, where the row can happen in it."""
    return facts.stage if facts.stage in row.stages else row.stages[0]


def verdict_of(
    row: Row[AnyFacts],
    facts: AnyFacts,
    *,
    provider: str,
    reasons: Iterable[str],
    second_line: str | None = None,
) -> Verdict:
    """What `row` says about `facts`; `reasons` are the provider's closed words, and nothing else is shown."""
    stage, reason = stage_of(row, facts), _reason(row, facts, reasons)
    line = None
    if row.category is not None:
        line = failure_line(
            provider=provider,
            stage=stage,
            category=row.category,
            stop_reason=row.shown_stop_reason,
            exit_status=facts.exit_status if row.shows_exit else None,
            rpc_code=facts.rpc_code if row.shows_code else None,
            reason=reason,
        )
    return Verdict(
        stop_reason=row.stop_reason,
        stage=stage,
        category=row.category,
        reason=reason,
        diagnostic=join_lines(line, second_line) or None,
    )


def teardown_facts(make: Callable[..., AnyFacts], stage: str, report: TeardownReport) -> AnyFacts | None:
    """The facts of a ladder; None when the tree is gone and its end was seen."""
    if report.clean:
        return None
    return make(
        stage=stage,
        end=End.UNEXPECTED if report.failed else End.UNANSWERED,
        exit_status=report.exit_status,
        survivors=report.survivors,
    )


def _reason(row: Row[AnyFacts], facts: AnyFacts, reasons: Iterable[str]) -> str | None:
    """The reason to give: the row's own, or the one that came with the facts where the row says so.

    A word that is not one of `reasons` is dropped, so that none can slip into a diagnostic.
    """
    if row.reason is not None:
        return row.reason
    word = facts.deadline if row.shows_deadline else facts.reason if row.shows_reason else None
    return next((reason for reason in reasons if reason == word), None)
