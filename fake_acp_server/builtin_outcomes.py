"""Built-in scenarios for the ways in which a run can end: by stage (start, session, end of the turn) and by
fact.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What a failing turn has said before it fails, so that a client can show that partial output survives.
PARTIAL: dict[str, Any] = {"text": "partial answer"}

ERROR = {"code": -32603, "message": "Internal error", "data": {"details": "the model is on fire"}}
LOGIN = {"code": -32000, "message": "Authentication required"}
HUGE = {"bytes": "x", "repeat": 100_000_000}
FALLBACK_OPTION = {
    "id": "model",
    "name": "Model",
    "type": "select",
    "currentValue": "small",
    "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
}


def _turn(purpose: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"purpose": purpose, "turns": [[PARTIAL, *steps]], **more}


START: dict[str, dict[str, Any]] = {
    "start-exit": {
        "purpose": "leaves with code 3 instead of answering initialize",
        "initialize": {"before_answer": [{"stderr": "cannot read the configuration"}, {"exit": 3}]},
    },
    "start-exit-at-once": {"purpose": "leaves with code 1 before it reads anything", "start": [{"exit": 1}]},
    "start-exit-clean": {
        "purpose": "leaves with code 0 instead of answering initialize",
        "initialize": {"before_answer": [{"exit": 0}]},
    },
    "start-killed": {
        "purpose": "dies by SIGKILL instead of answering initialize",
        "initialize": {"before_answer": [{"signal": "KILL"}]},
    },
    "start-closes-stdout": {
        "purpose": "closes stdout instead of answering initialize, and stays",
        "initialize": {"before_answer": [{"close_stdout": True}], "no_answer": True},
    },
    "start-auth-required": {"purpose": "answers initialize with -32000", "initialize": {"error": LOGIN}},
    "start-error": {"purpose": "answers initialize with -32603", "initialize": {"error": ERROR}},
    "start-version-two": {
        "purpose": "answers initialize with protocol version 2",
        "initialize": {"merge": {"protocolVersion": 2}},
    },
    "start-version-zero": {
        "purpose": "answers initialize with protocol version 0",
        "initialize": {"merge": {"protocolVersion": 0}},
    },
    "start-version-text": {
        "purpose": "answers initialize with a date as the protocol version",
        "initialize": {"merge": {"protocolVersion": "2025-06-18"}},
    },
    "start-noise": {
        "purpose": "prints lines of text for ever and never speaks ACP",
        "start": [{"raw": {"text": "Welcome! Type help to begin.\n> \n", "repeat": 500}}],
        "initialize": {"no_answer": True},
    },
    "start-malformed": {"purpose": "answers initialize with a list", "initialize": {"result": []}},
    "start-huge-frame": {"purpose": "answers initialize with a line of 100 MB", "initialize": {"raw": HUGE}},
    "start-silent": {"purpose": "never answers initialize", "initialize": {"no_answer": True}},
}

SESSION: dict[str, dict[str, Any]] = {
    "session-exit": {
        "purpose": "leaves with code 3 instead of answering session/new",
        "session_new": {"before_answer": [{"exit": 3}]},
    },
    "session-killed": {
        "purpose": "dies by SIGSEGV instead of answering session/new",
        "session_new": {"before_answer": [{"signal": "SEGV"}]},
    },
    "session-closes-stdout": {
        "purpose": "closes stdout instead of answering session/new, and stays",
        "session_new": {"before_answer": [{"close_stdout": True}], "no_answer": True},
    },
    "session-auth-required": {
        "purpose": "answers session/new with -32000, whatever login was tried",
        "auth_methods": [{"id": "login", "name": "Log in"}],
        "session_new": {"error": LOGIN},
    },
    "session-error": {"purpose": "answers session/new with -32603", "session_new": {"error": ERROR}},
    "session-no-id": {"purpose": "answers session/new without a session id", "session_new": {"result": {}}},
    "session-bad-id": {
        "purpose": "answers session/new with a number as the session id",
        "session_new": {"result": {"sessionId": 7}},
    },
    "session-malformed": {
        "purpose": "answers session/new with a text",
        "session_new": {"result": "session-1"},
    },
    "session-huge-frame": {
        "purpose": "answers session/new with a line of 100 MB",
        "session_new": {"raw": HUGE},
    },
    "session-silent": {"purpose": "never answers session/new", "session_new": {"no_answer": True}},
    "session-option-refused": {
        "purpose": "offers a config option and refuses to set it",
        "session_new": {"merge": {"configOptions": [FALLBACK_OPTION]}},
        "session_set_config_option": {"error": {"code": -32602, "message": "Invalid params"}},
    },
    "session-option-unchanged": {
        "purpose": "offers a config option, and setting it changes nothing",
        "session_new": {"merge": {"configOptions": [FALLBACK_OPTION]}},
        "session_set_config_option": {"result": {"configOptions": [FALLBACK_OPTION]}},
    },
    "session-close-silent": {
        "purpose": "never answers session/close",
        "session_close": {"no_answer": True},
    },
    "session-close-error": {
        "purpose": "answers session/close with -32603",
        "session_close": {"error": ERROR},
    },
    "session-lost": {
        "purpose": "knows no earlier session: load and resume answer -32002",
        "capabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}, "close": {}}},
        "session_load": {"error": {"code": -32002, "message": "Resource not found"}},
        "session_resume": {"error": {"code": -32002, "message": "Resource not found"}},
    },
}

END: dict[str, dict[str, Any]] = {
    "end-completed": _turn("ends with end_turn", {"stop": "end_turn"}),
    "end-max-tokens": _turn("ends with max_tokens", {"stop": "max_tokens"}),
    "end-max-turn-requests": _turn("ends with max_turn_requests", {"stop": "max_turn_requests"}),
    "end-refusal": _turn("ends with refusal", {"stop": "refusal"}),
    "end-cancelled": _turn("ends with cancelled although nobody cancelled", {"stop": "cancelled"}),
    "end-unknown-reason": _turn("ends with a stop reason nobody knows", {"stop": "sunspots"}),
    "end-no-reason": _turn("answers the prompt without a stop reason", {"stop": {}}),
    "end-bad-reason": _turn("answers the prompt with a number as the stop reason", {"stop": 7}),
    "end-null-result": _turn(
        "answers the prompt with null",
        {"frame": {"jsonrpc": "2.0", "id": "${request_id}", "result": None}},
        {"no_answer": True},
    ),
    "end-empty": {"purpose": "ends with end_turn and has said nothing", "turns": [[{"stop": "end_turn"}]]},
    "end-error": _turn("answers the prompt with -32603", {"error": ERROR}),
    "end-odd-error": _turn(
        "answers the prompt with an error code of its own, its data a list",
        {"error": {"code": 4711, "data": ["first", {"second": 2}]}},
    ),
    "end-auth-required": _turn("answers the prompt with -32000", {"error": LOGIN}),
    "end-exit": _turn("leaves with code 3 in the middle of a turn", {"exit": 3}),
    "end-exit-clean": _turn("leaves with code 0 in the middle of a turn", {"exit": 0}),
    "end-killed": _turn("dies by SIGKILL in the middle of a turn", {"signal": "KILL"}),
    "end-crash": _turn(
        "prints a stack trace and dies by SIGABRT in the middle of a turn",
        {"stderr": {"text": "panic: runtime error\ngoroutine 1 [running]:"}},
        {"signal": "ABRT"},
    ),
    "end-closes-stdout": _turn(
        "closes stdout in the middle of a turn, and stays", {"close_stdout": True}, {"no_answer": True}
    ),
    "end-closes-stdin": _turn(
        "closes stdin in the middle of a turn, and stays silent", {"close_stdin": True}, {"wait_cancel": True}
    ),
    "end-stops-reading": _turn(
        "stops reading in the middle of a turn, and stays silent",
        {"stop_reading": True},
        {"wait_cancel": True},
    ),
    "end-huge-frame": _turn("sends a line of 100 MB in the middle of a turn", {"raw": HUGE}),
    "end-silent": _turn("falls silent in the middle of a turn; a cancel ends it", {"wait_cancel": True}),
    "end-silent-tool": _turn(
        "falls silent while a tool call is in progress; a cancel ends it",
        {"tool_call": {"title": "Run the tests", "kind": "execute", "status": "in_progress"}},
        {"wait_cancel": True},
    ),
    "end-half-frame": _turn(
        "leaves in the middle of a line", {"raw": '{"jsonrpc":"2.0","method":"session/upd'}, {"exit": 1}
    ),
    "end-exec": _turn("becomes another program in the middle of a turn", {"exec": ["/bin/echo", "not ACP"]}),
}

SCENARIOS: dict[str, dict[str, Any]] = {**START, **SESSION, **END}
