"""The sending half of a connection: written at once when possible, queued when not.

Owns the queue and the one writer task. Promises: frames leave whole and in order; `send` never waits, so no
cancellation of a caller can tear a frame; the queue is bounded. Leaves to others: opening and closing the
stream, and what to do when it is broken or the bound is passed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

import trio

TURN_BYTES = 65536
"""How much the writer writes before it lets other tasks run; what a pipe holds."""


class Outflow:
    """Frames on their way to the other side."""

    def __init__(
        self,
        stream: trio.abc.SendStream,
        max_unsent_bytes: int,
        *,
        on_backlog: Callable[[], None] | None = None,
    ) -> None:
        """A frame is refused when more than `max_unsent_bytes` are unsent already.

        `on_backlog` is called once: when there is something for `run` to do, which is to be started then.
        """
        self._stream = stream
        # Only a pipe's descriptor can be written without waiting; its number is asked for each time, since
        # it must never be used after the stream was closed.
        self._pipe = stream if isinstance(stream, trio.lowlevel.FdStream) else None
        self._max_unsent_bytes = max_unsent_bytes
        self._on_backlog = on_backlog
        self._queue: deque[bytes | memoryview] = deque()
        self._queued = trio.Event()
        self._scope = trio.CancelScope()
        self._closed = False
        self.unsent_bytes = 0
        """What was accepted and has not been written yet."""
        self.broken = trio.Event()
        """Set when writing failed because the other end is closed. A stream that we closed breaks nothing."""

    def send(self, frame: bytes) -> bool:
        """Write or queue one frame. False: the bound is passed and the frame was not taken.

        After `close`, once `broken` is set, or when the stream is closed, frames are dropped silently.
        """
        if self._closed:
            return True
        if self.unsent_bytes > self._max_unsent_bytes:
            return False
        if self._queue or self._pipe is None:
            self._append(frame)
            return True
        written = self._write_now(frame)
        if written < len(frame) and not self._closed:
            self._append(memoryview(frame)[written:])
        return True

    async def run(self) -> None:
        """Write what is queued, until `close` or until writing fails. Never raises anything but Cancelled."""
        with self._scope:
            try:
                while not self._closed:
                    await self._queued.wait()
                    # Empty when `close` came between the waking and the running of this task.
                    if self._queue:
                        await self._write_some()
            except trio.BrokenResourceError:
                self._break()
            except trio.ClosedResourceError:
                self.close()

    def close(self) -> None:
        """Drop what is queued and end the writer task; the stream itself is the caller's to close."""
        self._closed = True
        self._drop()
        self._scope.cancel()

    async def _write_some(self) -> None:
        if self._pipe is None:
            frame = self._queue[0]
            # It stays first in the queue while it is written: nothing may overtake it.
            await self._stream.send_all(frame)
            self._count_written(len(frame))
            return
        await self._pipe.wait_send_all_might_not_block()
        left = TURN_BYTES
        while self._queue and left > 0:
            first = self._queue[0]
            written = self._write_now(first)
            self._count_written(written)
            if written < len(first):
                return
            left -= written

    def _write_now(self, data: bytes | memoryview) -> int:
        """How many bytes the pipe took without waiting; 0 also when it is broken or closed."""
        assert self._pipe is not None
        descriptor = self._pipe.fileno()
        if descriptor < 0:
            self.close()
            return 0
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._break()
            return 0

    def _append(self, data: bytes | memoryview) -> None:
        self._queue.append(data)
        self.unsent_bytes += len(data)
        self._queued.set()
        self._need_run()

    def _count_written(self, written: int) -> None:
        if self._closed:  # while it was written; the queue is empty already
            return
        self.unsent_bytes -= written
        first = self._queue[0]
        if written == len(first):
            self._queue.popleft()
            if not self._queue:
                self._queued = trio.Event()
        else:
            self._queue[0] = memoryview(first)[written:]

    def _break(self) -> None:
        self.broken.set()
        self.close()
        self._need_run()

    def _need_run(self) -> None:
        on_backlog, self._on_backlog = self._on_backlog, None
        if on_backlog is not None:
            on_backlog()

    def _drop(self) -> None:
        self._queue.clear()
        self.unsent_bytes = 0
