"""Bytes in, bytes out: the two pipes of the agent, and the log of what went through them.

``Output`` writes whole frames from any thread, and raw bytes for the faults. ``Inlet`` gives the main thread
what the client wrote, and runs there what only a main thread may do (signals, ``exec``). Neither knows what a
frame means.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fake_acp_server.strict import Judge

IS_WINDOWS = sys.platform == "win32"
READ_SIZE = 65536

#: Exit code of a process that left because it was forgotten.
FORGOTTEN = 75

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_DECODE = json.JSONDecoder(parse_constant=_refuse).decode


def decode_line(line: bytes) -> Any:
    """The JSON value in a line; ``ValueError`` when it holds none, or one nested too deeply to be read.

    UTF-8 and nothing else: ``json.loads`` would guess at other encodings, and take NaN for a number.
    """
    try:
        return _DECODE(line.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode_frame(frame: Any) -> bytes:
    """One line of JSON with its newline. A lone surrogate can only travel as an escape."""
    try:
        return _ENCODE(frame).encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(frame, separators=(",", ":")).encode("ascii") + b"\n"


def write_all(fd: int, data: bytes) -> bool:
    """Write every byte, waiting as long as it takes; False when nobody reads any more."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            time.sleep(0.001)  # a client may have made the shared pipe non-blocking
        except OSError:
            return False
    return True


def replace_with_null(fd: int) -> None:
    """Close our end of a standard stream; the number stays taken, so that nothing else gets it."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


class FrameLog:
    """Appends every frame of the conversation to a file, one JSON object a line.

    Each line has ``at`` (seconds since the agent started), ``from`` (``client`` or ``agent``), and ``frame``
    or, for bytes that are no frame, ``raw`` (latin-1 text).
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._start = time.monotonic()

    def frame(self, sender: str, frame: Any) -> None:
        """Note one frame of ``client`` or ``agent``."""
        self._line({"from": sender, "frame": frame})

    def raw(self, sender: str, data: bytes) -> None:
        """Note bytes that are not one frame."""
        self._line({"from": sender, "raw": data.decode("latin-1")})

    def _line(self, entry: dict[str, Any]) -> None:
        entry = {"at": round(time.monotonic() - self._start, 6), **entry}
        write_all(self._fd, json.dumps(entry).encode("ascii") + b"\n")


class Output:
    """The agent's stdout. Threads may share it: a frame is never torn by another one.

    The main thread never waits here for a client that does not read, or it would not see what the client
    writes: what the pipe cannot take at once is left to a thread of its own, in order.
    """

    def __init__(self, log: FrameLog | None, judge: Judge | None = None) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._judge = judge
        #: Frames of the main thread that wait for the pipe.
        self._waiting: list[tuple[Any, bytes]] = []
        self._all_out = threading.Condition()

    def frame(self, frame: Any) -> None:
        """Send one JSON value as a line."""
        data = encode_frame(frame)
        if not _is_main_thread():
            self._write(frame, data)
            return
        with self._all_out:
            if not self._waiting and self._write_at_once(frame, data):
                return
            self._waiting.append((frame, data))
            if len(self._waiting) == 1:
                threading.Thread(target=self._write_waiting, daemon=True).start()

    def raw(self, data: bytes, split_bytes: int = 0, delay_seconds: float = 0.0) -> None:
        """Send bytes as they are; with ``split_bytes`` in pieces of that size, with a pause between two."""
        size = split_bytes or max(len(data), 1)
        if _is_main_thread():
            self.flush()
        with self._lock:
            if self._log:
                self._log.raw("agent", data[:READ_SIZE])
            for start in range(0, len(data), size):
                if start and delay_seconds:
                    time.sleep(delay_seconds)
                write_all(1, data[start : start + size])

    def flush(self, timeout_seconds: float | None = None) -> None:
        """Wait until what the main thread said is written."""
        with self._all_out:
            self._all_out.wait_for(lambda: not self._waiting, timeout_seconds)

    def close(self) -> None:
        """Close stdout; what is sent later goes nowhere."""
        with self._lock:
            replace_with_null(1)

    def _write_at_once(self, frame: Any, data: bytes) -> bool:
        """Write the frame if that needs no wait; whether it did. Windows cannot tell before."""
        if not self._lock.acquire(blocking=IS_WINDOWS):
            return False
        try:
            if not IS_WINDOWS:
                import select

                # A pipe that counts as writable takes this many bytes for certain.
                if len(data) > select.PIPE_BUF or not select.select([], [1], [], 0)[1]:
                    return False
            self._put(frame, data)
            return True
        finally:
            self._lock.release()

    def _write(self, frame: Any, data: bytes) -> None:
        with self._lock:
            self._put(frame, data)

    def _put(self, frame: Any, data: bytes) -> None:
        if self._log:
            self._log.frame("agent", frame)
        if self._judge:
            self._judge.agent(frame)
        write_all(1, data)

    def _write_waiting(self) -> None:
        while True:
            self._write(*self._waiting[0])
            with self._all_out:
                del self._waiting[0]
                if not self._waiting:
                    self._all_out.notify_all()
                    return


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class Inlet:
    """The agent's stdin, read by the main thread, which also runs the calls that other threads hand to it."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._reading = True
        if not IS_WINDOWS:
            self._wake_read, self._wake_write = os.pipe()

    def read(self) -> bytes:
        """The next bytes of the client, ``b""`` at the end. Waits, and runs handed-over calls meanwhile."""
        if IS_WINDOWS:
            while not self._reading:
                time.sleep(0.02)
            return os.read(0, READ_SIZE)
        import select

        while True:
            wanted = [self._wake_read, 0] if self._reading else [self._wake_read]
            ready, _, _ = select.select(wanted, [], [])
            self._run_calls()
            if 0 in ready and self._reading:
                return os.read(0, READ_SIZE)

    def pause(self) -> None:
        """Stop reading; the client's pipe fills up."""
        self._reading = False
        self.wake()

    def resume(self) -> None:
        """Read again after ``pause``."""
        self._reading = True
        self.wake()

    def close(self) -> None:
        """Close stdin, so that the client's next write fails."""
        self.in_main_thread(self._close_now)

    def limit_life(self, seconds: float) -> None:
        """End the process when it is still there after so long: a forgotten fake must not stay for ever.

        A thread of its own watches that: the main thread may hang in a pipe that nobody reads.
        """

        def leave_then() -> None:
            threading.Event().wait(min(seconds, threading.TIMEOUT_MAX))
            os._exit(FORGOTTEN)

        threading.Thread(target=leave_then, daemon=True).start()

    def in_main_thread(self, call: Callable[[], None]) -> None:
        """Run the call in the main thread and wait for its end; on Windows, which cannot wake it, here."""
        if IS_WINDOWS or _is_main_thread():
            call()
            return
        done = threading.Event()
        failed: list[Exception] = []

        def call_and_tell() -> None:
            try:
                call()
            except Exception as problem:  # noqa: BLE001  # it belongs to the thread that asked
                failed.append(problem)
            done.set()

        self._calls.append(call_and_tell)
        self.wake()
        done.wait()
        if failed:
            raise failed[0]

    def wake(self) -> None:
        """Let ``read`` look at its state again."""
        if not IS_WINDOWS:
            os.write(self._wake_write, b".")

    def _close_now(self) -> None:
        self._reading = False
        replace_with_null(0)

    def _run_calls(self) -> None:
        import select

        while select.select([self._wake_read], [], [], 0)[0]:
            os.read(self._wake_read, 4096)
        while self._calls:
            self._calls.pop(0)()
