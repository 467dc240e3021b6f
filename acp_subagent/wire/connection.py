"""The trio pump over a stream pair: one reader, ordered dispatch, one writer.

Owns the frame buffer, the peer and both halves. Promises: a read costs at most one checkpoint (see `inflow`)
and all its frames are handled synchronously and in wire order; what was read is handled before the end is
told; the end is told once, as an `Ending`, and wakes every waiter; neither task raises anything but
Cancelled. Leaves to others: the nursery that runs `read` and `write`, closing the streams, what frames mean,
and what an ending or a broken writer means for the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

import trio

from acp_subagent.wire.frames import FrameBuffer, Line
from acp_subagent.wire.inflow import READ_BYTES, Inflow
from acp_subagent.wire.jsonrpc import Answer, Counters, OnAnswer, Peer, Receiver, RequestId
from acp_subagent.wire.outflow import Outflow

MEBIBYTE = 1024 * 1024

STOP_READ_BYTES = MEBIBYTE
"""How much `stop` reads at most: a process that outlived the leader may write without end."""


class Ending(StrEnum):
    """Why the conversation ended. The first reason stays."""

    EOF = "eof"  #: the other side closed its end; its last frame was handled, also without a newline
    READ_BROKEN = "read-broken"  #: reading failed, or the stream was closed under the reader
    FRAME_TOO_LARGE = "frame-too-large"  #: one line passed `max_frame_bytes`
    NEVER_SPOKE = "never-spoke"  #: more than `max_noise_lines` came before the first valid frame
    WRITE_BLOCKED = "write-blocked"  #: more than `max_unsent_bytes` unsent: the other side does not read
    STOPPED = "stopped"  #: `stop` was called: what was in the pipe then was handled
    UNEXPECTED = "unexpected"  #: a callback raised; the exception is in `Connection.error`


class BackPressure(Protocol):
    """Makes the reader wait before it reads on, so that the pipe slows the other side down."""

    @property
    def ready(self) -> bool:
        """Whether the reader may read on at once; asked before each read, so it must be cheap."""

    async def wait(self) -> None:
        """Return when the reader may read on. Called only when not ready; may be cancelled by the reader."""


Tap: TypeAlias = Callable[[str, bytes], None]
"""Sees every line of both directions, newline removed: ("received" | "sent", line). Must not block."""


class WireLimits(NamedTuple):
    """The bounds of one connection."""

    max_frame_bytes: int = 64 * MEBIBYTE
    """The longest line that is taken."""

    max_noise_lines: int = 100
    """How many lines that are no message may come before the first valid frame."""

    max_unsent_bytes: int = 64 * MEBIBYTE
    """How much may be unsent when one more frame is sent."""


class Connection:
    """A JSON-RPC conversation over two byte streams. To be made inside `trio.run`."""

    def __init__(
        self,
        receive_stream: trio.abc.ReceiveStream,
        send_stream: trio.abc.SendStream,
        receiver: Receiver,
        limits: WireLimits,
        *,
        tap: Tap | None = None,
        before_read: BackPressure | None = None,
        on_backlog: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """The streams stay the caller's to close. An exception of `tap` is contained.

        `on_backlog` is called once: when there is something for `write` to do. With it, `write` is to be
        started only then; most conversations never need it. `on_end` is called once, when the end was told
        to everybody who waits for an answer. Neither may raise.
        """
        self._receive_stream = receive_stream
        self._peer = Peer(receiver, max_noise_lines=limits.max_noise_lines)
        self._buffer = FrameBuffer(limits.max_frame_bytes)
        self._outflow = Outflow(send_stream, limits.max_unsent_bytes, on_backlog=on_backlog)
        self._tap = tap
        self._before_read = before_read
        self._on_end = on_end
        self._dispatching = False
        self._verdict: Ending | None = None
        self._read_over = False
        self._handling = trio.CancelScope()  # left as soon as there is an ending
        self._discarding = trio.CancelScope()  # left once `stop` was called
        self.ending: Ending | None = None
        """Why the conversation ended; None while it goes on."""
        self.ended = trio.Event()
        """Set with `ending`, after the frames already read were handled and before the waiters are told."""
        self.error: BaseException | None = None
        """The first exception that the receiver, an `on_answer` or the back-pressure raised."""
        self.tap_error: BaseException | None = None
        """The first exception that the tap raised; it changed nothing."""
        self.last_inbound = trio.current_time()
        """`trio.current_time()` of the last read that carried a frame; at first, when this was made."""
        self.received_bytes = 0
        """How much was read so far."""

    @property
    def counters(self) -> Counters:
        """What was seen on the wire so far; updated in place."""
        return self._peer.counters

    @property
    def noise_samples(self) -> Sequence[bytes]:
        """The beginnings of the latest noise lines. Foreign data, for the host only."""
        return self._peer.noise_samples

    @property
    def spoken(self) -> bool:
        """A valid frame was seen."""
        return self._peer.spoken

    @property
    def unsent_bytes(self) -> int:
        """What was sent and has not been written yet."""
        return self._outflow.unsent_bytes

    @property
    def write_broken(self) -> trio.Event:
        """Set when writing failed because the other end is closed.

        Reading goes on: an answer may be in the pipe already.
        """
        return self._outflow.broken

    def __repr__(self) -> str:
        state = "open" if self.ending is None else self.ending.value
        return f"<Connection {state} frames={self.counters.frames} unsent_bytes={self.unsent_bytes}>"

    # Asking and answering. None of these waits but `request`; what is no JSON raises ValueError or TypeError,
    # and then nothing was sent.

    def send_request(self, method: str, params: dict[str, object], on_answer: OnAnswer) -> int:
        """Send a request; return its id. After the end, `on_answer` gets `NoAnswer` before this returns."""
        outgoing = self._peer.request(method, params, on_answer)
        self.send(outgoing.frame)
        return outgoing.id

    async def request(self, method: str, params: dict[str, object]) -> Answer:
        """Send a request and wait for its answer. When cancelled, the answer is abandoned."""
        answers: list[Answer] = []
        answered = trio.Event()

        def take(answer: Answer) -> None:
            answers.append(answer)
            answered.set()

        request_id = self.send_request(method, params, take)
        try:
            await answered.wait()
        finally:
            self.abandon(request_id)
        return answers[0]

    def abandon(self, id: int) -> None:
        """Forget a request of ours: its `on_answer` is never called, a late answer is dropped and counted."""
        self._peer.abandon(id)

    def notify(self, method: str, params: dict[str, object]) -> None:
        """Send a notification."""
        self.send(self._peer.notification(method, params))

    def respond(self, id: RequestId, value: object) -> None:
        """Answer a request that came with a result."""
        self.send(self._peer.result(id, value))

    def respond_error(self, id: RequestId, code: int, message: str) -> None:
        """Answer a request that came with an error."""
        self.send(self._peer.error(id, code, message))

    def send(self, frame: bytes) -> None:
        """Send an encoded line; never waits. Passing `max_unsent_bytes` ends the conversation."""
        if self._tap is not None:
            self._show("sent", frame)
        if not self._outflow.send(frame):
            self._outflow.close()
            self._conclude(Ending.WRITE_BLOCKED)

    def close_writer(self) -> None:
        """End the writer task and drop what is unsent; later frames are dropped silently."""
        self._outflow.close()

    async def write(self) -> None:
        """The writer task: ends after `close_writer`, or when writing failed."""
        await self._outflow.run()

    # Reading.

    async def read(self) -> None:
        """The reader task: handle what comes, and after any other ending than EOF read on and discard.

        The discarding ends at EOF or with `stop`; it keeps the other side from blocking on its output.
        """
        with self._handling:
            self._finish(await self._receive())
        if not self._read_over:
            with self._discarding:
                await self._discard()

    def stop(self) -> None:
        """The leader has exited: handle what is in the pipe, without waiting, and end the conversation.

        Only a pipe is read (at most `STOP_READ_BYTES`), an in-memory stream is not. Works whatever `read`
        waits for, and ends it. Not to be called from a callback of this connection.
        """
        if self.ending is None:
            if isinstance(self._receive_stream, trio.lowlevel.FdStream):
                self._handle_rest_of_pipe(self._receive_stream)
            self._finish(Ending.STOPPED)
        self._discarding.cancel()

    async def _receive(self) -> Ending:
        receive = Inflow(self._receive_stream).receive
        before_read = self._before_read
        try:
            while self.ending is None:
                if before_read is not None and not before_read.ready:
                    await before_read.wait()
                data = await receive()
                if not data:
                    self._read_over = True
                    return Ending.EOF
                self.received_bytes += len(data)
                self._handle(self._buffer.feed(data))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._read_over = True
            return Ending.READ_BROKEN
        except Exception as error:  # noqa: BLE001 - of the back-pressure; a task of ours never raises
            self._note_error(error)
            return Ending.UNEXPECTED
        return self.ending

    async def _discard(self) -> None:
        try:
            while not self._read_over:
                self._read_over = not await self._receive_stream.receive_some(READ_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._read_over = True

    def _handle_rest_of_pipe(self, pipe: trio.lowlevel.FdStream) -> None:
        left = STOP_READ_BYTES
        while left > 0 and self.ending is None:
            try:
                data = os.read(pipe.fileno(), min(left, READ_BYTES))
            except OSError:
                return  # nothing more in the pipe (BlockingIOError), or no pipe any more
            if not data:
                return
            left -= len(data)
            self._handle(self._buffer.feed(data))

    def _handle(self, lines: Sequence[Line]) -> None:
        """Handle the lines of one read in order, then conclude what they or their callbacks led to."""
        peer = self._peer
        frames_before = peer.counters.frames
        self._dispatching = True
        try:
            if self._tap is None:
                peer.feed(lines)
            else:
                for line in lines:
                    self._show("received", bytes(line))
                    peer.feed((line,))
        except Exception as error:  # noqa: BLE001 - whatever a callback raises is a fact, kept as data
            self._note_error(error)
            self._verdict = self._verdict or Ending.UNEXPECTED
        finally:
            self._dispatching = False
        if peer.counters.frames != frames_before:
            self.last_inbound = trio.current_time()
        if peer.outbox:
            frames = peer.outbox.copy()
            peer.outbox.clear()
            for frame in frames:
                self.send(frame)
        if peer.never_spoke:
            self._verdict = self._verdict or Ending.NEVER_SPOKE
        if self._buffer.too_large:
            self._verdict = self._verdict or Ending.FRAME_TOO_LARGE
        if self._verdict is not None:
            self._conclude(self._verdict)

    def _finish(self, ending: Ending) -> None:
        """Nothing more will be handled: the last line needs no newline."""
        if self.ending is None:
            self._handle(self._buffer.finish())
            self._conclude(ending)

    def _conclude(self, ending: Ending) -> None:
        """Tell the end, once; while frames are being handled it is put off until they all are."""
        if self.ending is not None:
            return
        if self._dispatching:
            self._verdict = self._verdict or ending
            return
        self.ending = ending
        self.ended.set()
        self._handling.cancel()
        try:
            self._peer.close()
        except Exception as error:  # noqa: BLE001 - a waiter's callback; the others have been told
            self._note_error(error)
        if self._on_end is not None:
            self._on_end()

    def _show(self, direction: str, line: bytes) -> None:
        assert self._tap is not None
        try:
            self._tap(direction, line.removesuffix(b"\n"))
        except Exception as error:  # noqa: BLE001 - looking on must never change the conversation
            self.tap_error = self.tap_error or error

    def _note_error(self, error: Exception) -> None:
        self.error = self.error or error
