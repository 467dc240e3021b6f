"""The terminal: nothing that an agent says steers it, and questions are asked on it."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from acp_subagent.cli import render
from acp_subagent.cli.terminal import MAX_TITLE_CHARACTERS, ControlFilter, one_line, without_controls
from tests.cli.driver import CommandLine, arguments, read_until, turn

SEQUENCES = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[?25l\x1b[2J\x1b[1;1Hx", "x"),
    ("\x1b]0;a title\x07x", "x"),
    ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bP+q544e\x1b\\x", "x"),
    ("\x1b_app\x9cx", "x"),
    ("\x9b31mred\x9dtitle\x9cx", "redx"),
    ("\x1b(Bx\x1b#8y\x1b7z\x1bc", "xyz"),
    ("a\rb\x08c\x07d\x00e\x7ff\x85g", "abcdefg"),
    ("one\n\ttwo", "one\n\ttwo"),
    ("\x1b[\nx", "\nx"),
    ("\x1b]no end\nx", "\nx"),
    ("\x1b\x1b[1mx", "x"),
    ("\x1b]a\x1b[1mx", "x"),
    ("\x1béx", "éx"),
    ("\x1b[é", "é"),
    ("\x1b(é", "é"),
    ("\x1b]52;c;aGk=\x18x", "x"),
    ("\u202e日本 ✓", "\u202e日本 ✓"),
    ("end \x1b", "end "),
]


@pytest.mark.parametrize(("text", "shown"), SEQUENCES)
def test_control_sequences_are_removed_wherever_they_are_split(text: str, shown: str) -> None:
    assert without_controls(text) == shown
    for at in range(len(text) + 1):
        pieces = ControlFilter()
        assert pieces.feed(text[:at]) + pieces.feed(text[at:]) == shown
    pieces = ControlFilter()
    assert "".join(map(pieces.feed, text)) == shown


@given(st.lists(st.text(alphabet=st.sampled_from("\x1b[]P\\\x07\x9b\x9c;31m\nx\x7f\t"), max_size=8)))
def test_no_control_character_ever_passes_and_splitting_changes_nothing(pieces: list[str]) -> None:
    control_filter = ControlFilter()
    shown = "".join(map(control_filter.feed, pieces))
    assert shown == without_controls("".join(pieces))
    assert all(character in "\n\t" or character.isprintable() for character in shown)


@given(st.text())
def test_a_title_is_one_printable_line_of_bounded_length(text: str) -> None:
    line = one_line(text)
    assert not line or line.isprintable()
    assert len(line) <= MAX_TITLE_CHARACTERS


@dataclass
class Pty:
    """A terminal: our end of it, and the end that the command line is given."""

    ours: int
    theirs: int

    def read_until(self, wanted: str) -> str:
        return read_until(self.ours, wanted.encode()).decode()

    def read_rest(self) -> str:
        """Everything until nobody has the other end open."""
        os.close(self.theirs)
        self.theirs = -1
        parts = []
        with suppress(OSError):  # EIO is how a terminal says that the other end is closed
            while part := os.read(self.ours, 65536):
                parts.append(part)
        return b"".join(parts).decode()

    def answer(self, line: str) -> None:
        os.write(self.ours, line.encode())

    def take_control(self) -> None:
        """Run in the child: make it the controlling terminal of its new session."""
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal() -> Iterator[Pty]:
    pair = Pty(*pty.openpty())
    yield pair
    os.close(pair.ours)
    if pair.theirs >= 0:
        os.close(pair.theirs)


STEERING = turn({"text": {"chunks": ["\x1b[3", "1mred\x1b", "[0m \x1b]0;ti", "tle\x07ok\x9b1m\x7f\r"]}})


def test_on_a_terminal_the_answer_steers_nothing(terminal: Pty) -> None:
    with CommandLine(arguments(STEERING), stdout=terminal.theirs) as started:
        done = started.end()
        assert terminal.read_rest() == "red ok\r\n"
    assert done.code == 0


def test_elsewhere_the_answer_is_left_as_it_is() -> None:
    with CommandLine(arguments(STEERING)) as started:
        assert started.end().stdout == "\x1b[31mred\x1b[0m \x1b]0;title\x07ok\x9b1m\x7f\r\n"


def test_on_a_terminal_the_end_of_the_tree_is_announced_on_a_line_of_its_own(terminal: Pty) -> None:
    scenario = turn({"text": "half a line"})
    with CommandLine(arguments(scenario), stdout=terminal.theirs, stderr=terminal.theirs) as started:
        assert started.end().code == 0
        lines = terminal.read_rest().splitlines()
    assert lines[:3] == ["stage: prompt", "half a line", render.ENDING_THE_TREE]
    assert lines[3] == "stop reason: completed"


ASKING = turn(
    {
        "permission": {
            "tool_call": {"kind": "edit", "title": "Edit \x1b[2Jnotes.txt\nfor you"},
            "on": {"allow": [{"text": "allowed"}], "reject": [{"text": "denied"}]},
        }
    }
)


@pytest.mark.parametrize(
    ("typed", "shown", "code"),
    [
        ("y\n", "allowed\n", 0),
        ("YES \n", "allowed\n", 0),
        ("n\n", "denied\n", 0),
        ("\n", "denied\n", 0),
        ("\x04", "denied\n", 0),
    ],
)
def test_a_permission_is_asked_on_the_controlling_terminal(
    terminal: Pty, typed: str, shown: str, code: int
) -> None:
    with CommandLine(
        arguments(ASKING, "--permission", "ask"),
        start_new_session=True,
        preexec_fn=terminal.take_control,
        pass_fds=(terminal.theirs,),
    ) as started:
        question = terminal.read_until("[y/N] ")
        assert question == (
            "The agent asks for permission (edit): Edit notes.txt for you\r\nAllow it? [y/N] "
        )
        terminal.answer(typed)
        done = started.end()
    assert (done.code, done.stdout) == (code, shown)
    assert "permission asked: edit" in done.stderr
    assert "(policy: ask)" in done.stderr
    assert "notes.txt" not in done.stderr


def test_without_a_controlling_terminal_the_one_on_stdin_is_asked(terminal: Pty) -> None:
    with CommandLine(
        arguments(ASKING, "--permission", "ask"), start_new_session=True, stdin=terminal.theirs
    ) as started:
        terminal.read_until("[y/N] ")
        terminal.answer("y\n")
        done = started.end()
    assert (done.code, done.stdout) == (0, "allowed\n")


def test_without_any_terminal_a_permission_is_denied_and_it_is_said() -> None:
    with CommandLine(arguments(ASKING, "--permission", "ask"), start_new_session=True) as started:
        done = started.end()
    assert (done.code, done.stdout) == (0, "denied\n")
    assert render.NO_TERMINAL in done.stderr
    assert "1 permission request was denied (policy: ask)" in done.stderr


def test_questions_are_asked_one_after_the_other_and_what_was_typed_before_is_no_answer(
    terminal: Pty,
) -> None:
    def ask(number: int) -> dict[str, object]:
        return {
            "permission": {
                "tool_call": {"toolCallId": f"call-{number}", "kind": "edit", "title": f"number {number}"},
                "wait": False,
            }
        }

    scenario = turn(ask(1), ask(2), {"wait_requests": True}, {"text": "done"})
    with CommandLine(
        arguments(scenario, "--permission", "ask", "--format", "json"),
        start_new_session=True,
        preexec_fn=terminal.take_control,
        pass_fds=(terminal.theirs,),
    ) as started:
        first = terminal.read_until("[y/N] ")
        assert first.count("Allow it?") == 1
        terminal.answer("y\ny\n")
        terminal.read_until("[y/N] ")
        terminal.answer("n\n")
        done = started.end()
    assert [item["decision"] for item in done.json["permissions"]] == ["allowed", "denied"]


def test_ctrl_c_at_a_question_ends_the_run(terminal: Pty) -> None:
    with CommandLine(
        arguments(ASKING, "--permission", "ask"),
        start_new_session=True,
        preexec_fn=terminal.take_control,
        pass_fds=(terminal.theirs,),
        stdin=subprocess.DEVNULL,
    ) as started:
        terminal.read_until("[y/N] ")
        terminal.answer("\x03")
        done = started.end()
    assert done.code == 130
    assert "permission cancelled (policy: ask)" in done.stderr
