"""Lines of the child's stderr for the subscriptions that ask for them.

Owns the splitting into lines. The bounded tail that a failure carries is the process room's.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_subagent.seam.feed import EventFeed

#: A line without end is cut here, so that a child cannot make us keep it.
MAX_LINE_BYTES = 64 * 1024


class StderrLines:
    """Turns what the child writes to stderr into events of the turn that is under way."""

    def __init__(self, feed: Callable[[], EventFeed]) -> None:
        self._feed = feed
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what was read; complete lines become events when somebody asked for them."""
        feed = self._feed()
        if not feed.wants_stderr:
            self._rest = b""
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        if lines:
            feed.put_stderr([line.decode("utf-8", errors="replace").rstrip("\r") for line in lines])

    def finish(self) -> None:
        """Nothing more will come: the last line needs no newline."""
        if self._rest:
            self.feed(b"\n")
