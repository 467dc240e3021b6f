"""Built-in scenarios that behave: examples of every ordinary part of the protocol."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEMO_TURN: list[Any] = [
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
                {"type": "diff", "path": "${cwd}/notes.txt", "oldText": "draft\n", "newText": "final\n"}
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

MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "Edits"}],
}

OPTIONS = [
    {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": "small",
        "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
    },
    {
        "id": "effort",
        "name": "Effort",
        "category": "thought_level",
        "type": "select",
        "currentValue": "low",
        "options": [
            {"group": "usual", "name": "Usual", "options": [{"value": "low", "name": "Low"}]},
            {"group": "costly", "name": "Costly", "options": [{"value": "high", "name": "High"}]},
        ],
    },
]

RICH_TURN: list[Any] = [
    {"user_text": {"text": "${prompt}", "message_id": "user-1"}},
    {"update": {"sessionUpdate": "session_info_update", "title": "A rich turn"}},
    {
        "update": {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"name": "tidy", "description": "Tidy the tree", "input": {"hint": "folder"}}
            ],
        }
    },
    {"tool_call": {"toolCallId": "read-1", "title": "Read a.py", "kind": "read", "status": "in_progress"}},
    {
        "tool_call_update": {
            "toolCallId": "read-1",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "x = 1"}}],
            "rawOutput": {"lines": 1},
        }
    },
    {"tool_call": {"toolCallId": "run-1", "title": "Run the tests", "kind": "execute"}},
    {"tool_call_update": {"toolCallId": "run-1", "status": "failed"}},
    {"text": "Here is a picture: "},
    {
        "update": {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "message-1-2",
            "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        }
    },
    {
        "update": {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "message-1-2",
            "content": {"type": "resource_link", "uri": "file:///srv/a.py", "name": "a.py"},
        }
    },
    {
        "update": {
            "sessionUpdate": "usage_update",
            "used": 1200,
            "size": 200000,
            "cost": {"amount": 0.02, "currency": "USD"},
        }
    },
]

_ALL_SESSIONS: dict[str, Any] = {"close": {}, "list": {}, "resume": {}, "delete": {}}

SCENARIOS: dict[str, dict[str, Any]] = {
    "demo": {
        "purpose": "a short conversation: thought, plan, an edit that asks for permission, streamed answer",
        "turns": [DEMO_TURN],
    },
    "echo": {"purpose": "answers every prompt with its own text, at once", "turns": [[{"echo": "prompt"}]]},
    "rich": {
        "purpose": "one turn with every kind of update and of content",
        "turns": [RICH_TURN],
    },
    "stream": {
        "purpose": "twenty chunks, 20 ms apart, one message",
        "turns": [[{"text": {"size": 20, "count": 20, "delay_seconds": 0.02}}]],
    },
    "flood": {
        "purpose": "twenty thousand small chunks as fast as the pipe takes them",
        "turns": [[{"text": {"size": 20, "count": 20_000}}]],
    },
    "endless": {
        "purpose": "streams until it is cancelled, then ends as it should",
        "turns": [[{"text": {"text": "more ", "forever": True, "delay_seconds": 0.01}}]],
    },
    "login": {
        "purpose": "session/new needs a login first; `authenticate` with `api-key` helps",
        "auth_methods": [{"id": "api-key", "name": "API key", "description": "From the environment"}],
        "capabilities": {"auth": {"logout": {}}, "sessionCapabilities": {"close": {}}},
        "session_new": {"needs_auth": True},
    },
    "sessions": {
        "purpose": "sessions can be listed, loaded, resumed, closed and deleted; load replays a past turn",
        "capabilities": {"loadSession": True, "promptCapabilities": {}, "sessionCapabilities": _ALL_SESSIONS},
        "history": [
            {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "an old question"}},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "an old answer"}},
        ],
    },
    "options": {
        "purpose": "offers two modes and two config options, which can be set and read back",
        "session_new": {"merge": {"modes": MODES, "configOptions": OPTIONS}},
    },
    "media": {
        "purpose": "takes images, audio and embedded resources in prompts, and shows the blocks it got",
        "capabilities": {
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "sessionCapabilities": {"close": {}},
        },
        "turns": [[{"echo": "blocks"}]],
    },
    "files": {
        "purpose": "reads ${cwd}/notes.txt through the client and writes it back in capitals of its own",
        "turns": [
            [
                {"read_file": {"path": "${cwd}/notes.txt", "on": {"error": [{"text": "not readable; "}]}}},
                {
                    "write_file": {
                        "path": "${cwd}/notes.txt",
                        "text": "THE NOTES\n",
                        "on": {"result": [{"text": "written"}], "error": [{"text": "not writable"}]},
                    }
                },
            ]
        ],
    },
    "terminal": {
        "purpose": "runs `echo hello` in a terminal of the client and says what it printed",
        "turns": [
            [
                {
                    "terminal": {
                        "command": "echo",
                        "args": ["hello"],
                        "cwd": "${cwd}",
                        "on": {
                            "result": [{"text": "${terminal.output}"}],
                            "error": [{"text": "no terminal"}],
                        },
                    }
                }
            ]
        ],
    },
    "elicit": {
        "purpose": "asks the user to choose a branch with a form, and says what came back",
        "turns": [
            [
                {
                    "elicit": {
                        "message": "Which branch?",
                        "schema": {
                            "type": "object",
                            "properties": {"branch": {"type": "string", "enum": ["main", "dev"]}},
                            "required": ["branch"],
                        },
                        "on": {"error": [{"text": "not asked"}]},
                    }
                },
                {"text": "${elicited.action}"},
            ]
        ],
    },
    "tour": {
        "purpose": "a turn with permission, files and terminal; a turn that only a cancel ends; load",
        "capabilities": {"loadSession": True, "promptCapabilities": {}, "sessionCapabilities": _ALL_SESSIONS},
        "turns": [
            [
                *DEMO_TURN[:-2],
                {"read_file": "${cwd}/notes.txt"},
                {"write_file": {"path": "${cwd}/notes.txt", "text": "${file.content}"}},
                {"terminal": {"command": "echo", "args": ["hello"], "cwd": "${cwd}"}},
                {"text": " The terminal said ${terminal.output}"},
            ],
            [{"text": {"text": "more ", "forever": True, "delay_seconds": 0.01}}],
        ],
    },
    "conversation": {
        "purpose": "three turns that differ: an answer, a refusal, an answer that asks for permission",
        "turns": [[{"text": "first"}], [{"stop": "refusal"}], DEMO_TURN],
    },
}
