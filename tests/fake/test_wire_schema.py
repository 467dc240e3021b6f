"""The judge of frames: it accepts what is right and refuses each kind of wrong frame."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.wire_schema import FrameChecker

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}


def call(method: str, params: Any = None, **more: Any) -> dict[str, Any]:
    """A request with the id 1, or with ``id=...``."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}


def update(**fields: Any) -> dict[str, Any]:
    """A ``session/update`` notification."""
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}}


RIGHT = [
    (
        "client",
        call("initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}}),
    ),
    ("client", call("session/prompt", PROMPT)),
    ("client", call("session/prompt", {**PROMPT, "_meta": {"anything": {"goes": 1}}})),
    ("client", call("_vendor/x", {"anything": 1})),
    ("client", {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}),
    ("client", {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}}),
    ("agent", {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "a"}}),
    ("agent", {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}),
    ("agent", update(sessionUpdate="tool_call", toolCallId="k", title="t", rawInput={"any": {"thing": 1}})),
    ("agent", update(sessionUpdate="usage_update", used=2**64 - 1, size=1)),
]

WRONG = [
    ("not an object", "client", []),
    ("no version", "client", {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
    ("unknown member", "client", call("session/prompt", PROMPT, extra=1)),
    ("unknown method", "client", call("session/promt", PROMPT)),
    ("wrong side", "agent", call("session/prompt", PROMPT)),
    ("notification sent as a request", "client", call("session/cancel", {"sessionId": "s"})),
    ("missing params", "client", {"jsonrpc": "2.0", "id": 1, "method": "session/prompt"}),
    ("missing key", "client", call("session/prompt", {"sessionId": "s"})),
    ("unknown key", "client", call("session/prompt", {**PROMPT, "colour": 1})),
    (
        "unknown key deep down",
        "client",
        call("session/prompt", {**PROMPT, "prompt": [{"type": "text", "text": "x", "colour": 1}]}),
    ),
    (
        "misspelt capability",
        "client",
        call("initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFiles": True}}}),
    ),
    ("wrong type", "client", call("session/prompt", {"sessionId": 1, "prompt": []})),
    ("integer as text", "client", call("initialize", {"protocolVersion": "1"})),
    ("integer as float", "client", call("initialize", {"protocolVersion": 1.0})),
    ("integer as boolean", "client", call("initialize", {"protocolVersion": True})),
    ("integer too large", "client", call("initialize", {"protocolVersion": 65536})),
    ("integer negative", "agent", update(sessionUpdate="usage_update", used=-1, size=1)),
    ("unknown variant", "agent", update(sessionUpdate="weather", temperature=1)),
    ("key of another variant", "agent", update(sessionUpdate="plan", entries=[], title="x")),
    (
        "unknown tool kind",
        "agent",
        update(sessionUpdate="tool_call", toolCallId="k", title="t", kind="juggle"),
    ),
    ("null id", "client", call("session/prompt", PROMPT, id=None)),
    ("boolean id", "client", call("session/prompt", PROMPT, id=True)),
    ("fractional id", "client", call("session/prompt", PROMPT, id=1.5)),
    ("answer without a request", "agent", {"jsonrpc": "2.0", "id": 9, "result": {}}),
    ("answer without an id", "agent", {"jsonrpc": "2.0", "result": {}}),
    ("neither result nor error", "agent", {"jsonrpc": "2.0", "id": 9}),
    (
        "error without an id",
        "agent",
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "x"}},
    ),
]

WRONG_ANSWERS = [
    ("both", {"result": {"stopReason": "end_turn"}, "error": {"code": 1, "message": "x"}}),
    ("null result", {"result": None}),
    ("unknown reason", {"result": {"stopReason": "sunspots"}}),
    ("missing reason", {"result": {}}),
    ("unknown key", {"result": {"stopReason": "end_turn", "colour": 1}}),
    ("error without message", {"error": {"code": 1}}),
    ("error code as text", {"error": {"code": "1", "message": "x"}}),
    ("error code too large", {"error": {"code": 2**31, "message": "x"}}),
    ("error with a further key", {"error": {"code": 1, "message": "x", "_meta": {}}}),
    ("id of another type", {"id": "1", "result": {"stopReason": "end_turn"}}),
]


@pytest.mark.parametrize(("sender", "frame"), RIGHT)
def test_a_right_frame_is_accepted(checker: FrameChecker, sender: str, frame: Any) -> None:
    checker.check(sender, frame)


@pytest.mark.parametrize(("what", "sender", "frame"), WRONG, ids=[what for what, _, _ in WRONG])
def test_a_wrong_frame_is_refused(checker: FrameChecker, what: str, sender: str, frame: Any) -> None:
    with pytest.raises(AssertionError):
        checker.check(sender, frame)


@pytest.mark.parametrize(("what", "answer"), WRONG_ANSWERS, ids=[what for what, _ in WRONG_ANSWERS])
def test_a_wrong_answer_is_refused_by_its_method(checker: FrameChecker, what: str, answer: Any) -> None:
    checker.check("client", call("session/prompt", PROMPT))
    with pytest.raises(AssertionError):
        checker.check("agent", {"jsonrpc": "2.0", "id": 1, **answer})


def test_a_request_is_answered_once(checker: FrameChecker) -> None:
    checker.check("client", call("session/prompt", PROMPT))
    assert checker.unanswered("client") == ["session/prompt"]
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}
    checker.check("agent", answer)
    assert checker.unanswered("client") == []
    with pytest.raises(AssertionError, match="no open request"):
        checker.check("agent", answer)


def test_an_id_in_use_is_refused_and_each_side_has_its_own(checker: FrameChecker) -> None:
    checker.check("client", call("session/prompt", PROMPT))
    with pytest.raises(AssertionError, match="already in use"):
        checker.check("client", call("session/prompt", PROMPT))
    checker.check("agent", call("fs/read_text_file", {"sessionId": "s", "path": "/a"}))
    checker.check("client", {"jsonrpc": "2.0", "id": 1, "result": {"content": "x"}})
