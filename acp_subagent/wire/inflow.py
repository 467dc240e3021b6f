"""The receiving half of a connection: one read at a time, with its checkpoint.

Promises: never more than `SLICE_SECONDS` of reads follow each other without a checkpoint, so a lively other
side holds up no other task for longer than one full read takes anyway. A conversation of small questions and
answers pays a checkpoint per slice, not per question. Leaves to others: what the bytes mean, closing the
stream.
"""

from __future__ import annotations

import os
from time import perf_counter

import trio

READ_BYTES = 65536
"""What a pipe holds; larger reads bring nothing."""

SLICE_SECONDS = 0.0005
"""About what the frames of one full read take."""


class Inflow:
    """Bytes on their way in."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        # Only a pipe's descriptor can be read without waiting; its number is asked for each time, since it
        # must never be used after the stream was closed.
        self._pipe = stream if isinstance(stream, trio.lowlevel.FdStream) else None
        self._slice_ends = 0.0

    async def receive(self) -> bytes:
        """What has come, at most `READ_BYTES`; waits for something. Empty at the end of the stream.

        Raises `trio.BrokenResourceError` or `trio.ClosedResourceError` when it cannot be read any more.
        """
        if self._pipe is None:
            return bytes(await self._stream.receive_some(READ_BYTES))
        if perf_counter() > self._slice_ends:
            await trio.lowlevel.checkpoint()
            self._slice_ends = perf_counter() + SLICE_SECONDS
        while True:
            try:
                return os.read(self._pipe.fileno(), READ_BYTES)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._pipe)
                self._slice_ends = perf_counter() + SLICE_SECONDS
            except OSError:
                break
        raise trio.BrokenResourceError
