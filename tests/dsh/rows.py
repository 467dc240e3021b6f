"""The rows of the failure table that one runtime can provoke: a script, and the text that is said about it.

The expected texts are whole lines, so that a word or a field too many is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.dsh.fake_runtime import RECEIPT

IDLE = {"status": "idle"}


def line(fields: str) -> str:
    """The failure line of the DSH SDK provider with these fields."""
    return f"Subagent failure (provider: DSH SDK; {fields})"


@dataclass(frozen=True)
class Row:
    """A fact and what is said about it."""

    name: str
    script: dict[str, Any]
    expected: str | None
    stop_reason: str = "error"
    settings: dict[str, Any] = field(default_factory=dict)


def turn(*steps: dict[str, Any]) -> dict[str, Any]:
    """A script whose agent does this once its prompt was accepted."""
    return {"prompt": [*RECEIPT, *steps]}


def ends(reason: str | dict[str, Any]) -> dict[str, Any]:
    """A script whose agent says something and ends its turn so."""
    return turn({"text": "x"}, {"end": reason}, IDLE)


#: an error whose every member is foreign text
ERROR = {"code": -32603, "message": "CANARY", "data": {"CANARY": ["CANARY"]}}

#: both a result and an error, which no answer may have
BOTH = '{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"no"}}\n'

TOO_LARGE: dict[str, Any] = {"max_frame_bytes": 100_000}
LARGE = {"raw": {"text": "x", "repeat": 200_000}}

NO_SERVER_INFO: list[object] = [None, {}, [], "CANARY", {"serverInfo": "CANARY"}]
NO_MESSAGE_ID: list[object] = [None, {}, {"messageId": 5}, ["CANARY"]]

START_ROWS = [
    *(
        Row(
            f"the process exits with {code} before initialize is answered",
            {"initialize": [{"exit": code}]},
            line(f"stage: initialize; category: transport; exit code: {code}"),
        )
        for code in (0, 1, 255)
    ),
    Row(
        "a signal ends the process before initialize is answered",
        {"initialize": [{"signal": "KILL"}]},
        line("stage: initialize; category: transport; signal: SIGKILL"),
    ),
    Row(
        "stdout ends before initialize is answered, and the process stays",
        {"initialize": [{"close_stdout": True}, {"wait": True}]},
        line("stage: initialize; category: transport"),
    ),
    Row(
        "initialize is answered with an error",
        {"initialize": [{"error": ERROR}]},
        line("stage: initialize; category: protocol; rpc code: -32603"),
    ),
    Row(
        "initialize is answered with an error of a code that is not in the list",
        {"initialize": [{"error": {**ERROR, "code": 424242}}]},
        line("stage: initialize; category: protocol"),
    ),
    *(
        Row(
            f"initialize is answered with {answer!r}",
            {"initialize": [{"answer": answer}]},
            line("stage: initialize; category: protocol; reason: malformed-answer"),
        )
        for answer in NO_SERVER_INFO
    ),
    Row(
        "initialize is answered with a result and an error",
        {"initialize": [{"raw": BOTH % 0}]},
        line("stage: initialize; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "noise and nothing else",
        {"initialize": [{"raw": {"text": "starting ...\n", "repeat": 200}}]},
        line("stage: initialize; category: protocol"),
    ),
    Row(
        "a frame that is too large before initialize is answered",
        {"initialize": [LARGE]},
        line("stage: initialize; category: protocol; reason: frame-too-large"),
        settings=TOO_LARGE,
    ),
    Row(
        "the startup deadline",
        {"initialize": []},
        line("stage: initialize; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": 0.5},
    ),
]

TURN_ROWS = [
    Row("completed", ends("completed"), None, "completed"),
    Row("max-tokens", ends("max-tokens"), None, "max-tokens"),
    Row("a remote abort", ends({"kind": "aborted", "reason": {"kind": "user"}}), None, "aborted"),
    Row("a remote abort without a cause", ends("aborted"), None, "aborted"),
    Row(
        "the agent was disposed of",
        ends({"kind": "aborted", "reason": {"kind": "disposed"}}),
        line("stage: session-run; category: child-disposed"),
        "aborted",
    ),
    Row("blocked", ends("blocked"), None, "refusal"),
    Row("interrupted", ends("interrupted"), None, "error"),
    Row(
        "error",
        ends({"kind": "error", "error": {"message": "CANARY", "code": "CANARY"}}),
        line("stage: session-run; category: child-error"),
    ),
    *(
        Row(
            f"the turn ended with {reason!r}",
            ends(reason),
            line("stage: session-run; category: child-unknown"),
        )
        for reason in ("CANARY", "COMPLETED", {}, {"kind": 5}, {"kind": None})
    ),
    Row(
        "no turn ended",
        turn({"text": "x"}, IDLE),
        line("stage: session-run; category: missing-terminal"),
    ),
    Row(
        "a turn ended before the prompt was received",
        {"prompt": [{"end": "completed"}, IDLE, *RECEIPT, {"text": "x"}, IDLE]},
        line("stage: session-run; category: missing-terminal"),
    ),
    Row(
        "only a descendant's turn ended",
        turn(
            {"text": "x"},
            {"event": ["child", {"type": "turn/end", "data": {"reason": {"kind": "completed"}}}]},
            {"status": ["child", "idle"]},
            IDLE,
        ),
        line("stage: session-run; category: missing-terminal"),
    ),
    Row(
        "the prompt is answered with an error",
        {"prompt": [{"error": ERROR}]},
        line("stage: session-run; category: protocol; rpc code: -32603"),
    ),
    *(
        Row(
            f"the prompt is answered with {answer!r}",
            {"prompt": [{"answer": answer}]},
            line("stage: session-run; category: protocol; reason: malformed-answer"),
        )
        for answer in NO_MESSAGE_ID
    ),
    *(
        Row(
            f"the process exits with {code}",
            turn({"text": "x"}, {"exit": code}),
            line(f"stage: session-run; category: transport; exit code: {code}"),
        )
        for code in (0, 1, 255)
    ),
    *(
        Row(
            f"SIG{name} ends the process",
            turn({"text": "x"}, {"signal": name}),
            line(f"stage: session-run; category: transport; signal: SIG{name}"),
        )
        for name in ("KILL", "SEGV")
    ),
    Row(
        "stdout ends, and the process stays",
        turn({"text": "x"}, {"close_stdout": True}, {"wait": True}),
        line("stage: session-run; category: transport"),
    ),
    Row(
        "a frame that is too large",
        turn({"text": "x"}, LARGE, {"wait": True}),
        line("stage: session-run; category: protocol; reason: frame-too-large"),
        settings=TOO_LARGE,
    ),
    Row(
        "the turn deadline",
        turn({"text": "x"}, {"wait": True}),
        line("stage: session-run; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 3.0},
    ),
    Row(
        "the turn deadline before the receipt",
        {"prompt": []},
        line("stage: session-run; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.5},
    ),
]
