"""Bytes to lines: newline frames, one linear scan, a size cap.

Owns the unfinished last line. Promises: the same lines come out however the bytes were cut into pieces; every
byte is scanned once and copied a fixed number of times, also when they come one by one; never more than about
`max_frame_bytes` and one piece are held. Leaves to others: what a line means (`jsonrpc`), where the
bytes come from (`connection`). No I/O.
"""

from __future__ import annotations

# This many pieces of an unfinished line are joined into one, so that a line which comes byte by byte costs
# its length and not the 40 times larger price of an object for each byte.
PIECES_PER_JOIN = 1024


class FrameBuffer:
    """Cuts a stream of bytes into lines at byte 0x0A, and only there."""

    __slots__ = ("_joined", "_max_frame_bytes", "_pieces", "_tail_bytes", "too_large")

    def __init__(self, max_frame_bytes: int) -> None:
        """`max_frame_bytes` is the longest line allowed, its newline not counted."""
        self._max_frame_bytes = max_frame_bytes
        self._joined: list[bytes] = []
        self._pieces: list[bytes] = []
        self._tail_bytes = 0
        self.too_large = False
        """A line, finished or not, passed the cap; nothing comes out and nothing is kept any more."""

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the lines they complete, without newline, `\\r` and blank lines.

        When a line passes the cap, the lines before it are still returned and `too_large` is set.
        """
        if self.too_large:
            return []
        lines = data.split(b"\n")
        tail = lines.pop()
        may_pass_cap = self._tail_bytes + len(data) > self._max_frame_bytes
        if lines:
            if self._tail_bytes:
                lines[0] = self._take_tail(lines[0])
            if may_pass_cap:
                lines = self._lines_within_cap(lines)
            if b"\r" in data:
                lines = [line.removesuffix(b"\r") for line in lines]
            elif lines:
                # Only the first line began in an earlier piece, which may have ended in its `\r`.
                lines[0] = lines[0].removesuffix(b"\r")
            lines = list(filter(None, lines))
        if not self.too_large and tail:
            self._keep_tail(tail)
        return lines

    def finish(self) -> list[bytes]:
        """The stream has ended: return the last line, which had no newline, if there is one."""
        line = self._take_tail(b"").removesuffix(b"\r")
        return [line] if line else []

    def _keep_tail(self, piece: bytes) -> None:
        self._tail_bytes += len(piece)
        if self._tail_bytes > self._max_frame_bytes:
            self._give_up()
            return
        pieces = self._pieces
        pieces.append(piece)
        if len(pieces) >= PIECES_PER_JOIN:
            self._joined.append(b"".join(pieces))
            pieces.clear()

    def _take_tail(self, end: bytes) -> bytes:
        line = b"".join((*self._joined, *self._pieces, end))
        self._forget()
        return line

    def _lines_within_cap(self, lines: list[bytes]) -> list[bytes]:
        for index, line in enumerate(lines):
            if len(line) > self._max_frame_bytes:
                self._give_up()
                return lines[:index]
        return lines

    def _give_up(self) -> None:
        self.too_large = True
        self._forget()

    def _forget(self) -> None:
        self._joined.clear()
        self._pieces.clear()
        self._tail_bytes = 0
