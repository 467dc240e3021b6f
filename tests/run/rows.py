"""The rows of the failure table that one child can provoke: a scenario, and the text that is said about it.

The expected texts are whole lines, so that a word or a field too many is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PERMISSION_LINE = "ACP permission (policy: reject; request: edit; decision: denied)"
ASK = {"permission": {"tool_call": {"toolCallId": "c", "title": "t", "kind": "edit"}}}


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


def exits(**how: Any) -> list[dict[str, Any]]:
    return [how]


def error(code: int) -> dict[str, Any]:
    """A JSON-RPC error of this code."""
    return {"error": {"code": code, "message": "no", "data": {"no": ["no"]}}}


#: both a result and an error, which no answer may have
BOTH = '{"jsonrpc":"2.0","id":${request_id},"result":{},"error":{"code":1,"message":"no"}}\n'

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
        "the startup deadline passes during initialize",
        {"initialize": {"no_answer": True}},
        line("stage: initialize; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": 0.5},
    ),
    Row(
        "the startup deadline passes before the session is open",
        {"session_new": {"no_answer": True}},
        line("stage: new-session; category: timeout; reason: startup-deadline"),
        settings={"startup_timeout_seconds": 2.5},
    ),
]

TURN_ROWS = [
    Row("end_turn", {"turns": [[ASK, {"stop": "end_turn"}]]}, None, "completed"),
    Row("max_tokens", {"turns": [[{"stop": "max_tokens"}]]}, None, "max-tokens"),
    Row(
        "max_tokens after a denial",
        {"turns": [[ASK, {"stop": "max_tokens"}]]},
        PERMISSION_LINE,
        "max-tokens",
    ),
    Row("refusal", {"turns": [[{"stop": "refusal"}]]}, None, "refusal"),
    Row("refusal after a denial", {"turns": [[ASK, {"stop": "refusal"}]]}, PERMISSION_LINE, "refusal"),
    Row("a remote cancel", {"turns": [[{"stop": "cancelled"}]]}, None, "aborted"),
    Row(
        "a remote cancel after a denial",
        {"turns": [[ASK, {"stop": "cancelled"}]]},
        PERMISSION_LINE,
        "aborted",
    ),
    Row(
        "max_turn_requests",
        {"turns": [[{"stop": "max_turn_requests"}]]},
        line("stage: prompt; category: remote-limit; stop reason: max_turn_requests"),
    ),
    Row(
        "a stop reason that is not known",
        {"turns": [[ASK, {"stop": "CANARY"}]]},
        line("stage: prompt; category: unknown; stop reason: unknown") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "no stop reason",
        {"turns": [[{"stop": {}}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a stop reason that is no string",
        {"turns": [[{"stop": 5}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a JSON-RPC error",
        {"turns": [[{"error": {"code": -32603, "message": "CANARY", "data": "CANARY"}}]]},
        line("stage: prompt; category: remote-error; rpc code: -32603"),
    ),
    Row(
        "a login is needed in the middle",
        {"turns": [[{"error": {"code": -32000, "message": "CANARY"}}]]},
        line("stage: prompt; category: auth-required; rpc code: -32000"),
    ),
    Row(
        "the process exits",
        {"turns": [[{"text": "x"}, {"exit": 255}]]},
        line("stage: process; category: process-exit; exit code: 255"),
    ),
    Row(
        "a signal ends the process after a denial",
        {"turns": [[ASK, {"signal": "SEGV"}]]},
        line("stage: process; category: process-exit; signal: SIGSEGV") + "\n" + PERMISSION_LINE,
    ),
    *(
        Row(
            f"the process exits with {code}",
            {"turns": [[{"text": "x"}, {"exit": code}]]},
            line(f"stage: process; category: process-exit; exit code: {code}"),
        )
        for code in (0, 1, 126, 127)
    ),
    *(
        Row(
            f"signal {number} ends the process",
            {"turns": [[{"text": "x"}, {"signal": number}]]},
            line(f"stage: process; category: process-exit; signal: {name}"),
        )
        for number, name in ((9, "SIGKILL"), (15, "SIGTERM"), (6, "SIGABRT"), (40, "40"))
    ),
    *(
        Row(
            f"the error {code}",
            {"turns": [[error(code)]]},
            line(f"stage: prompt; category: remote-error; rpc code: {code}"),
        )
        for code in (-32600, -32602, -32002, -32800)
    ),
    Row(
        "an error of a code that is not in the list, after a denial",
        {"turns": [[ASK, error(424242)]]},
        line("stage: prompt; category: remote-error") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "a result and an error in one answer",
        {"turns": [[{"raw": BOTH}, {"no_answer": True}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "stdin is closed, and the process stays",
        {"turns": [[{"close_stdin": True}, {**ASK}, {"sleep": 20}]]},
        line("stage: prompt; category: transport") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "stdout ends and the process stays",
        {"turns": [[{"close_stdout": True}, {"sleep": 20}]]},
        line("stage: prompt; category: transport"),
    ),
    Row(
        "a frame that is too large",
        {"turns": [[{"raw": {"text": "x", "repeat": 200_000}}, {"sleep": 20}]]},
        line("stage: prompt; category: protocol; reason: frame-too-large"),
        settings={"max_frame_bytes": 100_000},
    ),
    Row(
        "the turn deadline",
        {"turns": [[{"text": {"text": "x", "forever": True, "delay_seconds": 0.05}}]]},
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.5},
    ),
    Row(
        "the idle deadline",
        {"turns": [[{"text": "x"}, {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
    Row(
        "the tool idle deadline",
        {"turns": [[{"tool_call": {"title": "t", "status": "in_progress"}}, {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: tool-idle-deadline"),
        settings={"idle_timeout_seconds": 0.1, "tool_idle_timeout_seconds": 0.5},
    ),
    Row(
        "a deadline after a denial",
        {"turns": [[ASK, {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline") + "\n" + PERMISSION_LINE,
        settings={"idle_timeout_seconds": 0.4},
    ),
    Row(
        "a deadline comes before an answer that is malformed",
        {"on_cancel": "silent", "turns": [[{"wait_cancel": True}, {"stop": 5}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
    Row(
        "a deadline comes before an answer that says that all is done",
        {"on_cancel": "end_turn", "turns": [[{"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.4},
    ),
    Row(
        "a deadline comes before the end of stdout",
        {"turns": [[{"wait_cancel": True}, {"close_stdout": True}, {"sleep": 20}]]},
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.4, "cancel_grace_seconds": 0.3},
    ),
    Row(
        "a deadline comes before whatever the agent then does",
        {"on_cancel": "exit", "turns": [[{"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
    *(
        Row(
            f"{tool} was asked for",
            {"turns": [[*announced, {"permission": {"tool_call": asked}}, {"stop": "refusal"}]]},
            f"ACP permission (policy: allow; request: {tool}; decision: allowed)",
            "refusal",
            settings={"permission": "allow"},
        )
        for tool, announced, asked in (
            ("execute", [{"tool_call": {"toolCallId": "c", "kind": "execute"}}], {"toolCallId": "c"}),
            ("other", [{"tool_call": {"toolCallId": "c"}}], {"toolCallId": "c"}),
            ("unknown", [], {"toolCallId": "c"}),
            ("unknown", [], {"toolCallId": "c", "kind": "CANARY"}),
        )
    ),
]
