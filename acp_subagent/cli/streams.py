"""Our stdout and stderr, each written by a thread of its own.

Owns that a reader who does not read (a paused pager, a full pipe, a stopped terminal) never stops the run: a
put returns at once, whatever the other side does. Also owns what becomes of a closed stdout, and the order of
answer and notes where both go to the same place: one thread writes them then, and no note begins in the
middle of a line of the answer.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from math import inf

from acp_subagent.cli.terminal import ControlFilter

STDOUT, STDERR = 1, 2

#: how much may be unwritten before whoever produces the answer should wait
ROOM_CHARACTERS = 1024 * 1024

#: how long `close` waits for a stream that is not read, once there is reason to hurry
LAST_WAIT_SECONDS = 1.0
SLICE_SECONDS = 0.1


class Streams:
    """The two streams of the command line."""

    def __init__(self, *, encoding: str = "utf-8") -> None:
        self.stdout_is_terminal = os.isatty(STDOUT)
        self.stderr_is_terminal = os.isatty(STDERR)
        self._together = (self.stdout_is_terminal and self.stderr_is_terminal) or _same_file(STDOUT, STDERR)
        self._answers = _Writer(encoding, on_broken=self._on_broken)
        self._notes = self._answers if self._together else _Writer(encoding, on_broken=self._on_broken)
        self._filter = ControlFilter()
        self._mid_line = False
        self.stdout_broken = False  #: closed by whoever reads it, or it can take no more
        #: called once, in another thread, when stdout is found broken
        self.on_stdout_broken: Callable[[], None] = _nothing

    def answer(self, text: str, *, on_new_line: bool = False) -> None:
        """A piece of the answer, to stdout; on a terminal without control sequences."""
        if on_new_line and self._mid_line:
            text = "\n" + text
        if self.stdout_is_terminal:
            text = self._filter.feed(text)
        if text:
            self._mid_line = not text.endswith("\n")
            self._answers.put(STDOUT, text)

    def note(self, line: str) -> None:
        """A line of our own, to stderr."""
        if self._mid_line and self._together:
            line = "\n" + line
            self._mid_line = False
        self._notes.put(STDERR, line + "\n")

    @property
    def answer_written(self) -> bool:
        """Whether everything of the answer has been written."""
        return self._answers.unwritten == 0 and not self.stdout_broken

    @property
    def full(self) -> bool:
        """Whether more of the answer is unwritten than should be."""
        return self._answers.unwritten > ROOM_CHARACTERS

    def wait_for_room(self) -> None:
        """Block this thread while `full`; not after `hurry`."""
        self._answers.wait(ROOM_CHARACTERS)

    def wait_until_written(self) -> None:
        """Block this thread until what goes to a terminal is written; not after `hurry`."""
        if self.stdout_is_terminal:
            self._answers.wait(0)
        if self.stderr_is_terminal:
            self._notes.wait(0)

    def hurry(self) -> None:
        """Nobody waits any longer for a stream that is not read, except `close` for a moment."""
        self._answers.hurry()
        self._notes.hurry()

    def close(self) -> None:
        """Wait until everything is written, after `hurry` only for a moment; what is put later is dropped."""
        try:
            self._answers.close()  # first: that it is broken is worth a note
        finally:
            self._notes.close()

    def _on_broken(self, fd: int) -> None:
        if fd == STDOUT:
            self.stdout_broken = True
            self.on_stdout_broken()


class _Writer:
    """A thread that writes what it is given, in order."""

    def __init__(self, encoding: str, *, on_broken: Callable[[int], None]) -> None:
        self._encoding = encoding
        self._on_broken = on_broken
        self._changed = threading.Condition()
        self._pending: list[tuple[int, str]] = []
        self._closing = self._ended = False
        self._hurried = False
        self._broken: set[int] = set()
        self.unwritten = 0  #: characters, those that are just being written included
        threading.Thread(target=self._write_all, name="stream writer", daemon=True).start()

    def put(self, fd: int, text: str) -> None:
        """Have the text written to the descriptor, after what was put before; waits for nothing."""
        with self._changed:
            if not self._ended:
                self._pending.append((fd, text))
                self.unwritten += len(text)
                self._changed.notify_all()

    def wait(self, characters: int) -> None:
        """Wait until at most so many characters are unwritten, or until hurried."""
        with self._changed:
            self._changed.wait_for(lambda: self.unwritten <= characters or self._hurried)

    def hurry(self) -> None:
        """Wait for no slow reader any more."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing more will be put: wait until all is written; when hurried, only a moment."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            ends_at = time.monotonic() + LAST_WAIT_SECONDS if self._hurried else inf
            while self.unwritten and time.monotonic() < ends_at:
                # In slices: a signal in the moment before the wait would not be heeded until its end.
                self._changed.wait(SLICE_SECONDS)

    # -- in the thread

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                if not self._pending:
                    self._ended = True
                    return
                pending, self._pending = self._pending, []
            for fd, text in _merged(pending):
                self._write(fd, text)
            with self._changed:
                self.unwritten = sum(len(text) for _, text in self._pending)
                self._changed.notify_all()

    def _write(self, fd: int, text: str) -> None:
        if fd in self._broken:
            return
        data = memoryview(text.encode(self._encoding, errors="replace"))
        try:
            while data:
                data = data[_write_some(fd, data) :]
        except OSError:
            self._broken.add(fd)
            self._on_broken(fd)


def _write_some(fd: int, data: memoryview) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        # Somebody else made the stream non-blocking; it is shared, so it stays that way.
        select.select([], [fd], [])
        return 0


def _merged(pending: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Neighbours for the same stream as one."""
    merged: list[tuple[int, list[str]]] = []
    for fd, text in pending:
        if merged and merged[-1][0] == fd:
            merged[-1][1].append(text)
        else:
            merged.append((fd, [text]))
    return [(fd, "".join(texts)) for fd, texts in merged]


def _same_file(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _nothing() -> None:
    """What happens when nobody wants to know."""
