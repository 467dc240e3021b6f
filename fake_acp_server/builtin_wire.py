"""Built-in scenarios for the wire: how real agents write, and what can happen to bytes and frames."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOOL = {"title": "Run make", "kind": "execute"}

#: Options with ids that say nothing, as some agents have them.
WIDE_OPTIONS = [
    {"optionId": "proceed_always", "name": "Always", "kind": "allow_always"},
    {"optionId": "proceed_session", "name": "For this session", "kind": "allow_always"},
    {"optionId": "risk_based", "name": "When the risk is low", "kind": "allow_once"},
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "abort", "name": "No", "kind": "reject_once"},
]
TWO_OPTIONS = [
    {"optionId": "approved", "name": "Allow", "kind": "allow_once"},
    {"optionId": "denied", "name": "Deny", "kind": "reject_once"},
]
LONG_COMMANDS = [
    {"name": f"skill-{number}", "description": "A long description. " * 30} for number in range(900)
]


def _text_update(text: str) -> dict[str, Any]:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "session-1", "update": chunk},
    }


def _turn(purpose: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"purpose": purpose, "turns": [list(steps)], **more}


HABITS: dict[str, dict[str, Any]] = {
    "wire-long-lines": _turn(
        "lines far over 64 KiB: a list of commands of half a megabyte, a session/new answer of 33 KB",
        {"update": {"sessionUpdate": "available_commands_update", "availableCommands": LONG_COMMANDS}},
        {"text": {"size": 200_000}},
        session_new={"merge": {"_meta": {"padding": "p" * 33_000}}},
    ),
    "wire-text-noise": _turn(
        "text that is no JSON between the frames",
        {"raw": "Loading plugins...\n"},
        {"text": "answer"},
        {"raw": "\n  warning: deprecated\r\n"},
        start=[{"raw": "(node:4711) ExperimentalWarning: something\n"}],
    ),
    "wire-stderr-flood": _turn(
        "two megabytes on stderr in one turn",
        {"stderr": {"text": "w" * 199, "repeat": 10_000}},
        {"text": "answer"},
    ),
    "wire-early-updates": _turn(
        "updates before session/new is answered, a banner before the turn, updates after it",
        {"text": "answer"},
        {"stop": "end_turn"},
        {"update": {"sessionUpdate": "usage_update", "used": 10, "size": 1000}},
        session_new={
            "before_answer": [
                {"update": {"sessionUpdate": "available_commands_update", "availableCommands": []}}
            ],
            "after_answer": [
                {"update": {"sessionUpdate": "session_info_update", "title": "New session"}},
                {"text": {"text": "Welcome to the agent!", "message_id": False}},
            ],
        },
    ),
    "wire-many-early-updates": _turn(
        "twelve hundred updates before session/new is answered",
        {"text": "answer"},
        session_new={
            "before_answer": [
                {
                    "repeat": {
                        "times": 1200,
                        "steps": [{"update": {"sessionUpdate": "usage_update", "used": 1, "size": 1000}}],
                    }
                }
            ]
        },
    ),
    "wire-huge-answer": _turn(
        "an answer of 17 MiB in chunks of one, its last word at the end",
        {"text": {"size": 1 << 20, "count": 17, "message_id": "m"}},
        {"text": {"text": "answer", "message_id": "m"}},
    ),
    "wire-early-requests": _turn(
        "runs a terminal for a session whose session/new is not yet answered",
        {"text": "answer"},
        session_new={"before_answer": [{"terminal": "git --version"}]},
    ),
    "wire-unoffered-calls": _turn(
        "uses files and terminals that nobody offered, and goes on when it is refused",
        {"read_file": "${cwd}/a.txt"},
        {"write_file": {"path": "${cwd}/a.txt", "text": "x"}},
        {"terminal": "ls -l | wc"},
        {"tool_call": {**TOOL, "content": [{"type": "terminal", "terminalId": "never-created"}]}},
        {"text": "answer"},
    ),
    "wire-unknown-methods": _turn(
        "requests and notifications that nobody knows, with and without the underscore",
        {"request": {"method": "craft/drainMidTurnQueue", "params": {"sessionId": "${session_id}"}}},
        {"notify": {"method": "_auth/status_update", "params": {"state": "ok"}}},
        {"notify": {"method": "vendor/notify/session/mode-update", "params": {}}},
        {"request": {"method": "_vendor/ping"}},
        {"text": "answer"},
    ),
    "wire-string-ids": _turn("request ids are strings", {"permission": {}}, {"text": "answer"}, ids="string"),
    "wire-uuid-ids": _turn("request ids are UUIDs", {"permission": {}}, {"text": "answer"}, ids="uuid"),
    "wire-idless-errors": _turn(
        "errors that answer nothing: with id null, with no id, with the id last",
        {"frame": {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}},
        {"frame": {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}},
        {"text": "answer"},
        {"frame": {"result": {"stopReason": "end_turn"}, "id": "${request_id}", "jsonrpc": "2.0"}},
        {"no_answer": True},
    ),
    "wire-extra-fields": _turn(
        "keys nobody knows on every level",
        {"tool_call": {**TOOL, "name": "make", "schema_version": 3, "_meta": {"x": {}}}},
        {"permission": {"tool_call": {**TOOL, "name": "make"}}},
        {"update": {"sessionUpdate": "plan", "entries": [], "vendor": [1]}},
        {"text": "answer"},
        {"stop": {"stopReason": "end_turn", "usage": {"totalTokens": 5}, "userMessageId": None}},
        session_new={"merge": {"models": {"currentModelId": "m", "availableModels": []}, "_meta": {}}},
        initialize={"merge": {"agentCapabilities": {"sessionCapabilities": {"subagents": {}, "title": {}}}}},
    ),
    "wire-bare-initialize": _turn(
        "no agentInfo, no capabilities, and login methods although no login is needed",
        {"text": "answer"},
        capabilities={},
        agent_info=False,
        auth_methods=[{"id": "oauth", "name": "Log in with a browser"}],
    ),
    "wire-tools-out-of-order": _turn(
        "tool updates before their tool call, a status that goes back, a permission for no tool call",
        {"tool_call_update": {"toolCallId": "k1", "status": "in_progress"}},
        {"permission": {"tool_call": {"toolCallId": "k1", **TOOL}}},
        {"tool_call": {"toolCallId": "k1", **TOOL, "status": "in_progress"}},
        {"tool_call_update": {"toolCallId": "k1", "status": "pending"}},
        {"permission": {"tool_call": {"toolCallId": "confirmation-1"}}},
        {"tool_call": {"toolCallId": "k2", "title": "Never updated"}},
        {"text": "answer"},
    ),
    "wire-permission-options": _turn(
        "several options of one kind, allow_always first, free ids; then only two",
        {
            "permission": {
                "options": WIDE_OPTIONS,
                "on": {"y": [{"text": "wide "}], "allow": [{"text": "allowed "}]},
            }
        },
        {"permission": {"options": TWO_OPTIONS, "on": {"reject": [{"text": "denied "}]}}},
        {"text": "answer"},
    ),
    "wire-permission-no-options": _turn(
        "permission requests with no option, and with kinds nobody knows",
        {"permission": {"options": [], "on": {"cancelled": [{"text": "none "}]}}},
        {"permission": {"options": [{"optionId": "m", "name": "Maybe", "kind": "maybe"}]}},
        {"text": "answer"},
    ),
    "wire-mixed-messages": _turn(
        "an echoed prompt, a system prompt as thought, warnings without an id, empty chunks, then the answer",
        {"user_text": "${prompt}"},
        {"thought": {"size": 17_000}},
        {"text": {"text": "Warning: the model list is old.", "message_id": False}},
        {"text": {"text": "", "message_id": "m-1"}},
        {"text": {"chunks": ["ans", "", "wer"], "message_id": "m-1"}},
    ),
    "wire-no-message-ids": _turn(
        "chunks without message ids", {"text": {"chunks": ["ans", "wer"], "message_id": False}}
    ),
}

FAULTS: dict[str, dict[str, Any]] = {
    "wire-ansi": _turn(
        "colours and a bare carriage return on stdout", {"raw": "\x1b[32mok\x1b[0m\rx\n"}, {"text": "answer"}
    ),
    "wire-json-noise": _turn(
        "JSON that is no frame: scalars, arrays, an empty object",
        {"raw": 'null\ntrue\n17\n"text"\n[]\n[{"jsonrpc":"2.0"}]\n{}\n'},
        {"text": "answer"},
    ),
    "wire-bad-utf8": _turn(
        "bytes that are no UTF-8, inside a frame and outside",
        {"raw": {"bytes": "\xff\xfe\n"}},
        {"raw": {"bytes": '{"jsonrpc":"2.0","method":"_x","params":{"t":"\xff"}}\n'}},
        {"text": "answer"},
    ),
    "wire-lone-surrogates": _turn(
        "half a surrogate pair, escaped, in the answer", {"text": "answer \ud83d!"}
    ),
    "wire-nul": _turn(
        "NUL bytes between frames and escaped inside one", {"raw": "\0\0\n"}, {"text": "answer\0"}
    ),
    "wire-line-separators": _turn(
        "characters in the answer that some split lines at",
        {"text": "one\u2028two\u2029three\u0085four\x0bfive"},
    ),
    "wire-split-frames": _turn(
        "a frame in pieces of one byte, with pauses",
        {"raw": {"json": _text_update("answer \u00e9\u4e16"), "split": 1, "delay_seconds": 0.001}},
    ),
    "wire-glued-frames": _turn(
        "many frames in one write", {"raw": {"json": _text_update("x"), "repeat": 500}}
    ),
    "wire-crlf": _turn(
        "lines that end with CRLF, and blank lines",
        {"raw": "\r\n\n" + '{"jsonrpc":"2.0","method":"_vendor/tick","params":{}}\r\n'},
        {"text": "answer"},
    ),
    "wire-no-final-newline": _turn(
        "the answer to the prompt is the last line, has no newline, and the process leaves",
        {"text": "answer"},
        {
            "raw": {
                "json": {"jsonrpc": "2.0", "id": "${request_id}", "result": {"stopReason": "end_turn"}},
                "newline": False,
            }
        },
        {"exit": 0},
    ),
    "wire-answer-and-exit": _turn(
        "answers the prompt and leaves at once", {"text": "answer"}, {"stop": "end_turn"}, {"exit": 0}
    ),
    "wire-nulls": _turn(
        "null wherever a reader may take it for nothing",
        {
            "tool_call_update": {
                "title": None,
                "kind": None,
                "status": None,
                "content": None,
                "locations": None,
            }
        },
        {"update": {"sessionUpdate": "session_info_update", "title": None}},
        {"text": "answer"},
        {"frame": {"jsonrpc": "2.0", "method": "session/update", "params": None}},
        {
            "frame": {
                "jsonrpc": "2.0",
                "method": "session/update",
                "params": {"sessionId": "session-1", "update": None},
            }
        },
    ),
    "wire-unknown-variants": _turn(
        "update, content, tool content, kind and status words nobody knows",
        {"update": {"sessionUpdate": "weather", "temperature": 21}},
        {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "data": "?"}}},
        {
            "tool_call": {
                "title": "T",
                "kind": "juggle",
                "status": "levitating",
                "content": [{"type": "smell"}],
            }
        },
        {
            "update": {
                "sessionUpdate": "plan",
                "entries": [{"content": "x", "priority": "urgent", "status": "?"}, 7],
            }
        },
        {"text": "answer"},
    ),
    "wire-duplicate-answer": _turn(
        "answers the prompt twice", {"text": "answer"}, {"stop": "end_turn"}, {"stop": "refusal"}
    ),
    "wire-foreign-answer": _turn(
        "answers requests nobody sent",
        {"frame": {"jsonrpc": "2.0", "id": 4711, "result": {"stopReason": "refusal"}}},
        {"frame": {"jsonrpc": "2.0", "id": "never", "error": {"code": -32603, "message": "x"}}},
        {"text": "answer"},
    ),
    "wire-wrong-id-type": _turn(
        "answers with the id as text first, then right",
        {"frame": {"jsonrpc": "2.0", "id": "id-${request_id}", "result": {"stopReason": "refusal"}}},
        {"frame": {"jsonrpc": "2.0", "id": True, "result": {"stopReason": "refusal"}}},
        {"text": "answer"},
    ),
    "wire-result-and-error": _turn(
        "answers the prompt with a result and an error at once",
        {
            "frame": {
                "jsonrpc": "2.0",
                "id": "${request_id}",
                "result": {"stopReason": "end_turn"},
                "error": {"code": -32603, "message": "both"},
            }
        },
        {"no_answer": True},
    ),
    "wire-late-answer": _turn(
        "when cancelled, answers two seconds late, and a chunk of the old turn follows",
        {"text": {"text": "answer", "message_id": "old"}},
        {"wait_cancel": {"timeout_seconds": 10}},
        {"sleep": 2},
        {"stop": "cancelled"},
        {"text": {"text": "late", "message_id": "old"}},
    ),
}

SCENARIOS: dict[str, dict[str, Any]] = {**HABITS, **FAULTS}
