"""The rules of strict mode, by name, and the JSON Schema of its report."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Rule -> what a client that keeps it does.
RULES = {
    "frame": "sends JSON-RPC 2.0 objects, one a line, with a good id and no unknown members",
    "unknown-method": "calls only methods of the protocol, or private ones that start with an underscore",
    "params": "sends the params that the method needs, with absolute paths",
    "unknown-key": "puts no keys of its own anywhere but into _meta",
    "id-in-use": "does not use the id of a request that is not yet answered",
    "initialize-first": "calls initialize once, and nothing else before its answer",
    "not-advertised": "uses only what was advertised: methods, prompt content, MCP transports, directories",
    "auth-method": "authenticates only with a method that was offered and is no terminal method",
    "unknown-session": "names only sessions that were opened and not closed",
    "parallel-prompt": "sends no prompt to a session whose turn is not over",
    "empty-prompt": "sends no prompt without content",
    "mode-or-option": "sets only modes and options that were offered",
    "foreign-answer": "answers only requests that were sent, and each of them once",
    "result": "answers with a result of the right shape",
    "option-not-offered": "chooses only permission options that were offered",
    "permission-after-cancel": "answers the open permission requests of a cancelled turn with cancelled",
    "unanswered": "answers every request before it ends the conversation",
}

REPORT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Report of fake_acp_server in strict mode",
    "type": "object",
    "additionalProperties": False,
    "required": ["scenario", "complete", "ok", "client", "frames", "violations"],
    "properties": {
        "scenario": {"type": "string"},
        "complete": {
            "type": "boolean",
            "description": "false when the process ended without a chance to conclude",
        },
        "ok": {"type": "boolean", "description": "no rule was broken so far"},
        "client": {"description": "clientInfo as it was sent, or null"},
        "frames": {
            "type": "object",
            "additionalProperties": False,
            "required": ["client", "agent"],
            "properties": {"client": {"type": "integer"}, "agent": {"type": "integer"}},
        },
        "violations": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["rule", "frame", "text"],
                "properties": {
                    "rule": {"enum": sorted(RULES)},
                    "frame": {"type": "integer", "description": "number of the client's frame, from 1"},
                    "text": {"type": "string"},
                },
            },
        },
    },
}
