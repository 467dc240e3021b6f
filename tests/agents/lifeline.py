"""A shell command whose life and death the kernel reports: it holds the writing end of a named pipe."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from types import TracebackType
from typing import Self

import trio


class Lifeline:
    """A named pipe, and the command that holds on to it for as long as it lives."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # Without O_NONBLOCK the call would wait for the command; with it, only reads do.
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        #: Says on the pipe that it runs, then goes on for as long as nobody ends it.
        self.command = f"exec 3>{shlex.quote(str(path))}; echo running >&3; exec sleep 3600"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._reader)

    async def holds(self) -> None:
        """Wait until the command runs."""
        await trio.lowlevel.wait_readable(self._reader)
        assert os.read(self._reader, 100) == b"running\n"

    def is_cut(self) -> bool:
        """The command ran, and whoever held the pipe is dead."""
        try:
            return os.read(self._reader, 100) == b""
        except BlockingIOError:
            return False
