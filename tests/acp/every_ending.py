"""Every way for a run to end, and what has to be said about each: what the classifier is tested with.

What is expected is written down here cell by cell, independently of the table that it checks.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from acp_subagent.acp.failure_table import Facts
from acp_subagent.acp.vocabulary import Stage, StopReason
from acp_subagent.process.launch import SpawnFault, WorkingDirectoryFault
from acp_subagent.seam.activity import ExitStatus, PermissionDecision, PermissionRecord, ToolKind
from acp_subagent.seam.diagnostic import SHOWN_RPC_CODES
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from tests.supervised.moments import MOMENTS

#: the stages in which an answer is awaited; PROCESS counts as INITIALIZE where an answer is what failed
TALKING = {
    Stage.PROCESS: Stage.INITIALIZE,
    Stage.INITIALIZE: Stage.INITIALIZE,
    Stage.NEW_SESSION: Stage.NEW_SESSION,
    Stage.PROMPT: Stage.PROMPT,
}

#: where a process that ended is reported
EXITED = TALKING | {Stage.PROCESS: Stage.PROCESS, Stage.PROMPT: Stage.PROCESS}

#: what a way to end says in each stage: stop reason, then the failure line from `stage:` on, None for no line
Said = tuple[str, str | None]


@dataclass(frozen=True)
class Way:
    """One way for a stage to end, and what has to be said about it in every stage but the teardown."""

    name: str
    facts: dict[str, Any]
    said: dict[Stage, Said] = field(default_factory=dict)


def error(stage: Stage, fields: str) -> Said:
    return ("error", f"stage: {stage}; category: {fields}")


def failed_in(stages: dict[Stage, Stage], fields: str) -> dict[Stage, Said]:
    return {stage: error(reported, fields) for stage, reported in stages.items()}


def always(reported: Stage, fields: str) -> dict[Stage, Said]:
    return {stage: error(reported, fields) for stage in TALKING}


def own_fault() -> dict[Stage, Said]:
    return {stage: error(stage, "unknown") for stage in TALKING}


def answers() -> Iterator[Way]:
    """Every stop reason; outside a turn nothing has one, so that it would be a mistake of our own."""
    known: dict[str, Said] = {
        "end_turn": ("completed", None),
        "max_tokens": ("max-tokens", None),
        "refusal": ("refusal", None),
        "cancelled": ("aborted", None),
        "max_turn_requests": error(Stage.PROMPT, "remote-limit; stop reason: max_turn_requests"),
    }
    assert set(known) == set(StopReason)
    for word, said in known.items():
        yield answer(word, said)
    for unknown in ("", "END_TURN", "end_turn ", "error", "unknown", "CANARY"):
        yield answer(unknown, error(Stage.PROMPT, "unknown; stop reason: unknown"))
    for malformed in (None, True, 0, 1.5, [], ["end_turn"], {}, {"stopReason": "end_turn"}):
        yield answer(malformed, error(Stage.PROMPT, "protocol; reason: malformed-answer"))


def answer(stop_reason: object, said: Said) -> Way:
    facts = {"end": End.ANSWERED, "stop_reason": stop_reason}
    return Way(f"answered {stop_reason!r}", facts, own_fault() | {Stage.PROMPT: said})


def statuses() -> Iterator[tuple[ExitStatus, str]]:
    for code in (0, 1, 126, 127, 255):
        yield ExitStatus(code=code), f"exit code: {code}"
    names = {member.value: member.name for member in signal.Signals}
    for number in range(1, 65):
        yield ExitStatus(signal=number), f"signal: {names.get(number, number)}"


def process_ends() -> Iterator[Way]:
    for status, shown in statuses():
        yield Way(
            f"exited, {shown}",
            {"end": End.EXITED, "exit_status": status},
            failed_in(EXITED, f"process-exit; {shown}"),
        )
    yield Way("exited, not seen how", {"end": End.EXITED}, failed_in(EXITED, "process-exit"))
    for end in (End.STREAM_ENDED, End.WRITE_BLOCKED, End.FRAME_TOO_LARGE, End.NEVER_SPOKE, End.UNANSWERED):
        yield Way(
            f"{end}, and an exit had been seen",
            {"end": end, "exit_status": ExitStatus(code=1)},
            failed_in(EXITED, "process-exit; exit code: 1"),
        )


def stream_ends() -> Iterator[Way]:
    yield Way("stream ended", {"end": End.STREAM_ENDED}, failed_in(TALKING, "transport"))
    blocked = failed_in(TALKING, "transport; reason: write-blocked")
    yield Way("write blocked", {"end": End.WRITE_BLOCKED}, blocked)
    noise = always(Stage.INITIALIZE, "protocol; reason: never-spoke-acp")
    yield Way("noise limit", {"end": End.NEVER_SPOKE}, noise)
    frame = failed_in(TALKING, "protocol; reason: frame-too-large")
    yield Way("frame limit", {"end": End.FRAME_TOO_LARGE}, frame)
    malformed = failed_in(TALKING, "protocol; reason: malformed-answer")
    yield Way("malformed answer", {"end": End.MALFORMED}, malformed)
    seen = {"end": End.MALFORMED, "exit_status": ExitStatus(code=0)}
    yield Way("malformed answer, then an exit", seen, malformed)
    yield Way("nothing came, and no intent of ours", {"end": End.UNANSWERED}, own_fault())
    yield Way("our own exception", {"end": End.UNEXPECTED}, own_fault())
    seen = {"end": End.UNEXPECTED, "exit_status": ExitStatus(code=0)}
    yield Way("our own exception, and an exit had been seen", seen, own_fault())


def rpc_errors() -> Iterator[Way]:
    for required, code in product((False, True), [*sorted(SHOWN_RPC_CODES), -32001, 0, 7, None]):
        shown = f"; rpc code: {code}" if code in SHOWN_RPC_CODES else ""
        said = failed_in(TALKING, f"remote-error{shown}")
        if required:
            said[Stage.NEW_SESSION] = error(Stage.NEW_SESSION, f"session-lost{shown}")
        if code == -32000:
            # Also when a login was configured: it had been tried, and this is the answer after it.
            said = failed_in(TALKING, "auth-required; rpc code: -32000")
        facts = {"end": End.RPC_ERROR, "rpc_code": code, "session_required": required}
        yield Way(f"rpc error {code}, session required: {required}", facts, said)


def unacceptable() -> Iterator[Way]:
    version = {"end": End.UNACCEPTABLE, "reason": "version-mismatch"}
    mismatch = always(Stage.INITIALIZE, "protocol; reason: version-mismatch")
    yield Way("another version", version, mismatch)
    for required in (False, True):
        yield Way(
            f"an option could not be set, session required: {required}",
            {"end": End.UNACCEPTABLE, "reason": "option-not-set", "session_required": required},
            always(Stage.NEW_SESSION, "configuration; reason: option-not-set"),
        )
    lost = error(Stage.NEW_SESSION, "session-lost")
    yield Way(
        "the agent cannot load sessions",
        {"end": End.UNACCEPTABLE, "session_required": True},
        own_fault() | {Stage.NEW_SESSION: lost},
    )
    yield Way(
        "a malformed answer to the load",
        {"end": End.MALFORMED, "session_required": True},
        failed_in(TALKING, "protocol; reason: malformed-answer") | {Stage.NEW_SESSION: lost},
    )
    yield Way("unacceptable without a reason", {"end": End.UNACCEPTABLE}, own_fault())


def start_failures() -> Iterator[Way]:
    for word in WorkingDirectoryFault:
        said = always(Stage.INITIALIZE, f"configuration; reason: {word}")
        yield Way(f"not configured, {word}", {"end": End.NOT_CONFIGURED, "reason": str(word)}, said)
    plain = always(Stage.INITIALIZE, "configuration")
    yield Way("not configured", {"end": End.NOT_CONFIGURED}, plain)
    yield Way("not configured, a foreign word", {"end": End.NOT_CONFIGURED, "reason": "CANARY"}, plain)
    for fault in SpawnFault:
        said = always(Stage.PROCESS, f"process-start; reason: {fault}")
        yield Way(f"not spawned, {fault}", {"end": End.NOT_SPAWNED, "reason": str(fault)}, said)
    plain = always(Stage.PROCESS, "process-start")
    yield Way("not spawned", {"end": End.NOT_SPAWNED}, plain)


WAYS = [
    *answers(),
    *process_ends(),
    *stream_ends(),
    *rpc_errors(),
    *unacceptable(),
    *start_failures(),
]

#: Our own intent: whatever a caller does before, at and after the answer, and each deadline.
INTENTS: dict[str, dict[str, Any]] = {
    **{moment.name: {"intent": moment.intent} for moment in MOMENTS},
    **{f"{name} passed": {"intent": Intent.DEADLINE, "deadline": name} for name in DeadlineName},
}

#: What a ladder left behind; only there can anything have been left.
LADDERS: dict[Stage, tuple[int, ...]] = {
    stage: (2, 0) if stage is Stage.TEARDOWN else (0,) for stage in Stage
}

DECISIONS: dict[str, PermissionRecord | None] = {
    "none": None,
    "allowed": PermissionRecord(ToolKind.EXECUTE, "allow", PermissionDecision.ALLOWED, "CANARY", "CANARY"),
    "denied": PermissionRecord(ToolKind.UNKNOWN, "reject", PermissionDecision.DENIED, "CANARY", "CANARY"),
    "pending": PermissionRecord(ToolKind.EDIT, "ask", PermissionDecision.CANCELLED, "CANARY", "CANARY"),
}

PERMISSION_LINES = {
    "none": "",
    "allowed": "\nACP permission (policy: allow; request: execute; decision: allowed)",
    "denied": "\nACP permission (policy: reject; request: unknown; decision: denied)",
    "pending": "",
}


@dataclass(frozen=True)
class Cell:
    """One cell of the product: the facts and what has to be said."""

    name: str
    facts: Facts
    stop_reason: str
    diagnostic: str | None


def cells() -> Iterator[Cell]:
    for stage, way, intent, decision in product(Stage, WAYS, INTENTS, DECISIONS):
        for left in LADDERS[stage]:
            permission = DECISIONS[decision]
            facts = Facts(stage=stage, permission=permission, survivors=left, **way.facts, **INTENTS[intent])
            stop_reason, said = expected(stage, way, facts)
            line = f"Subagent failure (provider: ACP; {said})" if said else ""
            silent = stop_reason == "completed" or facts.intent is Intent.CANCELLED
            if stage is Stage.PROMPT and not silent:
                line += PERMISSION_LINES[decision]
            name = f"{stage} / {way.name} / {intent} / {decision} / {left} left"
            yield Cell(name, facts, stop_reason, line.strip() or None)


def expected(stage: Stage, way: Way, facts: Facts) -> Said:
    if stage is Stage.TEARDOWN:
        # No answer is awaited there, and neither a cancel nor a deadline of the run covers it: only what was
        # left and how the process ended count, also where a bug of ours ended the ladder.
        exited = shown_exit(facts.exit_status)
        if facts.survivors:
            return error(stage, f"survivors{exited}")
        return error(stage, f"process-exit{exited}" if exited else "unknown")
    if facts.intent is Intent.CANCELLED:
        return ("aborted", None)
    if facts.intent is Intent.DEADLINE:
        return error(TALKING[stage], f"timeout; reason: {facts.deadline}")
    return way.said[stage]


def shown_exit(status: ExitStatus | None) -> str:
    if status is None:
        return ""
    word = status.signal_name
    return f"; signal: {word}" if word else f"; exit code: {status.code}"


CELLS = list(cells())
