"""The answer streams to stdout while the agent works, whoever reads it or does not."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from acp_subagent.cli import render
from tests.cli.driver import CommandLine, arguments, run, turn


def said(text: str, message: str = "m") -> dict[str, object]:
    """A step: a piece of this message."""
    return {"text": {"text": text, "message_id": message}}


def test_the_first_piece_is_there_before_the_agent_goes_on(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    scenario = turn(said("first "), {"wait_file": str(go_on)}, said("second"))
    with CommandLine(arguments(scenario)) as started:
        assert started.read_until("first ") == "first "
        go_on.touch()
        done = started.end()
    assert (done.code, done.stdout) == (0, "first second\n")


def test_messages_and_late_chunks_are_all_shown() -> None:
    late = said(" and late", "c")
    done = run(
        turn(
            {"thought": "hm"},
            said("one", "a"),
            said("two\n", "b"),
            said("three", "c"),
            {"stop": "end_turn"},
            late,
        )
    )
    assert done.stdout == "one\ntwo\nthree and late\n"


def test_a_large_answer_comes_whole() -> None:
    done = run(turn({"text": {"size": 1000, "count": 5000}}))
    assert len(done.stdout) == 1000 * 5000 + 1


def test_what_is_said_besides_the_answer_goes_to_stderr() -> None:
    done = run(turn({"permission": {"tool_call": {"kind": "edit"}}}, {"text": "done"}))
    assert done.stdout == "done\n"
    assert done.stderr.splitlines()[:3] == [
        "stage: prompt",
        "permission asked: edit",
        "permission denied (policy: reject)",
    ]
    assert "stop reason: completed" in done.stderr
    assert "1 permission request was denied" in done.stderr
    assert render.ENDING_THE_TREE not in done.stderr


def test_the_partial_answer_of_a_failed_run_stays() -> None:
    done = run(turn({"text": "half"}, {"exit": 3}))
    assert (done.code, done.stdout) == (1, "half\n")
    assert "category: process-exit; exit code: 3" in done.stderr


def test_a_reader_that_leaves_ends_the_run_in_order(tmp_path: Path) -> None:
    left, cancelled = tmp_path / "left", tmp_path / "cancelled"
    scenario = turn(
        {"text": "one\n"},
        {"wait_file": str(left)},
        {"text": "two\n"},
        {"wait_cancel": True},
        {"touch_file": str(cancelled)},
        # The cancel may also come before the agent waits for it.
        on_cancel={"steps": [{"touch_file": str(cancelled)}, {"stop": "cancelled"}]},
    )
    with CommandLine(arguments(scenario)) as started:
        started.read_until("one\n")
        assert started.process.stdout is not None
        started.process.stdout.close()
        left.touch()
        started.read_until(render.STDOUT_BROKEN, "stderr")
        stderr = started.read_until("teardown:", "stderr")
        code = started.process.wait(30)
    assert code == 1
    assert cancelled.exists()
    assert "stop reason: aborted" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("options", [["--format", "json"], []])
def test_a_reader_that_left_before_the_last_write_is_told_without_a_traceback(options: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with CommandLine(arguments(turn({"text": "hi"}), *options), stdout=write_end) as started:
        os.close(write_end)
        done = started.end()
    assert done.code == 1
    assert done.stderr.count(render.STDOUT_BROKEN) == 1
    assert "Traceback" not in done.stderr


def test_a_reader_that_does_not_read_never_keeps_a_signal_from_being_heeded() -> None:
    scenario = turn({"text": {"size": 1000, "forever": True}})
    with CommandLine(arguments(scenario)) as started:
        started.read_until("stage: prompt", "stderr")
        started.signal(signal.SIGTERM)
        started.read_until(render.INTERRUPTED, "stderr")
        started.signal(signal.SIGTERM)
        started.read_until("teardown:", "stderr")
        code = started.process.wait(30)
    assert code == 130


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN], ids=["heeded", "ignored"])
def test_waiting_for_a_reader_that_does_not_read_ends_with_a_signal_and_is_no_success(before: Any) -> None:
    """Also in the background, where a shell has the interrupt ignored."""
    scenario = turn({"text": {"size": 1000, "count": 500}})

    def start_with_it() -> None:
        signal.signal(signal.SIGINT, before)

    with CommandLine(arguments(scenario), preexec_fn=start_with_it) as started:
        started.read_until("teardown:", "stderr")
        started.signal(signal.SIGINT)
        assert started.process.wait(30) == 130


def test_answer_and_notes_in_one_file_are_in_order_and_on_lines_of_their_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    scenario = turn(
        {"text": "half a line"}, {"permission": {"tool_call": {"kind": "read"}}}, {"text": "more"}
    )
    with log.open("wb") as file, CommandLine(arguments(scenario), stdout=file, stderr=file) as started:
        assert started.end().code == 0
    assert log.read_text().splitlines()[:5] == [
        "stage: prompt",
        "half a line",
        "permission asked: read",
        "permission denied (policy: reject)",
        "more",
    ]


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_standard_stream_that_is_closed_is_no_trouble(closed: int) -> None:
    code = f"""
import os, sys
os.close({closed})
os.execv(sys.executable, [sys.executable, "-m", "acp_subagent", *sys.argv[1:]])
"""
    with CommandLine(arguments(turn({"text": "hi"})), code=code) as started:
        done = started.end()
    assert done.code == 0
    assert done.stdout == ("" if closed == 1 else "hi\n")
