"""Every way in which a wait of the DSH SDK provider can end, and what has to be said about it.

Written down from the requirements, not from the table: the product of all of it is what the table is held to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from acp_subagent.dsh.activity import TurnEnd
from acp_subagent.dsh.classify import Facts
from acp_subagent.dsh.vocabulary import Stage
from acp_subagent.process.launch import SpawnFault, WorkingDirectoryFault
from acp_subagent.seam.activity import ExitStatus
from acp_subagent.seam.diagnostic import SHOWN_RPC_CODES
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from tests.acp.every_ending import statuses
from tests.supervised.moments import MOMENTS

#: stop reason, and the fields of the line; None for no line
Said = tuple[str, str | None]

TALKING = (Stage.INITIALIZE, Stage.SESSION_RUN)


@dataclass(frozen=True)
class Way:
    """One way to end, and what is said of it in each stage before the shutdown."""

    name: str
    facts: dict[str, Any]
    said: dict[Stage, Said]


def in_both(fields: str) -> dict[Stage, Said]:
    """The same category in whatever stage it is."""
    return {stage: ("error", f"stage: {stage}; category: {fields}") for stage in TALKING}


def always_first(fields: str) -> dict[Stage, Said]:
    """What can only be before the first answer."""
    said = ("error", f"stage: initialize; category: {fields}")
    return dict.fromkeys(TALKING, said)


OWN_FAULT = in_both("unknown")


def activities() -> Iterator[Way]:
    ends: list[tuple[TurnEnd | None, Said]] = [
        (TurnEnd("completed"), ("completed", None)),
        (TurnEnd("max-tokens"), ("max-tokens", None)),
        (TurnEnd("aborted"), ("aborted", None)),
        (TurnEnd("aborted", "user"), ("aborted", None)),
        (TurnEnd("aborted", "CANARY"), ("aborted", None)),
        (TurnEnd("aborted", "disposed"), ("aborted", "stage: session-run; category: child-disposed")),
        (TurnEnd("blocked"), ("refusal", None)),
        (TurnEnd("interrupted"), ("error", None)),
        (TurnEnd("error"), ("error", "stage: session-run; category: child-error")),
        (TurnEnd("error", "disposed"), ("error", "stage: session-run; category: child-error")),
        (None, ("error", "stage: session-run; category: missing-terminal")),
    ]
    unknown = ("error", "stage: session-run; category: child-unknown")
    ends += [(TurnEnd(kind), unknown) for kind in ("", "COMPLETED", "completed ", "CANARY", "disposed", None)]
    for end, said in ends:
        name = "no turn" if end is None else f"turn ended {end.kind!r}, {end.cause!r}"
        yield Way(name, {"end": End.ANSWERED, "turn_end": end}, {**OWN_FAULT, Stage.SESSION_RUN: said})


def process_ends() -> Iterator[Way]:
    for status, shown in statuses():
        yield Way(
            f"exited, {shown}", {"end": End.EXITED, "exit_status": status}, in_both(f"transport; {shown}")
        )
    yield Way("exited, not seen how", {"end": End.EXITED}, in_both("transport"))
    for end in (End.STREAM_ENDED, End.WRITE_BLOCKED, End.FRAME_TOO_LARGE, End.NEVER_SPOKE, End.UNANSWERED):
        facts = {"end": end, "exit_status": ExitStatus(code=1)}
        yield Way(f"{end}, and an exit had been seen", facts, in_both("transport; exit code: 1"))


def talk() -> Iterator[Way]:
    yield Way("stream ended", {"end": End.STREAM_ENDED}, in_both("transport"))
    yield Way("write blocked", {"end": End.WRITE_BLOCKED}, in_both("transport; reason: write-blocked"))
    yield Way("frame limit", {"end": End.FRAME_TOO_LARGE}, in_both("protocol; reason: frame-too-large"))
    yield Way("noise limit", {"end": End.NEVER_SPOKE}, always_first("protocol"))
    yield Way("malformed", {"end": End.MALFORMED}, in_both("protocol; reason: malformed-answer"))
    for code in (*sorted(SHOWN_RPC_CODES), -32001, 0, 7, None):
        shown = f"; rpc code: {code}" if code in SHOWN_RPC_CODES else ""
        yield Way(f"rpc error {code}", {"end": End.RPC_ERROR, "rpc_code": code}, in_both(f"protocol{shown}"))
    for end in (End.UNANSWERED, End.UNEXPECTED, End.UNACCEPTABLE):
        yield Way(f"{end}, which is no doing of the runtime's", {"end": end}, OWN_FAULT)


def refusals() -> Iterator[Way]:
    for end in (End.NOT_CONFIGURED, End.NOT_SPAWNED):
        for word in (*WorkingDirectoryFault, *SpawnFault):
            said = always_first(f"configuration; reason: {word}")
            yield Way(f"{end}, {word}", {"end": end, "reason": str(word)}, said)
        for foreign in ("CANARY", "", None):
            yield Way(f"{end}, {foreign!r}", {"end": end, "reason": foreign}, always_first("configuration"))


WAYS = [*activities(), *process_ends(), *talk(), *refusals()]

INTENTS: dict[str, dict[str, Any]] = {
    **{moment.name: {"intent": moment.intent} for moment in MOMENTS},
    "startup passed": {"intent": Intent.DEADLINE, "deadline": DeadlineName.STARTUP},
    "turn passed": {"intent": Intent.DEADLINE, "deadline": DeadlineName.TURN},
    "a deadline without a name": {"intent": Intent.DEADLINE},
}

#: What a ladder left behind; only there can anything have been left.
LADDERS: dict[Stage, tuple[int, ...]] = {
    stage: (2, 0) if stage is Stage.SHUTDOWN else (0,) for stage in Stage
}


@dataclass(frozen=True)
class Cell:
    """One cell of the product: the facts and what has to be said."""

    name: str
    facts: Facts
    stop_reason: str
    diagnostic: str | None


def cells() -> Iterator[Cell]:
    for stage, way, intent in product(Stage, WAYS, INTENTS):
        for left in LADDERS[stage]:
            facts = Facts(stage=stage, survivors=left, **way.facts, **INTENTS[intent])
            stop_reason, said = expected(stage, way, facts)
            line = None if said is None else f"Subagent failure (provider: DSH SDK; {said})"
            yield Cell(f"{stage} / {way.name} / {intent} / {left} left", facts, stop_reason, line)


def expected(stage: Stage, way: Way, facts: Facts) -> Said:
    if stage is Stage.SHUTDOWN:
        # No answer is awaited there, and neither a cancel nor a deadline of the run covers it.
        status = facts.exit_status
        shown = ""
        if status is not None:
            word = status.signal_name
            shown = f"; signal: {word}" if word else f"; exit code: {status.code}"
        category = "survivors" if facts.survivors else "unknown"
        return ("error", f"stage: shutdown; category: {category}{shown}")
    if facts.intent is Intent.CANCELLED:
        return ("aborted", None)
    if facts.intent is Intent.DEADLINE:
        reason = f"; reason: {facts.deadline}" if facts.deadline else ""
        return ("error", f"stage: {stage}; category: timeout{reason}")
    return way.said[stage]


CELLS = list(cells())
