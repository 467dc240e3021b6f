"""The faults: each must break exactly what it says, for a test of a client is only as good as its fault."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fake.driver import Fake, LifeSocket, kill_pid, wait_for
from tests.fake.test_conversation import turns
from tests.support.marks import end_marked

Start = Callable[..., Fake]


def read_to_end(fake: Fake) -> bytes:
    """The rest of stdout."""
    data = b""
    while piece := fake.read_bytes():
        data += piece
    return data


def fill(fd: int) -> int:
    """Write into a non-blocking pipe until it is full; the number of bytes that went in."""
    written = 0
    try:
        while written < 1 << 24:
            written += os.write(fd, b"\n" * 4096)
    except BlockingIOError:
        pass  # full, as wanted
    return written


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("noise \u00e9\n", "noise \u00e9\n".encode()),
        ({"bytes": "\x00\xff\n"}, b"\x00\xff\n"),
        ({"base64": base64.b64encode(b"\x1b[31m\r\n").decode()}, b"\x1b[31m\r\n"),
        ({"text": "x", "repeat": 200_000}, b"x" * 200_000),
        ({"text": "abc", "split": 1, "delay_seconds": 0.001}, b"abc"),
        ({"json": [1, None]}, b"[1,null]\n"),
    ],
)
def test_raw_writes_exactly_these_bytes(start_faulty: Start, raw: Any, expected: bytes) -> None:
    fake = start_faulty({"start": [{"raw": raw}, {"exit": 0}]})
    assert read_to_end(fake) == expected


def test_a_lone_surrogate_travels_as_an_escape(start_faulty: Start) -> None:
    fake = start_faulty({"start": [{"frame": {"text": "\ud800"}}, {"exit": 0}]})
    assert read_to_end(fake) == b'{"text":"\\ud800"}\n'


def test_a_frame_may_use_the_requests_id_with_its_type_or_as_text(start_faulty: Start) -> None:
    fake = start_faulty(
        turns(
            {"frame": {"jsonrpc": "2.0", "id": "${request_id}", "result": None}},
            {"frame": {"jsonrpc": "2.0", "id": "no-${request_id}", "result": None}},
            {"no_answer": True},
        )
    )
    prompt = fake.prompt(fake.open_session())
    assert [fake.read()["id"], fake.read()["id"]] == [prompt, f"no-{prompt}"]


def test_stop_twice_is_a_duplicate_answer(start_faulty: Start) -> None:
    fake = start_faulty(turns({"stop": "end_turn"}, {"stop": "refusal"}))
    prompt = fake.prompt(fake.open_session())
    answers = [fake.read_answer(prompt), fake.read_answer(prompt)]
    assert [answer["result"]["stopReason"] for answer in answers] == ["end_turn", "refusal"]


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "sunspots", None, 7])
def test_stop_answers_with_any_reason(start_faulty: Start, reason: Any) -> None:
    fake = start_faulty(turns({"stop": reason}))
    assert fake.read_answer(fake.prompt(fake.open_session()))["result"] == {"stopReason": reason}


def test_error_answers_with_any_code_and_data(start: Start) -> None:
    fake = start(turns({"error": {"code": -32000, "message": "m", "data": {"k": 1}}}))
    answer = fake.read_answer(fake.prompt(fake.open_session()))
    assert answer["error"] == {"code": -32000, "message": "m", "data": {"k": 1}}


def test_stderr_can_be_flooded(start_faulty: Start) -> None:
    fake = start_faulty({"start": [{"stderr": {"text": "warn", "repeat": 100_000}}, {"exit": 3}]})
    assert fake.stderr() == b"warn\n" * 100_000
    assert fake.exit_code() == 3


@pytest.mark.parametrize("where", ["start", "turn"])
@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM", "INT", "PIPE", 10])
def test_it_dies_by_the_signal(start_faulty: Start, name: str | int, where: str) -> None:
    steps = [{"signal": name}]
    fake = start_faulty({"start": steps} if where == "start" else {"turns": [steps]})
    if where == "turn":
        fake.prompt(fake.open_session())
    number = name if isinstance(name, int) else signal.Signals[f"SIG{name}"]
    assert fake.exit_code() == -number


def test_it_exits_with_any_code_in_the_middle_of_a_turn(start: Start) -> None:
    fake = start(turns({"text": "last words"}, {"exit": {"code": 41}}))
    fake.prompt(fake.open_session())
    assert fake.exit_code() == 41
    fake.read_until(lambda frame: "method" in frame)
    assert fake.text() == "last words"


def test_exec_becomes_another_program_with_the_same_pipes(start_faulty: Start) -> None:
    fake = start_faulty(turns({"exec": ["/bin/sh", "-c", "echo replaced; exit 5"]}))
    fake.prompt(fake.open_session())
    assert fake.read_line() == b"replaced"
    assert fake.exit_code() == 5


def test_closed_stdout_ends_the_stream_and_not_the_process(start_faulty: Start) -> None:
    fake = start_faulty(turns({"close_stdout": True}, {"stderr": "still here"}))
    fake.prompt(fake.open_session())
    assert read_to_end(fake) == b""
    assert fake.process.poll() is None
    fake.close_stdin()
    assert fake.exit_code() == 0


def test_closed_stdin_breaks_the_clients_writing(start_faulty: Start) -> None:
    fake = start_faulty(turns({"close_stdin": True}))
    fake.read_answer(fake.prompt(fake.open_session()))
    with pytest.raises(BrokenPipeError):
        fake.write(b"x")


def test_a_fake_that_stopped_reading_fills_the_clients_pipe(start_faulty: Start) -> None:
    fake = start_faulty(turns({"stop_reading": True}))
    fake.read_answer(fake.prompt(fake.open_session()))
    assert fake.process.stdin
    fd = fake.process.stdin.fileno()
    os.set_blocking(fd, False)
    assert fill(fd) <= 1 << 20
    assert select.select([], [fd], [], 0.1) == ([], [], [])


def test_reading_can_start_again(start: Start) -> None:
    fake = start(turns({"stop_reading": True}, {"sleep": 0.05}, {"start_reading": True}))
    session = fake.open_session()
    fake.read_answer(fake.prompt(session))
    fake.read_answer(fake.prompt(session))


def test_ignored_eof_and_ignored_term_leave_only_the_kill(start_faulty: Start) -> None:
    fake = start_faulty({"start": [{"ignore_eof": True}, {"ignore_term": True}, {"raw": "ready\n"}]})
    assert fake.read_line() == b"ready"
    fake.close_stdin()
    fake.process.send_signal(signal.SIGTERM)
    with pytest.raises(Exception, match="timed out"):
        fake.process.wait(0.2)
    fake.process.kill()
    assert fake.exit_code() == -signal.SIGKILL


def test_term_is_counted_in_a_file(start_faulty: Start, tmp_path: Path) -> None:
    marker = tmp_path / "terms"
    count = {"count_term": {"path": str(marker), "exit_after": 2}}
    fake = start_faulty({"start": [count, {"raw": "ready\n"}]})
    assert fake.read_line() == b"ready"
    fake.process.send_signal(signal.SIGTERM)
    wait_for(lambda: marker.exists() and "SIGTERM 1" in marker.read_text())
    fake.process.send_signal(signal.SIGTERM)
    assert fake.exit_code() == 0
    assert marker.read_text() == "SIGTERM 1\nSIGTERM 2\n"


def test_a_slow_flush_at_eof_leaves_its_marker(start_faulty: Start, tmp_path: Path) -> None:
    marker = tmp_path / "flushed"
    flush = {"delay_seconds": 0.05, "marker": str(marker), "steps": [{"raw": "bye\n"}], "exit_code": 9}
    fake = start_faulty({"on_eof": flush})
    fake.close_stdin()
    assert fake.exit_code() == 9
    assert marker.exists()
    assert fake.read_line() == b"bye"


def test_eof_may_wait_for_the_running_turn(start: Start) -> None:
    fake = start(turns({"text": "begun"}, {"sleep": 0.1}, {"text": " and done"}, on_eof={"wait_turns": True}))
    prompt = fake.prompt(fake.open_session())
    fake.close_stdin()
    fake.read_answer(prompt)
    assert fake.text() == "begun and done"
    assert fake.exit_code() == 0


def test_steps_can_wait_for_a_file_and_write_one(start: Start, tmp_path: Path) -> None:
    gate, mark = tmp_path / "gate", tmp_path / "mark"
    fake = start(
        turns({"touch_file": str(mark)}, {"wait_file": "${FAKE_ACP_GATE}"}),
        environment={"FAKE_ACP_GATE": str(gate)},
    )
    prompt = fake.prompt(fake.open_session())
    wait_for(mark.exists)
    gate.touch()
    assert fake.read_answer(prompt)["result"] == {"stopReason": "end_turn"}


def test_steps_can_wait_for_a_socket(start: Start, life: LifeSocket) -> None:
    fake = start(turns({"wait_socket": life.path}))
    prompt = fake.prompt(fake.open_session())
    connection, said = life.accept()
    assert said == "waiting"
    connection.sendall(b"go")
    fake.read_answer(prompt)


def test_a_life_socket_ends_with_the_agent(start_faulty: Start, life: LifeSocket) -> None:
    fake = start_faulty({"life_socket": life.path})
    connection, said = life.accept()
    assert said == f"agent {fake.process.pid}"
    fake.process.kill()
    assert connection.recv(1) == b""


def test_a_forgotten_fake_leaves_by_itself(start_faulty: Start) -> None:
    fake = start_faulty({"lifetime_seconds": 0.05, "start": [{"ignore_eof": True}]})
    fake.close_stdin()
    assert fake.exit_code() == 75


CHILD_KINDS = [
    "plain",
    "launcher-exits",
    "launcher-stays",
    "double-fork",
    "setsid",
    "own-group",
    "stopped",
    "holds-stdout",
    "fork-loop",
    "relay",
    "setsid-relay",
]


@pytest.mark.parametrize("kind", CHILD_KINDS)
def test_a_child_outlives_the_killed_agent(start_faulty: Start, life: LifeSocket, kind: str) -> None:
    child = {"kind": kind, "connect": life.path, "ignore_term": True, "seconds": 20, "every_seconds": 0.2}
    fake = start_faulty(turns({"child": child}), environment={"CHILD_OF": life.path})
    fake.read_answer(fake.prompt(fake.open_session()))
    connection, said = life.accept()
    assert said.split()[0] == kind
    fake.process.kill()
    fake.exit_code()
    connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        connection.recv(1)
    connection.settimeout(0.5)
    for _ in range(40):
        end_marked(f"CHILD_OF={life.path}")
        with suppress(TimeoutError):  # on a busy machine a link of a relay may be missed
            assert connection.recv(1) == b""
            break
    else:
        pytest.fail("the child could not be ended")


@pytest.mark.parametrize(
    ("kind", "own_group", "own_session"),
    [
        ("plain", False, False),
        ("launcher-exits", False, False),
        ("own-group", True, False),
        ("setsid", True, True),
        ("double-fork", True, True),
    ],
)
def test_a_child_hides_as_its_kind_says(
    start_faulty: Start, life: LifeSocket, kind: str, own_group: bool, own_session: bool
) -> None:
    fake = start_faulty(turns({"child": {"kind": kind, "connect": life.path, "seconds": 5}}))
    fake.read_answer(fake.prompt(fake.open_session()))
    _, said = life.accept()
    pid = int(said.split()[1])
    ours = fake.process.pid
    assert (os.getpgid(pid) != os.getpgid(ours), os.getsid(pid) != os.getsid(ours)) == (
        own_group,
        own_session,
    )
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert (int(stat[1]) == ours) == (kind in ("plain", "own-group", "setsid"))
    kill_pid(pid)


def test_a_child_that_has_closed_everything_lives_on(start_faulty: Start, life: LifeSocket) -> None:
    fake = start_faulty(turns({"child": {"kind": "closed", "connect": life.path, "seconds": 20}}))
    fake.read_answer(fake.prompt(fake.open_session()))
    connection, said = life.accept()
    pid = int(said.split()[1])
    assert connection.recv(1) == b""
    descriptor = os.pidfd_open(pid)
    wait_for(lambda: not os.listdir(f"/proc/{pid}/fd"))
    kill_pid(pid)
    assert select.select([descriptor], [], [], 20)[0]  # it lived until now
    os.close(descriptor)


def test_a_held_stdout_is_open_after_the_agents_death(start_faulty: Start, life: LifeSocket) -> None:
    fake = start_faulty(turns({"child": {"kind": "holds-stdout", "connect": life.path, "seconds": 5}}))
    fake.read_answer(fake.prompt(fake.open_session()))
    _, said = life.accept()
    fake.process.kill()
    fake.exit_code()
    assert fake.process.stdout
    os.set_blocking(fake.process.stdout.fileno(), False)
    with pytest.raises(BlockingIOError):
        os.read(fake.process.stdout.fileno(), 1)
    kill_pid(int(said.split()[1]))


@pytest.mark.parametrize("kind", ["stays", "exits"])
def test_a_launcher_leaves_the_real_agent_on_the_pipes(start: Start, life: LifeSocket, kind: str) -> None:
    fake = start({"launcher": kind, "life_socket": life.path})
    connection, said = life.accept()
    assert int(said.split()[1]) != fake.process.pid
    if kind == "exits":
        assert fake.exit_code() == 0
    else:
        fake.process.kill()
    assert fake.read_answer(fake.prompt(fake.open_session(), "alive"))["result"] == {"stopReason": "end_turn"}
    fake.close_stdin()
    assert connection.recv(1) == b""


def test_scenarios_come_from_files_and_from_the_environment(start: Start, tmp_path: Path) -> None:
    toml, plain = tmp_path / "one.toml", tmp_path / "two.json"
    toml.write_text('turns = [[{ text = "from toml" }]]\n')
    plain.write_text(json.dumps(turns({"text": "from json"})))
    for path in (toml, plain):
        fake = start(str(path))
        fake.read_answer(fake.prompt(fake.open_session()))
        assert fake.text() == f"from {path.suffix[1:]}"
