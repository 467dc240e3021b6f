"""SIGINT, SIGTERM and SIGHUP: the first ends the run in order, the second at once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from acp_subagent.cli import render
from tests.cli.driver import CommandLine, arguments, turn, wait_for
from tests.fake.driver import LifeSocket

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_cancels_the_turn_and_keeps_the_partial_answer(
    number: signal.Signals, tmp_path: Path
) -> None:
    with LifeSocket(tmp_path) as life:
        scenario = turn({"text": "partial"}, {"wait_cancel": True}, life_socket=life.path)
        with CommandLine(arguments(scenario)) as started:
            connection, _ = life.accept()
            started.read_until("partial")
            started.signal(number)
            done = started.end()
            assert connection.recv(1) == b""
    assert (done.code, done.stdout) == (130, "partial\n")
    assert render.INTERRUPTED in done.stderr
    assert "stop reason: aborted" in done.stderr
    assert "survivors: 0" in done.stderr
    assert "failure" not in done.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_skips_to_the_kill(number: signal.Signals, tmp_path: Path) -> None:
    """By itself this agent would be waited for: the cancel grace and two graces of the ladder, 18 seconds."""
    with LifeSocket(tmp_path) as life:
        scenario = turn(
            {"text": "partial"},
            {"sleep": 600},
            start=[{"ignore_term": True}],
            on_eof={"ignore": True},
            on_cancel="ignore",
            life_socket=life.path,
        )
        with CommandLine(arguments(scenario)) as started:
            connection, _ = life.accept()
            started.read_until("partial")
            started.signal(number)
            started.read_until(render.INTERRUPTED, "stderr")
            began = time.monotonic()
            started.signal(number)
            done = started.end()
            seconds = time.monotonic() - began
            assert connection.recv(1) == b""
    assert (done.code, done.stdout) == (130, "partial\n")
    assert render.KILLING in done.stderr
    assert "kill " in done.stderr
    assert "term " not in done.stderr
    assert seconds < 10


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_signal_during_the_start_ends_it(tmp_path: Path, output: str) -> None:
    scenario = {"initialize": {"no_answer": True, "before_answer": [{"touch_file": str(tmp_path / "asked")}]}}
    with CommandLine(arguments(scenario, "--format", output)) as started:
        wait_for((tmp_path / "asked").exists)
        started.signal(signal.SIGINT)
        done = started.end()
    assert done.code == 130
    assert "stop reason: aborted" in done.stderr
    if output == "json":
        assert done.json["stop_reason"] == "aborted"
        assert done.json["failure"] is None
    else:
        assert done.stdout == ""


def test_a_second_signal_during_the_start_skips_to_the_kill(tmp_path: Path) -> None:
    scenario = {
        "start": [{"ignore_term": True}],
        "on_eof": {"ignore": True},
        "initialize": {"no_answer": True, "before_answer": [{"touch_file": str(tmp_path / "asked")}]},
    }
    with CommandLine(arguments(scenario)) as started:
        wait_for((tmp_path / "asked").exists)
        started.signal(signal.SIGINT)
        started.read_until(render.INTERRUPTED, "stderr")
        began = time.monotonic()
        started.signal(signal.SIGTERM)
        done = started.end()
    assert done.code == 130
    assert time.monotonic() - began < 10


def test_a_signal_while_the_prompt_is_read_ends_the_run_before_anything_is_started() -> None:
    with CommandLine(["run", "-"], stdin=subprocess.PIPE) as started:
        started.read_until(render.BUNDLED_AGENT, "stderr")
        started.signal(signal.SIGTERM)
        code = started.process.wait(30)
        stderr = started.read_until("duration", "stderr")
    assert code == 130
    assert "stop reason: aborted" in stderr
    assert "teardown" not in stderr


def test_a_signal_after_the_answer_leaves_the_outcome_as_it_is(tmp_path: Path) -> None:
    """The agent has answered and takes its time to leave; the second signal ends it at once."""
    leaving = tmp_path / "leaving"
    scenario = turn(
        {"text": "done"},
        start=[{"ignore_term": True}],
        on_eof={"steps": [{"touch_file": str(leaving)}, {"sleep": 600}]},
    )
    with CommandLine(arguments(scenario)) as started:
        wait_for(leaving.exists)
        started.signal(signal.SIGINT)
        started.read_until(render.INTERRUPTED, "stderr")
        began = time.monotonic()
        started.signal(signal.SIGINT)
        done = started.end()
    assert (done.code, done.stdout) == (0, "done\n")
    assert "stop reason: completed" in done.stderr
    assert time.monotonic() - began < 10


def test_a_hang_up_that_was_ignored_before_us_stays_ignored(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    scenario = turn({"text": "first\n"}, {"wait_file": str(go_on)}, {"text": "second"})

    def ignore_hang_up() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with CommandLine(arguments(scenario), preexec_fn=ignore_hang_up) as started:
        started.read_until("first\n")
        started.signal(signal.SIGHUP)
        go_on.touch()
        done = started.end()
    assert (done.code, done.stdout) == (0, "first\nsecond\n")


def test_nobody_but_the_command_holds_its_output_and_its_agent_dies_with_it(tmp_path: Path) -> None:
    """So `acp-subagent ... | cat` ends when the command ends, also when it is killed."""
    with LifeSocket(tmp_path) as life:
        escaped = {"kind": "setsid", "connect": life.path}
        scenario = turn({"child": escaped}, {"text": "said"}, {"sleep": 600}, life_socket=life.path)
        with CommandLine(arguments(scenario)) as started:
            connections = [life.accept()[0] for _ in ("the agent", "who escaped from it")]
            started.read_until("said")
            held = {stream: holders(started, stream) for stream in ("stdout", "stderr")}
            started.signal(signal.SIGKILL)
            done = started.end()
            assert [connection.recv(1) for connection in connections] == [b"", b""]
    assert held == {stream: {started.process.pid} for stream in ("stdout", "stderr")}
    assert (done.code, done.stdout) == (-signal.SIGKILL, "said")


def holders(started: CommandLine, stream: str) -> set[int]:
    """The other processes that have this pipe open."""
    pipe = os.readlink(f"/proc/self/fd/{getattr(started.process, stream).fileno()}")
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # gone meanwhile, or not ours to look at
            for descriptor in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{process}/fd/{descriptor}") == pipe:
                        found.add(int(process))
    return found - {os.getpid()}
