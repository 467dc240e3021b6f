"""Bytes to lines: newline frames, one linear scan, a size cap.

Owns the unfinished last line. Promises: the same lines come out however the bytes were cut into pieces; every
byte is scanned once and copied a few times, also when they come one by one; little more than
`max_frame_bytes` and one piece are held. Leaves to others: what a line means (`jsonrpc`), where the bytes
come from (`connection`). No I/O.
"""

from __future__ import annotations

from typing import TypeAlias

Line: TypeAlias = bytes | bytearray
"""A line; one that came in more than one piece is the bytearray that it was collected in: a copy of a long
one would need as much memory again."""

_RETURN = ord("\r")


class FrameBuffer:
    """Cuts a stream of bytes into lines at byte 0x0A, and only there."""

    __slots__ = ("_max_frame_bytes", "_tail", "too_large")

    def __init__(self, max_frame_bytes: int) -> None:
        """`max_frame_bytes` is the longest line allowed, its newline not counted."""
        self._max_frame_bytes = max_frame_bytes
        self._tail = bytearray()
        self.too_large = False
        """A line, finished or not, passed the cap; nothing comes out and nothing is kept any more."""

    def feed(self, data: bytes) -> list[Line]:
        """Take the next bytes; return the lines they complete, without newline, `\\r` and blank lines.

        When a line passes the cap, the lines before it are still returned and `too_large` is set.
        """
        if self.too_large:
            return []
        lines: list[Line] = [*data.split(b"\n")]
        tail = lines.pop()
        may_pass_cap = len(self._tail) + len(data) > self._max_frame_bytes
        if lines:
            has_returns = _RETURN in data
            if self._tail:
                lines[0] = self._take_tail(lines[0])
                has_returns = has_returns or lines[0].endswith(b"\r")  # an earlier piece may have ended in it
            if may_pass_cap:
                lines = self._lines_within_cap(lines)
            if has_returns:
                lines = [_without_return(line) for line in lines]
            lines = list(filter(None, lines))
        if not self.too_large and tail:
            self._keep_tail(tail)
        return lines

    def finish(self) -> list[Line]:
        """The stream has ended: return the last line, which had no newline, if there is one."""
        line = _without_return(self._take_tail(b""))
        return [line] if line else []

    def _keep_tail(self, piece: Line) -> None:
        if len(self._tail) + len(piece) > self._max_frame_bytes:
            self._give_up()
        else:
            self._tail += piece

    def _take_tail(self, end: Line) -> bytearray:
        line, self._tail = self._tail, bytearray()
        line += end
        return line

    def _lines_within_cap(self, lines: list[Line]) -> list[Line]:
        for index, line in enumerate(lines):
            if len(line) > self._max_frame_bytes:
                self._give_up()
                return lines[:index]
        return lines

    def _give_up(self) -> None:
        self.too_large = True
        self._tail = bytearray()


def _without_return(line: Line) -> Line:
    # Not `removesuffix`: of a bytearray it always makes a copy.
    return line[:-1] if line.endswith(b"\r") else line
