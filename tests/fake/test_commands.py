"""The subcommands: record a real conversation without its secrets, replay it, and check a client in many
scenarios.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_acp_server import builtin, check
from tests.fake.driver import REPOSITORY, Fake, LifeSocket, fake_command
from tests.fake.visitor import CAPABILITIES, Visit, leave
from tests.support.npm_packages import node_command, package_folder

Start = Callable[..., Fake]

CLIENT = [sys.executable, "-m", "tests.fake.plain_client"]


def record(start: Start, path: Path, *agent: str, prompts: int = 2) -> str:
    """Record a plain conversation with an agent; how it ended."""
    fake = start(fake_command("record", str(path), "--", *agent))
    end = Visit(fake).run(prompts)
    assert leave(fake) == 0
    return end


def entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a cassette."""
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert header == {"cassette": 1}
    return lines


@pytest.fixture
def cassette(start: Start, tmp_path: Path) -> Path:
    """A recorded conversation with the demo."""
    path = tmp_path / "demo.cassette"
    assert record(start, path, *fake_command("--scenario", "demo")) == "prompt: end_turn"
    return path


def test_a_recording_has_every_line_of_both_sides_in_order(cassette: Path) -> None:
    lines = entries(cassette)
    assert [line["frame"].get("method") for line in lines[:5:2]] == [
        "initialize",
        "session/new",
        "session/prompt",
    ]
    assert {line["from"] for line in lines} == {"client", "agent"}
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)


def test_a_replay_is_what_was_recorded_whatever_ids_the_client_uses(start: Start, cassette: Path) -> None:
    fake = start(fake_command("replay", "--exact", str(cassette)))
    fake._id = 100
    assert Visit(fake).run(prompts=2) == "prompt: end_turn"
    assert leave(fake) == 0


def test_a_replay_can_keep_the_original_timing(start: Start, cassette: Path) -> None:
    import time

    begun = time.monotonic()
    fake = start(fake_command("replay", "--timing", str(cassette)))
    assert Visit(fake).run(prompts=2) == "prompt: end_turn"
    assert time.monotonic() - begun > 6 * 0.03


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "session/prompt was recorded, session/close came"),
        (("--exact",), "initialize differs at params"),
    ],
)
def test_a_replay_says_where_the_client_diverged(
    start_faulty: Start, cassette: Path, options: tuple[str, ...], expected: str
) -> None:
    fake = start_faulty(fake_command("replay", *options, str(cassette)))
    fake.request("initialize", {"protocolVersion": 1})
    fake.request("session/new", {"cwd": "/srv", "mcpServers": []})
    fake.request("session/close", {"sessionId": "session-1"})
    assert fake.exit_code() == 1
    assert expected in fake.stderr().decode()


def test_an_exact_replay_names_the_place_however_deep(start: Start, cassette: Path) -> None:
    fake = start(fake_command("replay", "--exact", str(cassette)))
    fake.open_session(CAPABILITIES, cwd="/srv")
    fake.prompt("session-1", "something else")
    assert fake.exit_code() == 1
    assert "session/prompt differs at params.prompt[0].text" in fake.stderr().decode()


def test_a_client_that_leaves_early_or_says_more_has_diverged(start_faulty: Start, cassette: Path) -> None:
    early = start_faulty(fake_command("replay", str(cassette)))
    assert leave(early) == 1
    assert "never sent initialize" in early.stderr().decode()
    more = start_faulty(fake_command("replay", str(cassette)))
    Visit(more).run(prompts=2)
    more.notify("session/cancel", {"sessionId": "session-1"})
    assert leave(more) == 1
    assert "session/cancel as well" in more.stderr().decode()


def test_a_file_that_is_no_cassette_is_refused(start_faulty: Start, tmp_path: Path) -> None:
    path = tmp_path / "other"
    for text in (
        "{}\n",
        '{"cassette":1}\n7\n',
        '{"cassette":1}\n{"from":"client","frame":{}}\n',
        "[" * 99_999,
    ):
        path.write_text(text)
        assert start_faulty(fake_command("replay", str(path))).exit_code() == 2
    assert start_faulty(fake_command("replay", str(tmp_path / "missing"))).exit_code() == 2


def test_text_that_is_no_frame_is_recorded_and_replayed(start_faulty: Start, tmp_path: Path) -> None:
    path = tmp_path / "noise"
    assert record(start_faulty, path, *fake_command("--scenario", "wire-text-noise")) == "prompt: end_turn"
    fake = start_faulty(fake_command("replay", str(path)))
    visit = Visit(fake)
    assert visit.run(prompts=2) == "prompt: end_turn"
    assert visit.noise == 5


def test_whatever_a_client_writes_is_recorded_and_its_recording_replayed(
    start_faulty: Start, tmp_path: Path
) -> None:
    path = tmp_path / "odd"
    odd = [b"[" * 99_999, b"7", b"[]", b"null", b'"\xff"', b"{}", b'{"id":{}}', b'{"method":[]}']
    fake = start_faulty(fake_command("record", str(path), "--", *fake_command("--scenario", "echo")))
    for line in odd:
        fake.write(line + b"\n")
    fake.read_answer(fake.prompt(fake.open_session()))
    assert leave(fake) == 0
    assert len([entry for entry in entries(path) if entry["from"] == "client"]) == len(odd) + 3
    again = start_faulty(fake_command("replay", str(path)))
    for line in odd:
        again.write(line + b"\n")
    again.read_answer(again.prompt(again.open_session()))
    leave(again)
    assert b"Traceback" not in again.stderr()


def test_an_agents_last_words_reach_a_client_that_reads_late(start_faulty: Start, tmp_path: Path) -> None:
    scenario = json.dumps({"start": [{"raw": {"text": "x" * 99 + "\n", "repeat": 1300}}, {"exit": 0}]})
    fake = start_faulty(fake_command("record", str(tmp_path / "c"), "--", *fake_command("--json", scenario)))
    with pytest.raises(subprocess.TimeoutExpired):
        fake.process.wait(1)  # our pipe is full, and the rest is not lost
    assert b"".join(iter(fake.read_bytes, b"")) == (b"x" * 99 + b"\n") * 1300
    assert fake.exit_code() == 0


def test_the_exit_code_of_the_recorded_agent_is_kept(start_faulty: Start, tmp_path: Path) -> None:
    scenario = json.dumps({"start": [{"exit": 7}]})
    fake = start_faulty(fake_command("record", str(tmp_path / "c"), "--", *fake_command("--json", scenario)))
    assert fake.exit_code() == 7


def test_the_official_example_agent_is_recorded_and_replayed(start: Start, tmp_path: Path) -> None:
    package = package_folder("@agentclientprotocol/sdk@1.9.0")
    (example,) = package.glob("dist/examples/agent.js")
    path = tmp_path / "example.cassette"
    assert record(start, path, *node_command(), str(example), prompts=1) == "prompt: end_turn"
    fake = start(fake_command("replay", str(path)))
    assert Visit(fake).run(prompts=1) == "prompt: end_turn"
    assert leave(fake) == 0


def test_no_secret_gets_into_a_recording(start_faulty: Start, tmp_path: Path) -> None:
    path = tmp_path / "c"
    agent = fake_command(
        "--json", json.dumps({"turns": [[{"echo": {"what": "env", "values": ["FAKE_ACP_TOKEN"]}}]]})
    )
    fake = start_faulty(
        fake_command("record", str(path), "--", *agent), environment={"FAKE_ACP_TOKEN": "canary-4711"}
    )
    fake.read_answer(fake.prompt(fake.open_session()))
    leave(fake)
    assert "canary-4711" in fake.text()
    assert "canary" not in path.read_text()


def run_check(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``check`` to its end."""
    return subprocess.run(
        fake_command("check", *arguments),
        cwd=REPOSITORY,
        text=True,
        stdout=subprocess.PIPE,
        check=False,
        timeout=100,
    )


def test_check_passes_a_client_that_keeps_the_rules() -> None:
    chosen = ("--scenario", "demo", "--scenario", "wire-text-noise")
    done = run_check(*chosen, "--", *CLIENT, "good")
    assert done.returncode == 0
    assert "demo             ok\nwire-text-noise  ok\n2 of 2" in done.stdout


def test_the_agent_can_be_one_argument_or_a_file() -> None:
    shell = 'exec "$0" -m tests.fake.plain_client good '
    for place in ("{agent}", "{agent-file}"):
        done = run_check("--scenario", "demo", "--", "/bin/sh", "-c", shell + place, sys.executable)
        assert done.returncode == 0


@pytest.mark.parametrize(
    ("client", "verdict"),
    [
        ([*CLIENT, "rude"], "broken: parallel-prompt"),
        ([*CLIENT, "deaf"], "the client never started the agent"),
        ([*CLIENT, "asleep"], "timeout: the client was still running"),
        (["/no/such/client"], "the client cannot be started"),
    ],
)
def test_check_says_what_a_client_did_wrong(client: list[str], verdict: str) -> None:
    seconds = "3" if "asleep" in client else "60"
    done = run_check("--scenario", "turn-permission", "--timeout", seconds, "--", *client)
    assert done.returncode == 1
    assert verdict in done.stdout


def test_check_waits_for_what_the_fake_finds_after_the_client_has_left() -> None:
    # The client leaves an answer owing, closes the pipes and is gone before the fake can have seen it.
    done = run_check("--scenario", "turn-permission", "--", *CLIENT, "hasty")
    assert "broken: unanswered" in done.stdout


def test_check_leaves_nothing_of_a_client_behind(tmp_path: Path) -> None:
    with LifeSocket(tmp_path) as life:
        code = "import socket, time; s = socket.socket(socket.AF_UNIX); "
        code += f"s.connect({life.path!r}); s.send(b'x'); time.sleep(99)"
        inner = shlex.join([sys.executable, "-S", "-c", code])
        done = run_check("--scenario", "demo", "--timeout", "4", "--", "/bin/sh", "-c", f"{inner}; true")
        assert "timeout" in done.stdout
        connection, _ = life.accept()
        assert connection.recv(1) == b""


@pytest.mark.parametrize("option", ["--list", "--schema", "--reference"])
def test_a_reader_that_has_seen_enough_is_no_mistake(option: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        fake_command(option), stdout=writing, stderr=subprocess.PIPE, cwd=REPOSITORY, check=False, timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_every_conformance_scenario_ends_well_for_a_plain_client(start_faulty: Start) -> None:
    assert set(check.CONFORMANCE) <= set(builtin.purposes())
    done = run_check("--scenario", "flood", "--scenario", "wire-nulls", "--", *CLIENT, "good")
    assert done.stdout.count(" ok\n") == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["record"],
        ["record", "f"],
        ["replay"],
        ["replay", "--fast", "f"],
        ["check"],
        ["check", "--scenario", "x", "--", "c"],
        ["check", "--timeout", "\u00b2", "--", "c"],
        ["check", "--timeout", "0", "--", "c"],
    ],
)
def test_a_subcommand_that_makes_no_sense_says_how_it_is_used(arguments: list[str]) -> None:
    done = subprocess.run(
        fake_command(*arguments), cwd=REPOSITORY, text=True, stderr=subprocess.PIPE, check=False, timeout=60
    )
    assert done.returncode == 2
    assert f"usage: fake-acp-server {arguments[0]}" in done.stderr
