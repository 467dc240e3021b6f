"""Built-in scenarios for processes: how real agents end or do not, and what they leave behind.

Children connect to the socket named by ``FAKE_ACP_CHILD_SOCKET``, if it is set: the connection ends when they
are dead.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER: dict[str, Any] = {"text": "answer"}
SOCKET = "${FAKE_ACP_CHILD_SOCKET}"


def _child(purpose: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"purpose": purpose, "turns": [[{"child": {"kind": kind, "connect": SOCKET, **more}}, ANSWER]]}


ENDINGS: dict[str, dict[str, Any]] = {
    "process-stays-at-eof": {
        "purpose": "does not leave when stdin ends; SIGTERM ends it",
        "on_eof": {"ignore": True},
    },
    "process-slow-eof": {
        "purpose": "leaves two seconds after stdin ended, with a last update",
        "on_eof": {"delay_seconds": 2, "steps": [{"text": {"text": "saved", "message_id": False}}]},
    },
    "process-eof-waits-for-turn": {
        "purpose": "leaves after stdin ended only when the turn has ended",
        "on_eof": {"wait_turns": True},
        "turns": [[ANSWER, {"wait_cancel": {"timeout_seconds": 60}}]],
    },
    "process-exit-code": {"purpose": "leaves with code 1 when stdin ends", "on_eof": {"exit_code": 1}},
    "process-ignores-term": {
        "purpose": "ignores SIGTERM; the end of stdin ends it",
        "start": [{"ignore_term": True}],
    },
    "process-second-term": {
        "purpose": "stays at the end of stdin and leaves at the second SIGTERM",
        "on_eof": {"ignore": True},
        "start": [{"count_term": {"exit_after": 2}}],
    },
    "process-stubborn": {
        "purpose": "ignores the end of stdin and SIGTERM; only SIGKILL ends it",
        "on_eof": {"ignore": True},
        "start": [{"ignore_term": True}],
    },
    "process-launcher": {
        "purpose": "the started process is a launcher that stays and passes no signal on",
        "launcher": "stays",
    },
    "process-launcher-exits": {
        "purpose": "the started process is a launcher that leaves at once",
        "launcher": "exits",
    },
}

CHILDREN: dict[str, dict[str, Any]] = {
    "process-child": _child("leaves a child in its own group", "plain"),
    "process-child-ignores-term": _child("leaves a child that ignores SIGTERM", "plain", ignore_term=True),
    "process-orphan": _child("leaves a child whose starter is gone", "launcher-exits"),
    "process-nested": _child("leaves a child behind a starter that passes no signal on", "launcher-stays"),
    "process-own-session": _child("leaves a child in a session of its own", "setsid", ignore_term=True),
    "process-daemon": _child(
        "leaves a daemon: its own session, its starter gone", "double-fork", ignore_term=True
    ),
    "process-bare-daemon": _child(
        "leaves a daemon with an empty environment",
        "double-fork",
        ignore_term=True,
        environment="empty",
        seconds=30,
    ),
    "process-own-group": _child("leaves a child in a process group of its own", "own-group"),
    "process-closed": _child("leaves a child that has closed every descriptor", "closed"),
    "process-stopped": _child("leaves a child that has stopped itself", "stopped", seconds=30),
    "process-holds-stdout": _child("leaves a child that keeps stdout open", "holds-stdout"),
    "process-fork-loop": _child("leaves a process that goes on starting children", "fork-loop", seconds=30),
    "process-relay": _child("leaves a process that its child replaces, again and again", "relay", seconds=30),
    "process-setsid-relay": _child(
        "leaves the same, and each in a session of its own", "setsid-relay", seconds=30
    ),
    "process-cleans-up": {
        "purpose": "has a child and ends it itself when stdin ends",
        "turns": [[{"child": {"kind": "plain", "connect": SOCKET}}, ANSWER]],
        "on_eof": {"steps": [{"end_children": True}]},
    },
}

RHYTHMS: dict[str, dict[str, Any]] = {
    "process-slow-start": {
        "purpose": "takes a second for initialize and another for session/new; starts a short-lived child",
        "start": [{"child": {"kind": "plain", "seconds": 0.2}}],
        "initialize": {"delay_seconds": 1},
        "session_new": {"delay_seconds": 1},
    },
    "process-goes-on": {
        "purpose": "goes on by itself after the turn: usage and a title follow the answer",
        "turns": [
            [
                ANSWER,
                {"stop": "end_turn"},
                {"sleep": 0.05},
                {"update": {"sessionUpdate": "usage_update", "used": 900, "size": 200000}},
                {"update": {"sessionUpdate": "session_info_update", "title": "A title made later"}},
            ]
        ],
    },
}

SCENARIOS: dict[str, dict[str, Any]] = {**ENDINGS, **CHILDREN, **RHYTHMS}
