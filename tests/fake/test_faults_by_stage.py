"""Every fault works at every stage: at the start, instead of an answer, within a turn, between two turns, at
the end of the input.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable
from typing import Any, get_args

import pytest

from fake_acp_server.children import KINDS
from fake_acp_server.step_models import EchoWord
from tests.fake.driver import Fake, LifeSocket

Start = Callable[..., Fake]


def at(stage: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """A scenario that does the steps at the stage."""
    scenarios: dict[str, dict[str, Any]] = {
        "start": {"start": steps},
        "initialize": {"initialize": {"before_answer": steps}},
        "session/new": {"session_new": {"before_answer": steps}},
        "turn": {"turns": [[{"text": "begun"}, *steps, {"text": "done"}]]},
        "between": {"turns": [[{"stop": "end_turn"}, *steps]]},
        "cancel": {"turns": [[{"text": "begun"}, {"sleep": 60}]], "on_cancel": {"steps": steps}},
        "eof": {"on_eof": {"steps": steps}},
    }
    return scenarios[stage]


STAGES = ["start", "initialize", "session/new", "turn", "between", "cancel", "eof"]


def go_to(fake: Fake, stage: str) -> None:
    """Talk to the fake until it is at the stage."""
    if stage == "initialize":
        fake.request("initialize", {"protocolVersion": 1})
    elif stage == "session/new":
        fake.call("initialize", {"protocolVersion": 1})
        fake.request("session/new", {"cwd": "/srv", "mcpServers": []})
    elif stage in ("turn", "between", "cancel"):
        prompt = fake.prompt(fake.open_session())
        if stage == "between":
            fake.read_answer(prompt)
        else:
            fake.read_until(lambda frame: "method" in frame)
        if stage == "cancel":
            fake.notify("session/cancel", {"sessionId": "session-1"})
    elif stage == "eof":
        fake.close_stdin()


def update(text: str) -> dict[str, Any]:
    """A frame."""
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "session-1", "update": chunk},
    }


def line(frame: Any) -> bytes:
    """How the fake writes a frame."""
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


BOTH = {"jsonrpc": "2.0", "id": 2, "result": {}, "error": {"code": 1, "message": "m"}}
FOREIGN = {"jsonrpc": "2.0", "id": "nobody", "result": None}
VARIANT = {
    "jsonrpc": "2.0",
    "method": "session/update",
    "params": {"update": {"sessionUpdate": "weather"}, "x": 1},
}
NULLS = {"jsonrpc": None, "id": None, "method": None, "params": None}  # fmt: skip

#: Step -> what it puts on stdout, to the last byte.
BYTES: list[tuple[dict[str, Any], bytes]] = [
    ({"raw": "Loading plugins...\n"}, b"Loading plugins...\n"),
    ({"raw": "\x1b[32mok\x1b[0m\r\n"}, b"\x1b[32mok\x1b[0m\r\n"),
    ({"raw": 'null\n7\n"x"\n[]\n[{}]\n'}, b'null\n7\n"x"\n[]\n[{}]\n'),
    ({"raw": {"bytes": "\xff\xfe\n"}}, b"\xff\xfe\n"),
    ({"frame": {"text": "\ud800"}}, b'{"text":"\\ud800"}\n'),
    ({"raw": {"json": update("\u00e9"), "split": 1, "delay_seconds": 0.0001}}, line(update("\u00e9"))),
    ({"raw": {"json": update("x"), "repeat": 3}}, line(update("x")) * 3),
    ({"raw": '{"jsonrpc":"2.0","method":"_x"}\r\n\r\n'}, b'{"jsonrpc":"2.0","method":"_x"}\r\n\r\n'),
    ({"raw": "\0\0\n"}, b"\0\0\n"),
    ({"raw": {"bytes": "x", "repeat": 2_000_000}}, b"x" * 2_000_000),
    ({"raw": {"base64": "AP8K"}}, b"\x00\xff\n"),
    ({"frame": BOTH}, line(BOTH)),
    ({"frame": FOREIGN}, line(FOREIGN)),
    ({"frame": {**FOREIGN, "id": True}}, line({**FOREIGN, "id": True})),
    ({"frame": VARIANT}, line(VARIANT)),
    ({"frame": NULLS}, line(NULLS)),
    ({"notify": {"method": "vendor/x"}}, b'{"jsonrpc":"2.0","method":"vendor/x","params":{}}\n'),
    ({"raw": '{"jsonrpc":"2.0","method":"session/upd'}, b'{"jsonrpc":"2.0","method":"session/upd'),
]


@pytest.mark.parametrize("stage", STAGES)
def test_bytes_and_frames_go_out_as_they_are(start_faulty: Start, stage: str) -> None:
    fake = start_faulty(at(stage, [step for step, _ in BYTES]))
    go_to(fake, stage)
    expected = b"".join(data for _, data in BYTES)
    got = [fake._buffer]
    while sum(map(len, got)) < len(expected):
        got.append(fake.read_bytes())
    assert expected in b"".join(got)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"exit": 41}, 41),
        ({"exit": 0}, 0),
        ({"signal": "KILL"}, -signal.SIGKILL),
        ({"signal": "SEGV"}, -signal.SIGSEGV),
        ({"signal": "HUP"}, -signal.SIGHUP),
        ({"exec": ["/bin/sh", "-c", "exit 5"]}, 5),
    ],
)
def test_the_process_ends(start_faulty: Start, stage: str, step: dict[str, Any], code: int) -> None:
    fake = start_faulty(at(stage, [{"raw": "half a fra"}, step]))
    go_to(fake, stage)
    assert fake.exit_code() == code


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_stream_is_closed_and_the_process_stays(start_faulty: Start, stage: str) -> None:
    fake = start_faulty(at(stage, [{"close_stdin": True}, {"close_stdout": True}, {"sleep": 60}]))
    go_to(fake, stage)
    while fake.read_bytes():
        pass
    with pytest.raises(BrokenPipeError):
        fake.write(b"x")
    assert fake.process.poll() is None


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_the_agent_stops_reading(start_faulty: Start, stage: str) -> None:
    fake = start_faulty(at(stage, [{"stop_reading": True}, {"raw": "stopped\n"}, {"sleep": 60}]))
    go_to(fake, stage)
    while fake.read_line() != b"stopped":
        pass
    assert fake.process.stdin
    fd = fake.process.stdin.fileno()
    os.set_blocking(fd, False)
    with pytest.raises(BlockingIOError):
        for _ in range(1000):
            os.write(fd, b"\n" * 4096)
    assert select.select([], [fd], [], 0.1) == ([], [], [])


@pytest.mark.parametrize("stage", ["initialize", "session/new", "turn", "between"])
def test_every_kind_of_child_is_started(start_faulty: Start, life: LifeSocket, stage: str) -> None:
    kinds = set(KINDS)
    children: list[dict[str, Any]] = [
        {"child": {"kind": kind, "connect": life.path, "seconds": 1, "every_seconds": 0.2}} for kind in kinds
    ]
    fake = start_faulty(at(stage, [*children, {"stderr": {"text": "e", "repeat": 99}}, {"raw": "started\n"}]))
    go_to(fake, stage)
    connections = [life.accept() for _ in kinds]
    assert {said.split()[0] for _, said in connections} == kinds
    while fake.read_line() != b"started":
        pass
    for connection, _ in connections:
        assert connection.recv(1) == b""  # each has left by itself


@pytest.mark.parametrize("stage", STAGES)
def test_what_ends_it_is_changed(start_faulty: Start, stage: str) -> None:
    """Ignored or counted SIGTERM, an ignored end of input: set late, they hold from then on."""
    steps: list[dict[str, Any]] = [
        {"ignore_eof": True},
        {"ignore_term": True},
        {"raw": "set\n"},
        {"count_term": {"exit_after": 2}},
    ]
    fake = start_faulty(at(stage, [*steps, {"raw": "counting\n"}, {"sleep": 60}]))
    go_to(fake, stage)
    while fake.read_line() != b"counting":
        pass
    if stage != "eof":
        fake.close_stdin()
    fake.process.send_signal(signal.SIGTERM)
    with pytest.raises(Exception, match="timed out"):
        fake.process.wait(0.2)
    fake.process.send_signal(signal.SIGTERM)
    assert fake.exit_code() == 0


#: Steps that say, ask or wait.
SPEAKING: list[dict[str, Any]] = [
    {"text": "t"},
    {"thought": "t"},
    {"user_text": "t"},
    {"plan": ["one"]},
    {"tool_call": {"title": "T"}},
    {"tool_call_update": {"status": "completed"}},
    {"update": {"sessionUpdate": "session_info_update", "title": "T"}},
    {"notify": {"method": "_x"}},
    *({"echo": word} for word in get_args(EchoWord)),
    {"sleep": 0.001},
    {"repeat": {"times": 2, "steps": [{"text": "again"}]}},
    {"set": {"ids": "string"}},
    {"stderr": "e"},
    {"wait_cancel": {"timeout_seconds": 0.001}},
    {"wait_file": {"path": "/no/such", "timeout_seconds": 0.001}},
    {"touch_file": "/dev/null"},
    {"stop_reading": True},
    {"start_reading": True},
    {"end_children": True},
    {"permission": {"wait": False}},
    {"permission": {"timeout_seconds": 0.001}},
    {"request": {"method": "_ask", "timeout_seconds": 0.001}},
    {"wait_requests": {"timeout_seconds": 0.001}},
]  # fmt: skip

#: Steps that need the client's answers.
ASKING: list[dict[str, Any]] = [
    {"permission": {}},
    {"request": {"method": "_ask"}},
    {"read_file": "/x"},
    {"write_file": {"path": "/x"}},
    {"terminal": "x"},
    {"elicit": {}},
]


@pytest.mark.parametrize("stage", STAGES)
def test_every_word_can_be_said(start_faulty: Start, stage: str) -> None:
    fake = start_faulty(at(stage, [*SPEAKING, {"raw": "said\n"}]))
    go_to(fake, stage)
    lines = iter(fake.read_line, b"said")
    kinds = [json.loads(one).get("method") for one in lines]
    assert kinds.count("session/update") >= 18
    assert kinds.count("session/request_permission") == 2


@pytest.mark.parametrize("stage", ["initialize", "session/new", "turn", "between"])
def test_every_question_can_be_asked(start_faulty: Start, stage: str) -> None:
    fake = start_faulty(at(stage, [*ASKING, {"raw": "asked\n"}]))
    go_to(fake, stage)
    asked = []
    for one in iter(fake.read_line, b"asked"):
        frame = json.loads(one)
        if "method" in frame and "id" in frame:
            asked.append(frame["method"].partition("/")[0])
            fake.send({"id": frame["id"], "error": {"code": -32601, "message": "Method not found"}})
    assert asked == ["session", "_ask", "fs", "fs", "terminal", "elicitation"]


def test_after_the_end_of_the_input_no_answer_is_waited_for(start_faulty: Start) -> None:
    late = {"permission": {"on": {"timeout": [{"raw": "nobody\n"}]}}}
    fake = start_faulty({"turns": [[late]], "on_eof": {"wait_turns": True, "steps": [late]}})
    fake.prompt(fake.open_session())
    fake.read_request()
    fake.close_stdin()
    assert fake.exit_code() == 0
