"""How the fake answers requests that are wrong, unknown or too early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake.driver import Fake, wait_for

Start = Callable[..., Fake]

NEW = {"cwd": "/srv", "mcpServers": []}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,', -32700),
        (b'"\xff"', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"initialize"}', -32600),
    ],
)
def test_a_line_that_is_no_frame_is_refused_without_an_id(
    start_faulty: Start, line: bytes, code: int
) -> None:
    fake = start_faulty("echo")
    fake.write(line + b"\n")
    answer = fake.read()
    assert (answer["id"], answer["error"]["code"]) == (None, code)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/fork", {}, -32601),
        ("_vendor/thing", {}, -32601),
        ("initialize", {}, -32602),
        ("initialize", {"protocolVersion": "1"}, -32602),
        ("initialize", {"protocolVersion": True}, -32602),
        ("initialize", {"protocolVersion": 65536}, -32602),
        ("initialize", [], -32602),
        ("session/new", {"cwd": "/srv"}, -32602),
        ("session/new", {"cwd": "srv", "mcpServers": []}, -32602),
        ("session/prompt", {"sessionId": "nobody", "prompt": []}, -32002),
        ("session/prompt", {"sessionId": "session-1", "prompt": ["text"]}, -32602),
        ("session/load", {"sessionId": "session-1", **NEW}, -32601),
        ("session/set_mode", {"sessionId": "session-1", "modeId": "x"}, -32601),
        ("authenticate", {"methodId": "x"}, -32602),
    ],
)
def test_a_request_that_cannot_be_served_says_why(
    start_faulty: Start, method: str, params: Any, code: int
) -> None:
    fake = start_faulty("echo")
    fake.open_session()
    assert fake.call(method, params)["error"]["code"] == code


def test_nothing_is_served_before_initialize(start: Start) -> None:
    assert start("echo").call("session/new", NEW)["error"]["code"] == -32600


def test_unknown_notifications_and_answers_are_ignored(start_faulty: Start) -> None:
    fake = start_faulty("echo")
    fake.notify("_vendor/news", {})
    fake.send({"id": 99, "result": {}})
    fake.write(b"\n\r\n")
    assert fake.open_session() == "session-1"


def test_ids_are_echoed_with_their_type(start_faulty: Start) -> None:
    fake = start_faulty("echo")
    for request_id in (0, "0", "a-b", -5):
        fake.send({"id": request_id, "method": "initialize", "params": {"protocolVersion": 1}})
        assert fake.read()["id"] == request_id


def test_frames_split_anywhere_and_a_last_one_without_newline_are_read(start_faulty: Start) -> None:
    fake = start_faulty("echo")
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    for byte in line:
        fake.write(bytes([byte]))
    fake.write(b"\r\n" + line.replace(b'"id":1', b'"id":2'))
    assert fake.read()["id"] == 1
    fake.close_stdin()
    assert fake.read()["id"] == 2
    assert fake.exit_code() == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"result": {"odd": 1}}, {"result": {"odd": 1}}),
        ({"error": {"code": -32000, "message": "login"}}, {"error": {"code": -32000, "message": "login"}}),
        ({"raw": {"json": {"id": "${request_id}", "result": {}, "error": {}}}}, {"result": {}, "error": {}}),
        ([{"error": {"code": 7}}, {}], {"error": {"code": 7, "message": "Internal error"}}),
    ],
)
def test_a_scenario_may_answer_anything(start_faulty: Start, answer: Any, expected: Any) -> None:
    fake = start_faulty({"session_new": answer})
    fake.call("initialize", {"protocolVersion": 1})
    got = fake.call("session/new", NEW)
    assert {key: got.get(key) for key in expected} == expected


@pytest.mark.parametrize("ends", ["cancel", "eof"])
def test_a_client_that_does_not_read_is_heard_all_the_same(
    start_faulty: Start, ends: str, tmp_path: Path
) -> None:
    mark = tmp_path / "cancelled"
    fake = start_faulty(
        {
            "turns": [[{"text": {"size": 1000, "forever": True}}]],
            "on_cancel": {"steps": [{"touch_file": str(mark)}]},
            "on_eof": {"marker": str(mark)},
        }
    )
    fake.prompt(fake.open_session())
    for number in range(200):  # the pipe is full, and each of these is answered
        fake.request("_vendor/x", {"number": number})
    if ends == "cancel":
        fake.notify("session/cancel", {"sessionId": "session-1"})
        for _ in iter(lambda: fake.read().get("id") == 202, True):
            pass
    else:
        fake.close_stdin()
        assert fake.exit_code() == 0
    wait_for(mark.exists)


def test_long_answers_are_out_before_the_end(start_faulty: Start) -> None:
    fake = start_faulty({"session_new": {"merge": {"_meta": {"padding": "p" * 60_000}}}})
    for frame in (
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": NEW},
        {"id": 3, "method": "session/new", "params": NEW},
    ):
        fake.send(frame)
    fake.close_stdin()
    assert [fake.read()["id"] for _ in range(3)] == [1, 2, 3]
    assert fake.exit_code() == 0


def test_a_forgotten_fake_leaves_even_when_nobody_reads_what_it_says(start_faulty: Start) -> None:
    fake = start_faulty({"lifetime_seconds": 0.3, "start": [{"raw": {"text": "x", "repeat": 1_000_000}}]})
    assert fake.exit_code() == 75


def test_a_list_of_answers_is_used_call_by_call(start: Start) -> None:
    fake = start({"session_new": [{"error": {"code": -32603, "message": "not yet"}}, {}]})
    fake.call("initialize", {"protocolVersion": 1})
    assert "error" in fake.call("session/new", NEW)
    assert "result" in fake.call("session/new", NEW)
    assert "result" in fake.call("session/new", NEW)


def test_a_request_without_an_answer_does_not_hold_up_the_next(start: Start) -> None:
    fake = start({"session_new": [{"no_answer": True}, {}]})
    fake.call("initialize", {"protocolVersion": 1})
    fake.request("session/new", NEW)
    assert "result" in fake.call("session/new", NEW)


def test_the_log_has_every_frame_of_both_sides(start: Start, tmp_path: Any, acp_schema: Any) -> None:
    import json

    from tests.support.wire_schema import FrameChecker

    path = tmp_path / "frames"
    fake = start("echo", environment={"FAKE_ACP_LOG": str(path)})
    fake.read_answer(fake.prompt(fake.open_session(), "caf\u00e9 \u2028"))
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    checker = FrameChecker(acp_schema)
    for entry in entries:
        checker.check(entry["from"], entry["frame"])
    assert [entry["frame"] for entry in entries if entry["from"] == "agent"] == fake.seen
    assert not checker.unanswered("client")
