"""The built-in scenarios: names, purposes, and where they stand. Only what is asked for is loaded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEMO: dict[str, Any] = {
    "name": "demo",
    "purpose": "A short conversation: thought, plan, an edit that asks for permission, streamed answer",
    "turns": [
        [
            {"thought": "Let me look at the request first."},
            {
                "plan": [
                    {"content": "Understand the request", "priority": "high", "status": "completed"},
                    {"content": "Edit the notes", "priority": "medium", "status": "in_progress"},
                ]
            },
            {
                "tool_call": {
                    "title": "Edit notes.txt",
                    "kind": "edit",
                    "status": "pending",
                    "locations": [{"path": "${cwd}/notes.txt", "line": 1}],
                    "content": [
                        {
                            "type": "diff",
                            "path": "${cwd}/notes.txt",
                            "oldText": "draft\n",
                            "newText": "final\n",
                        }
                    ],
                }
            },
            {
                "permission": {
                    "tool_call": {"title": "Edit notes.txt", "kind": "edit"},
                    "on": {
                        "allow": [
                            {"tool_call_update": {"status": "in_progress"}},
                            {"tool_call_update": {"status": "completed"}},
                        ],
                        "reject": [{"tool_call_update": {"status": "failed"}}],
                        "cancelled": [{"tool_call_update": {"status": "failed"}}],
                    },
                }
            },
            {
                "text": {
                    "chunks": ["Hello from the ", "fake agent. ", "You asked: ", "${prompt}"],
                    "delay_seconds": 0.03,
                }
            },
            {"update": {"sessionUpdate": "usage_update", "used": 812, "size": 200000}},
            {"stop": "end_turn"},
        ]
    ],
}

ECHO: dict[str, Any] = {
    "name": "echo",
    "purpose": "Answers every prompt with its own text, at once",
    "turns": [[{"echo": "prompt"}]],
}

_HERE = {"demo": DEMO, "echo": ECHO}


def find(name: str) -> dict[str, Any] | None:
    """The scenario of that name, or None."""
    return _HERE.get(name)


def purposes() -> dict[str, str]:
    """Name -> one line of purpose, of all of them."""
    return {name: scenario["purpose"] for name, scenario in _HERE.items()}
