"""The terminal: what an agent says must not steer it, and the questions that are asked on it.

Owns the removal of control sequences, also of those that are split between two chunks, and the question
about a permission. A question and its answer go over the terminal itself, whatever stdin, stdout and stderr
are.
"""

from __future__ import annotations

import os
import re
import termios
from contextlib import suppress
from enum import Enum, auto

import trio

#: everything that steers a terminal: C0 but newline and tab, DEL, C1
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: characters of a title that a question shows
MAX_TITLE_CHARACTERS = 200

_YES = {"y", "yes"}
_ANSWER_BYTES = 4096  # the longest line that a terminal hands out


class _State(Enum):
    """What the characters before have begun."""

    TEXT = auto()  #: nothing
    ESCAPE = auto()  #: an ESC was the last character
    INTERMEDIATE = auto()  #: ESC and intermediate characters: a final one ends it
    PARAMETERS = auto()  #: a control sequence (CSI): a final character ends it
    STRING = auto()  #: a command string (OSC, DCS and the like): BEL, ST or a newline ends it
    STRING_ESCAPE = auto()  #: an ESC inside such a string: perhaps its end


class ControlFilter:
    """Removes control characters and whole control sequences from a text that comes in pieces."""

    def __init__(self) -> None:
        self._state = _State.TEXT

    def feed(self, text: str) -> str:
        """The next piece, without what would steer a terminal."""
        if self._state is _State.TEXT and _CONTROL.search(text) is None:
            return text
        kept: list[str] = []
        for character in text:
            self._state, shown = _step(self._state, character)
            if shown:
                kept.append(character)
        return "".join(kept)


def _step(state: _State, character: str) -> tuple[_State, bool]:
    """The state after `character`, and whether the character is shown.

    A character that cannot belong to the sequence that has begun ends it and is text again: a broken sequence
    hides nothing of the answer but itself.
    """
    match state:
        case _State.ESCAPE:
            if character in "PX]^_":
                return _State.STRING, False
            if character == "[":
                return _State.PARAMETERS, False
            if " " <= character <= "/":
                return _State.INTERMEDIATE, False
            if "0" <= character <= "~":
                return _State.TEXT, False
        case _State.INTERMEDIATE:
            if " " <= character <= "~":
                return (_State.INTERMEDIATE if character <= "/" else _State.TEXT), False
        case _State.PARAMETERS:
            if " " <= character <= "~":
                return (_State.PARAMETERS if character <= "?" else _State.TEXT), False
        case _State.STRING:
            if character in "\x07\x18\x1a\x9c":
                return _State.TEXT, False
            if character != "\n":
                return (_State.STRING_ESCAPE if character == "\x1b" else _State.STRING), False
        case _State.STRING_ESCAPE:
            return (_State.TEXT, False) if character == "\\" else _step(_State.ESCAPE, character)
        case _State.TEXT:
            pass
    return _begin(character)


def _begin(character: str) -> tuple[_State, bool]:
    """The same where no sequence has begun."""
    if character == "\x1b":
        return _State.ESCAPE, False
    if character == "\x9b":
        return _State.PARAMETERS, False
    if character in "\x90\x98\x9d\x9e\x9f":
        return _State.STRING, False
    return _State.TEXT, _CONTROL.match(character) is None


def without_controls(text: str) -> str:
    """A whole text without what would steer a terminal."""
    return ControlFilter().feed(text)


def one_line(text: str, limit: int = MAX_TITLE_CHARACTERS) -> str:
    """A text of the agent as part of one of our lines: printable, on one line, not longer than `limit`.

    Characters that are invisible or turn the direction of writing are left out too: a title must not be able
    to look like another one.
    """
    visible = "".join(character if character.isprintable() else " " for character in without_controls(text))
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


class Terminal:
    """The terminal of the person who started us, opened for questions."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = trio.Lock()  # one question at a time

    @classmethod
    def open(cls) -> Terminal | None:
        """The controlling terminal, else the one that is our stdin; None when there is none."""
        with suppress(OSError):
            return cls(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        with suppress(OSError):
            return cls(os.open(os.ttyname(0), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        return None

    def close(self) -> None:
        """Close it; no question may be open."""
        os.close(self._fd)

    async def confirm(self, question: str) -> bool:
        """Ask, and wait for a line; anything but a yes is a no.

        Questions are asked one after the other. What was typed before the question appeared is no answer to
        it. In the background nobody can be asked: a no at once.
        """
        async with self._turn:
            if not self._in_foreground():
                return False
            with suppress(termios.error):
                termios.tcflush(self._fd, termios.TCIFLUSH)
            try:
                os.write(self._fd, f"{question} [y/N] ".encode(errors="replace"))
                answered = False
                try:
                    await trio.lowlevel.wait_readable(self._fd)
                    answered = True
                finally:
                    if not answered:
                        os.write(self._fd, b"\n")
                line = os.read(self._fd, _ANSWER_BYTES)
            except OSError:
                return False  # the terminal has gone
        return line.decode(errors="replace").strip().lower() in _YES

    def _in_foreground(self) -> bool:
        """Whether we may read from it: a job in the background would be stopped for trying."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: job control does not apply
