"""Our stdout and stderr, written in order by a thread of its own.

Owns that a reader who does not read (a paused pager, a full pipe, a stopped terminal) never stops the run: a
put returns at once, whatever the other side does. Also owns what becomes of a closed stdout, and that a note
never begins in the middle of a line of the answer when both are shown on a terminal.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from acp_subagent.cli.terminal import ControlFilter

STDOUT, STDERR = 1, 2

#: how much may be unwritten before whoever produces the answer should wait
ROOM_CHARACTERS = 1024 * 1024

#: how long `close` waits for a stream that is not read, once there is reason to hurry
LAST_WAIT_SECONDS = 1.0


class Streams:
    """The two streams of the command line."""

    def __init__(self, *, encoding: str = "utf-8") -> None:
        self._encoding = encoding
        self._changed = threading.Condition()
        self._pending: list[tuple[int, str]] = []
        self._unwritten = 0  # characters
        self._closing = False
        self._hurried = False
        self._broken: set[int] = set()
        self._thread = threading.Thread(target=self._write_all, name="streams", daemon=True)
        self._filter = ControlFilter()
        self._mid_line = False
        #: called once, in another thread, when stdout cannot be written any more
        self.on_stdout_broken: Callable[[], None] = _nothing
        self.stdout_is_terminal = os.isatty(STDOUT)
        self.stderr_is_terminal = os.isatty(STDERR)
        self._thread.start()

    @property
    def stdout_broken(self) -> bool:
        """Whether stdout was closed by whoever reads it, or can take no more."""
        return STDOUT in self._broken

    def answer(self, text: str) -> None:
        """A piece of the answer, to stdout; on a terminal without control sequences."""
        if self.stdout_is_terminal:
            text = self._filter.feed(text)
        if text:
            self._mid_line = not text.endswith("\n")
            self._put(STDOUT, text)

    def note(self, line: str) -> None:
        """A line of our own, to stderr."""
        if self._mid_line and self.stdout_is_terminal and self.stderr_is_terminal:
            line = "\n" + line
            self._mid_line = False
        self._put(STDERR, line + "\n")

    @property
    def full(self) -> bool:
        """Whether more is unwritten than should be."""
        return self._unwritten > ROOM_CHARACTERS

    def wait_for_room(self) -> None:
        """Block this thread while `full`; not after `hurry`."""
        self._wait_until_unwritten(ROOM_CHARACTERS)

    def wait_until_written(self) -> None:
        """Block this thread until everything is written; not after `hurry`."""
        self._wait_until_unwritten(0)

    def hurry(self) -> None:
        """Nobody waits any longer for a stream that is not read, except `close` for a moment."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until everything is written, after `hurry` only for a moment; then nothing may be put."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            last_wait_seconds = LAST_WAIT_SECONDS if self._hurried else None
            self._changed.wait_for(lambda: self._unwritten == 0, last_wait_seconds)

    def _wait_until_unwritten(self, characters: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._unwritten <= characters or self._hurried)

    def _put(self, fd: int, text: str) -> None:
        with self._changed:
            self._pending.append((fd, text))
            self._unwritten += len(text)
            self._changed.notify_all()

    # -- in the thread

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                if not self._pending:
                    return
                pending, self._pending = self._pending, []
            for fd, text in _merged(pending):
                self._write(fd, text)
            with self._changed:
                self._unwritten = sum(len(text) for _, text in self._pending)
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
            if fd == STDOUT:
                self.on_stdout_broken()


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


def _nothing() -> None:
    """What happens when nobody wants to know."""
