"""Strict mode and the official schema agree about what a client sends: about right frames, and about each of
them with one place changed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fake_acp_server import shapes
from fake_acp_server.strict import Judge
from tests.support.wire_schema import FrameChecker

#: Rules about the shape of one frame; what the others say is not in the schema.
SHAPE_RULES = {"frame", "params", "unknown-key", "result", "unknown-method"}

#: What a value is replaced with. The text is an absolute path, so that no rule about paths is broken.
ODD_VALUES = [None, True, -1, 7, 1.5, 2**70, "/odd", [], [7], ["/odd"], {}, {"odd": 1}, [{"odd": 1}]]

META = {"_meta": {"x": 1}}
NOTES = {"annotations": {"audience": ["user"], "lastModified": "2026-01-01", "priority": 0.5, **META}}
PAIRS = [{"name": "A", "value": "b", **META}]
BLOCKS = [
    {"type": "text", "text": "x", **NOTES},
    {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///x", **NOTES},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", **NOTES},
    {
        "type": "resource_link", "uri": "file:///x", "name": "x", "title": "t", "description": "d",
        "mimeType": "text/plain", "size": 3, **NOTES,
    },
    {"type": "resource", "resource": {"uri": "file:///x", "text": "x", "mimeType": "text/plain", **META}},
    {"type": "resource", "resource": {"uri": "file:///x", "blob": "aGk=", **META}, **NOTES},
]  # fmt: skip
SERVERS = [
    {"name": "s", "command": "/bin/s", "args": ["-x"], "env": PAIRS, **META},
    {"type": "http", "name": "s", "url": "https://s", "headers": PAIRS, **META},
    {"type": "sse", "name": "s", "url": "https://s", "headers": PAIRS, **META},
]
SETUP: dict[str, Any] = {"cwd": "/srv", "additionalDirectories": ["/x"], **META}
SESSION = {"sessionId": "s", **META}
CAPABILITIES = {
    "fs": {"readTextFile": True, "writeTextFile": True, **META},
    "terminal": True,
    "auth": {"terminal": False},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}

#: Method of the client -> params with everything in them.
CALLS: list[tuple[str, dict[str, Any]]] = [
    (
        "initialize",
        {
            "protocolVersion": 1,
            "clientCapabilities": CAPABILITIES,
            "clientInfo": {"name": "n", "version": "1", "title": "t"},
        },
    ),
    ("authenticate", {"methodId": "m"}),
    ("logout", {}),
    *(("session/new", {**SETUP, "mcpServers": [server]}) for server in SERVERS),
    ("session/load", {**SETUP, **SESSION, "mcpServers": SERVERS[:1]}),
    ("session/resume", {**SETUP, **SESSION, "mcpServers": SERVERS[1:2]}),
    ("session/list", {"cwd": "/srv", "cursor": "c"}),
    ("session/delete", SESSION),
    ("session/close", SESSION),
    ("session/set_mode", {**SESSION, "modeId": "m"}),
    ("session/set_config_option", {**SESSION, "configId": "c", "value": "v"}),
    ("session/set_config_option", {**SESSION, "configId": "c", "type": "boolean", "value": True}),
    *(("session/prompt", {**SESSION, "prompt": [block]}) for block in BLOCKS),
    ("session/cancel", SESSION),
    ("$/cancel_request", {"requestId": 3}),
]

#: Method of the agent -> results with everything in them.
ANSWERS: list[tuple[str, dict[str, Any]]] = [
    ("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "o", **META}, **META}),
    ("session/request_permission", {"outcome": {"outcome": "cancelled"}}),
    ("fs/read_text_file", {"content": "x", **META}),
    ("fs/write_text_file", META),
    ("terminal/create", {"terminalId": "t"}),
    ("terminal/output", {"output": "x", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}}),
    ("terminal/wait_for_exit", {"exitCode": 0, "signal": "SIGTERM"}),
    ("terminal/kill", {}),
    ("terminal/release", {}),
    ("elicitation/create", {"action": "accept", "content": {"a": "x", "b": 1, "c": True, "d": ["x"]}}),
    ("elicitation/create", {"action": "decline"}),
]

#: Agent's method -> params that its requests have here.
ASKED: dict[str, Any] = {
    "session/request_permission": {
        "sessionId": "s",
        "toolCall": {"toolCallId": "k"},
        "options": [{"optionId": "o", "name": "O", "kind": "allow_once"}],
    },
    "fs/read_text_file": {"sessionId": "s", "path": "/x"},
    "fs/write_text_file": {"sessionId": "s", "path": "/x", "content": "x"},
    "terminal/create": {"sessionId": "s", "command": "x"},
    "elicitation/create": {
        "mode": "url", "message": "m", "url": "https://x", "elicitationId": "e", "sessionId": "s",
    },
}  # fmt: skip


def call(method: str, params: Any) -> dict[str, Any]:
    """A frame of the client; ``session/cancel`` and ``$/cancel_request`` are notifications."""
    frame = {"jsonrpc": "2.0", "method": method, "params": params}
    return frame if method in ("session/cancel", "$/cancel_request") else {**frame, "id": 1}


def variants(value: Any) -> Iterator[Any]:
    """The value with one place changed: a key gone, a key too many, or another value."""
    yield from ODD_VALUES
    if isinstance(value, dict):
        yield {**value, "colour": 1}
        for key, item in value.items():
            yield {other: value[other] for other in value if other != key}
            if key != "_meta":
                yield from ({**value, key: changed} for changed in variants(item))
            else:
                yield from ({**value, key: odd} for odd in ODD_VALUES)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], changed, *value[index + 1 :]] for changed in variants(item))


def is_right(checker: FrameChecker, frame: Any, asked: dict[str, Any] | None) -> bool:
    """What the official schema says about a frame of the client."""
    checker._open.clear()
    try:
        if asked:
            checker.check("agent", asked)
        checker.check("client", frame)
    except AssertionError:
        return False
    return True


def broken(frame: Any, asked: dict[str, Any] | None) -> set[str]:
    """The rules about shapes that strict mode sees broken."""
    judge = Judge("test", None)
    if asked:
        judge.agent(asked)
    judge.client(copy.deepcopy(frame))
    return {violation["rule"] for violation in judge.violations} & SHAPE_RULES


def compare(checker: FrameChecker, frames: Iterator[Any], asked: dict[str, Any] | None = None) -> None:
    """Both judges say the same about each of the frames, and not always the same."""
    said = set()
    for frame in frames:
        right = is_right(checker, frame, asked)
        assert right == (not broken(frame, asked)), json.dumps(frame)
        said.add(right)
    assert said == {True, False}


@pytest.mark.parametrize(("method", "params"), CALLS)
def test_strict_mode_judges_calls_as_the_schema_does(checker: FrameChecker, method: str, params: Any) -> None:
    assert is_right(checker, call(method, params), None)
    # Params of null are as good as none; the schema has no word for that.
    changed = [one for one in variants(params) if one is not None]
    compare(checker, (call(method, one) for one in [params, *changed]))


@pytest.mark.parametrize(("method", "result"), ANSWERS)
def test_strict_mode_judges_answers_as_the_schema_does(
    checker: FrameChecker, method: str, result: Any
) -> None:
    params = ASKED.get(method, {"sessionId": "s", "terminalId": "t"})
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answers = ({"jsonrpc": "2.0", "id": 1, "result": one} for one in [result, *variants(result)])
    compare(checker, answers, asked)


def test_strict_mode_judges_errors_and_envelopes_as_the_schema_does(checker: FrameChecker) -> None:
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "terminal/create",
        "params": {"sessionId": "s", "command": "x"},
    }
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "m", "data": 1}}
    frames = [frame for frame in variants(error) if isinstance(frame, dict) and frame.get("id", 0) == 1]
    compare(checker, iter([error, *frames]), asked)
    hello = call("initialize", {"protocolVersion": 1})
    frames = [frame for frame in variants(hello) if not (isinstance(frame, dict) and is_a_notice(frame))]
    compare(checker, iter([hello, *frames]))


def is_a_notice(frame: dict[str, Any]) -> bool:
    """A call without an id, or with params of null: the two judges have different words for these."""
    return frame.get("params", 0) is None or frame.get("method") in (None, "/odd")


def test_every_shape_is_compared() -> None:
    assert {method for method, _ in CALLS} == set(shapes.PARAMS)
    assert {method for method, _ in ANSWERS} == set(shapes.RESULTS)
