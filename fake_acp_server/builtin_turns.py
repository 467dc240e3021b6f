"""Built-in scenarios for turns: how real agents take a rejection, a cancel, a second prompt, trouble with
their model.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOOL = {"title": "Run make", "kind": "execute"}
ASK: dict[str, Any] = {
    "permission": {
        "tool_call": TOOL,
        "on": {
            "allow": [{"tool_call_update": {"status": "completed"}}],
            "reject": [{"tool_call_update": {"status": "failed"}}],
        },
    }
}
BEGUN: dict[str, Any] = {"text": "begun "}
WAIT: dict[str, Any] = {"sleep": 120}


def _cancelled(purpose: str, on_cancel: Any, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"purpose": purpose, "turns": [[BEGUN, *(steps or (WAIT,))]], "on_cancel": on_cancel, **more}


def _second(purpose: str, policy: str) -> dict[str, Any]:
    turns = [[BEGUN, {"sleep": 0.3}, {"text": "first "}], [{"text": "second "}]]
    return {"purpose": purpose, "second_prompt": policy, "turns": turns}


PERMISSIONS: dict[str, dict[str, Any]] = {
    "turn-permission": {
        "purpose": "a tool call that asks first; the turn goes on and ends with end_turn either way",
        "turns": [[{"tool_call": TOOL}, ASK, {"text": "done"}]],
    },
    "turn-reject-ends": {
        "purpose": "a rejected permission ends the turn at once as cancelled",
        "turns": [
            [
                {"tool_call": TOOL},
                {
                    "permission": {
                        "tool_call": TOOL,
                        "on": {"reject": [{"stop": "cancelled"}], "cancelled": [{"stop": "cancelled"}]},
                    }
                },
            ]
        ],
    },
    "turn-disobeys": {
        "purpose": "runs the tool and reports it completed although the permission was denied",
        "turns": [
            [
                {"tool_call": TOOL},
                {"permission": {"tool_call": TOOL}},
                {"tool_call_update": {"status": "completed"}},
                {"text": "done anyway"},
            ]
        ],
    },
    "turn-many-permissions": {
        "purpose": "asks for three hundred permissions at the same time and waits for all",
        "turns": [
            [
                {"repeat": {"times": 300, "steps": [{"permission": {"tool_call": TOOL, "wait": False}}]}},
                {"wait_requests": True},
                {"text": "done"},
            ]
        ],
    },
    "turn-permission-then-fails": {
        "purpose": "asks for a permission, and then the turn ends with error -32603",
        "turns": [[{"tool_call": TOOL}, ASK, {"error": {"code": -32603}}]],
    },
    "turn-two-permissions": {
        "purpose": "asks for two permissions at the same time and waits for both",
        "turns": [
            [
                {"permission": {"tool_call": {"toolCallId": "k1", **TOOL}, "wait": False}},
                {"permission": {"tool_call": {"toolCallId": "k2", **TOOL}, "wait": False}},
                {"wait_requests": True},
                {"text": "done"},
            ]
        ],
    },
}

CANCELS: dict[str, dict[str, Any]] = {
    "turn-cancel": _cancelled("a cancel is answered at once with cancelled", "cancelled"),
    "turn-cancel-end-turn": _cancelled("a cancel is answered with end_turn", "end_turn"),
    "turn-cancel-error": _cancelled("a cancel is answered with error -32603", "error"),
    "turn-cancel-slow": _cancelled(
        "a cancel is answered three seconds late", {"steps": [{"sleep": 3}, {"stop": "cancelled"}]}
    ),
    "turn-cancel-never": _cancelled("a cancel is never answered", "silent"),
    "turn-cancel-ignored": _cancelled(
        "a cancel is ignored; the turn ends normally a second later", "ignore", {"sleep": 1}, {"text": "done"}
    ),
    "turn-cancel-flood": _cancelled("a cancel is never answered, and text floods instead", "flood"),
    "turn-cancel-exit": _cancelled("a cancel makes the process leave", "exit"),
    "turn-cancel-tail": _cancelled(
        "more text and a failed tool after the cancel, then cancelled",
        {"steps": [{"text": "tail"}, {"tool_call_update": {"status": "failed"}}, {"stop": "cancelled"}]},
        {"tool_call": {**TOOL, "status": "in_progress"}},
        WAIT,
    ),
    "turn-cancel-spoils-next": {
        "purpose": "a cancel is answered with an error, and the next prompt only says that it was queued",
        "on_cancel": "error",
        "turns": [[BEGUN, WAIT], [{"text": "Queued for the next turn"}], [{"text": "answer"}]],
    },
    "turn-cancel-before-permission": {
        "purpose": "a cancel is answered before the open permission request is, which is then called off",
        "turns": [[BEGUN, {"permission": {"tool_call": TOOL, "id": 7, "interrupted_by_cancel": True}}]],
        "on_cancel": {
            "steps": [
                {"stop": "cancelled"},
                {"notify": {"method": "$/cancel_request", "params": {"requestId": 7}}},
            ]
        },
    },
    "turn-cancel-permission": {
        "purpose": "a cancel is answered when the open permission request has been",
        "turns": [[BEGUN, {"permission": {"tool_call": TOOL}}]],
    },
    "turn-cancel-permission-end-turn": {
        "purpose": "a cancel is answered with end_turn when the open permission request has been",
        "turns": [[BEGUN, {"permission": {"tool_call": TOOL}}]],
        "on_cancel": "end_turn",
    },
    "turn-cancel-permission-never": {
        "purpose": "a cancel is never answered although the open permission request has been",
        "turns": [[BEGUN, {"permission": {"tool_call": TOOL}}]],
        "on_cancel": "silent",
    },
    "turn-cancel-never-tool": _cancelled(
        "a cancel is never answered, and a tool call stays in progress",
        "silent",
        {"tool_call": {**TOOL, "status": "in_progress"}},
        WAIT,
    ),
    "turn-tool-outlives-cancel": _cancelled(
        "a cancel is answered at once, but the tool's process lives on",
        "cancelled",
        {"child": {"kind": "setsid", "connect": "${FAKE_ACP_CHILD_SOCKET}"}},
        WAIT,
    ),
}

SECOND_PROMPTS: dict[str, dict[str, Any]] = {
    "turn-second-refused": _second("a second prompt during a turn is refused with -32600", "error"),
    "turn-second-queued": _second("a second prompt during a turn waits for its end", "queue"),
    "turn-second-at-once": _second(
        "a second prompt during a turn is answered end_turn, and dropped", "end_turn"
    ),
    "turn-second-cancels-first": _second("a second prompt during a turn cancels the first", "cancel_first"),
    "turn-second-breaks-first": {
        **_second("a second prompt during a turn ends the first with error -32603", "cancel_first"),
        "on_cancel": "error",
    },
    "turn-second-unanswered": _second("a second prompt during a turn is never answered", "ignore"),
}

TROUBLE: dict[str, dict[str, Any]] = {
    "turn-model-error": {
        "purpose": "trouble with the model: error -32603, its data a text",
        "turns": [[{"error": {"code": -32603, "data": "HTTP 500 from upstream"}}]],
    },
    "turn-model-error-as-text": {
        "purpose": "trouble with the model: the error as answer text, and end_turn",
        "turns": [[{"text": "API Error: 500 Internal Server Error"}, {"stop": "end_turn"}]],
    },
    "turn-model-retries": {
        "purpose": "trouble with the model: retries for ever, and says so in notifications of its own",
        "turns": [
            [
                {
                    "repeat": {
                        "times": 600,
                        "steps": [
                            {"notify": {"method": "_session/retrying", "params": {"attempt": 1}}},
                            {"sleep": 0.2},
                        ],
                    }
                }
            ]
        ],
    },
    "turn-model-retries-silently": {
        "purpose": "trouble with the model: retries for ever, with nothing on the wire",
        "turns": [[WAIT]],
    },
    "turn-any-session": {
        "purpose": "a prompt for a session that does not exist is answered with a refusal, not an error",
        "unknown_session": {"result": {"stopReason": "refusal"}},
    },
    "turn-any-method": {
        "purpose": "an unknown method is answered with null, not an error",
        "unknown_method": {"result": None},
    },
}

SCENARIOS: dict[str, dict[str, Any]] = {**PERMISSIONS, **CANCELS, **SECOND_PROMPTS, **TROUBLE}
