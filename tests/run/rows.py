"""The rows of the failure table that a start can provoke: a scenario, and the text that is said about it.

The expected texts are whole lines, so that a word or a field too many is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PERMISSION_LINE = "ACP permission (policy: reject; request: edit; decision: denied)"
ASK = {"permission": {"id": "asked", "tool_call": {"toolCallId": "c", "title": "t", "kind": "edit"}}}


def line(fields: str) -> str:
    """The failure line of the ACP provider with these fields."""
    return f"Subagent failure (provider: ACP; {fields})"


@dataclass(frozen=True)
class Row:
    """A fact and what is said about it."""

    name: str
    scenario: dict[str, Any]
    expected: str | None
    stop_reason: str = "error"
    settings: dict[str, Any] = field(default_factory=dict)
    #: what the agent must have heard of us before `PASSING_SECONDS` pass at once (see `let_pass`)
    time_passes_at: str | None = None


#: as long as the longest deadline that is met only when the agent has come to the right place
PASSING_SECONDS = 10.0


def exits(**how: Any) -> list[dict[str, Any]]:
    return [how]


def error(code: int) -> dict[str, Any]:
    """A JSON-RPC error of this code."""
    return {"error": {"code": code, "message": "no", "data": {"no": ["no"]}}}


#: both a result and an error, which no answer may have
BOTH = '{"jsonrpc":"2.0","id":${request_id},"result":{},"error":{"code":1,"message":"no"}}\n'


def question(request_id: str) -> dict[str, Any]:
    """A request of the agent, refused by us, whose answer it does not wait for."""
    return {"request": {"method": "x", "id": request_id, "wait": False}}


#: reads nothing any more, and makes us say more than a pipe holds: each answer repeats the long id
DEAF: list[dict[str, Any]] = [
    {"stop_reading": True},
    {"repeat": {"times": 5, "steps": [question("i" * 40_000)]}},
]

#: so long for the exit that nothing which waits for it is ready within the bound of a test
UNHURRIED = {"exit_observation_seconds": 60.0}

START_ROWS = [
    Row(
        "the process exits before initialize is answered",
        {"initialize": {"before_answer": exits(exit=4)}},
        line("stage: initialize; category: process-exit; exit code: 4"),
    ),
    Row(
        "the process exits cleanly before initialize is answered",
        {"initialize": {"before_answer": exits(exit=0)}},
        line("stage: initialize; category: process-exit; exit code: 0"),
    ),
    Row(
        "a signal ends the process before the session is open",
        {"session_new": {"before_answer": exits(signal="KILL")}},
        line("stage: new-session; category: process-exit; signal: SIGKILL"),
    ),
    Row(
        "stdout ends and the process stays",
        {"initialize": {"before_answer": [{"close_stdout": True}, {"sleep": 20}]}},
        line("stage: initialize; category: transport"),
    ),
    Row(
        "stdout ends before the session is open and the process stays",
        {"session_new": {"before_answer": [{"close_stdout": True}, {"sleep": 20}]}},
        line("stage: new-session; category: transport"),
    ),
    Row(
        "a login is needed",
        {"session_new": {"error": {"code": -32000, "message": "Authentication required"}}},
        line("stage: new-session; category: auth-required; rpc code: -32000"),
    ),
    Row(
        "initialize is answered with an error",
        {"initialize": {"error": {"code": -32602, "message": "no"}}},
        line("stage: initialize; category: remote-error; rpc code: -32602"),
    ),
    Row(
        "an error of a code that is not in the list",
        {"session_new": {"error": {"code": -31999, "message": "no"}}},
        line("stage: new-session; category: remote-error"),
    ),
    Row(
        "another protocol version",
        {"initialize": {"merge": {"protocolVersion": 2}}},
        line("stage: initialize; category: protocol; reason: version-mismatch"),
    ),
    Row(
        "noise and nothing else",
        {"start": [{"raw": {"text": "starting ...\n", "repeat": 200}}], "initialize": {"no_answer": True}},
        line("stage: initialize; category: protocol; reason: never-spoke-acp"),
    ),
    Row(
        "the answer to initialize is malformed",
        {"initialize": {"result": {"protocolVersion": "1"}}},
        line("stage: initialize; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "no session id",
        {"session_new": {"result": {}}},
        line("stage: new-session; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a session id that is no string",
        {"session_new": {"result": {"sessionId": 7}}},
        line("stage: new-session; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a frame that is too large",
        {"session_new": {"before_answer": [{"raw": {"text": "x", "repeat": 200_000}}, {"sleep": 20}]}},
        line("stage: new-session; category: protocol; reason: frame-too-large"),
        settings={"max_frame_bytes": 100_000},
    ),
    *(
        Row(
            f"the process exits with {code} before initialize is answered",
            {"initialize": {"before_answer": exits(exit=code)}},
            line(f"stage: initialize; category: process-exit; exit code: {code}"),
        )
        for code in (1, 126, 127, 255)
    ),
    *(
        Row(
            f"{name} ends the process before initialize is answered",
            {"initialize": {"before_answer": exits(signal=name.removeprefix("SIG"))}},
            line(f"stage: initialize; category: process-exit; signal: {name}"),
        )
        for name in ("SIGTERM", "SIGHUP", "SIGABRT")
    ),
    *(
        Row(
            f"session/new is answered with the error {code}",
            {"session_new": error(code)},
            line(f"stage: new-session; category: remote-error; rpc code: {code}"),
        )
        for code in (-32700, -32600, -32601, -32603, -32002, -32800)
    ),
    Row(
        "a login is needed for the handshake",
        {"initialize": error(-32000)},
        line("stage: initialize; category: auth-required; rpc code: -32000"),
    ),
    Row(
        "initialize is answered with null",
        {"initialize": {"result": None}},
        line("stage: initialize; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "session/new is answered with a result and an error",
        {"session_new": {"raw": BOTH}},
        line("stage: new-session; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a frame that is too large before initialize is answered",
        {"start": [{"raw": {"text": "x", "repeat": 200_000}}], "initialize": {"no_answer": True}},
        line("stage: initialize; category: protocol; reason: frame-too-large"),
        settings={"max_frame_bytes": 100_000},
    ),
    Row(
        "stdin is closed before initialize is answered, and the process stays",
        {"start": [{"close_stdin": True}, question("x"), {"sleep": 20}]},
        line("stage: initialize; category: transport"),
    ),
    Row(
        "stdin is closed before the session is open, and the process stays",
        {"session_new": {"before_answer": [{"close_stdin": True}, question("x"), {"sleep": 20}]}},
        line("stage: new-session; category: transport"),
    ),
    Row(
        "nothing is read before initialize is answered",
        {"start": [*DEAF, {"sleep": 20}]},
        line("stage: initialize; category: transport; reason: write-blocked"),
        settings={"max_unsent_bytes": 50_000},
    ),
    Row(
        "nothing is read any more before the session is open",
        {"session_new": {"before_answer": [*DEAF, {"sleep": 20}]}},
        line("stage: new-session; category: transport; reason: write-blocked"),
        settings={"max_unsent_bytes": 50_000},
    ),
    Row(
        "a malformed answer to initialize, and no look at the end of stdout",
        {"initialize": {"result": None, "after_answer": [{"close_stdout": True}, {"sleep": 20}]}},
        line("stage: initialize; category: protocol; reason: malformed-answer"),
        settings=UNHURRIED,
    ),
    Row(
        "no session id, and no look at the end of stdout",
        {"session_new": {"result": {}, "after_answer": [{"close_stdout": True}, {"sleep": 20}]}},
        line("stage: new-session; category: protocol; reason: malformed-answer"),
        settings=UNHURRIED,
    ),
    Row(
        "the startup deadline passes during initialize",
        {"initialize": {"no_answer": True}},
        line("stage: initialize; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": 0.5},
    ),
    Row(
        "the startup deadline passes before the session is open",
        {"session_new": {"no_answer": True}},
        line("stage: new-session; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": PASSING_SECONDS},
        time_passes_at="session/new",
    ),
]
