"""Records a conversation between a client and a real agent, and plays the agent's side of it again.

A cassette is a file of JSON lines: first ``{"cassette": 1}``, then one entry for each line that went over the
wire, in order: ``at`` (seconds since the start), ``from`` (``client`` or ``agent``), and ``frame`` (JSON) or
``raw`` (text).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

from fake_acp_server.masking import Masker
from fake_acp_server.wire import IS_WINDOWS, READ_SIZE, decode_line, encode_frame, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

HEADER = {"cassette": 1}

#: How long nothing must come from the pipe of an agent that has ended; how often a client that is slow in
#: reading gets that time again.
LAST_WORDS_SECONDS = 0.5
PATIENCE = 20

#: Exit code of a replay from which the client diverged, or of a cassette that cannot be used.
DIVERGED = 1
UNUSABLE = 2


class CassetteError(Exception):
    """A cassette cannot be read, or a client diverged from it; the text says where."""


class Tape:
    """Writes a cassette, secrets masked. Both directions may write at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        self._lock = threading.Lock()
        self._masker = Masker()
        self._start = time.monotonic()
        write_all(self._file, encode_frame(HEADER))

    def line(self, sender: str, line: bytes) -> None:
        """Record one line without its newline; blank ones are left out."""
        if not line.strip():
            return
        entry: dict[str, Any] = {"at": round(time.monotonic() - self._start, 6), "from": sender}
        try:
            entry["frame"] = self._masker.value(decode_line(line))
        except ValueError:
            entry["raw"] = self._masker.text(line.decode("utf-8", "replace"))
        with self._lock:
            write_all(self._file, encode_frame(entry))


def record(path: str, command: list[str]) -> int:
    """Stand between our own client and the agent of that command, and record. The agent's exit code."""
    tape = Tape(path)
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert agent.stdin
    assert agent.stdout
    _forward_signals(agent)
    _Pump(tape, "client", 0, agent.stdin.fileno(), agent.stdin).start()
    answers = _Pump(tape, "agent", agent.stdout.fileno(), 1)
    answers.start()
    code = agent.wait()
    # What the agent left in its pipe is passed on, even to a slow client. The end of the pipe may never come:
    # a child of the agent may hold it.
    for _ in range(PATIENCE):
        answers.join(LAST_WORDS_SECONDS)
        if not answers.passing:
            break
    return code if code >= 0 else 128 - code


class _Pump(threading.Thread):
    """Records one direction line by line, and passes every byte on."""

    def __init__(
        self, tape: Tape, sender: str, source: int, target: int, closing: IO[bytes] | None = None
    ) -> None:
        super().__init__(daemon=True)
        self._tape = tape
        self._sender = sender
        self._source = source
        self._target = target
        self._closing = closing
        #: It has bytes in hand that are not yet written.
        self.passing = False

    def run(self) -> None:
        """Until the source ends."""
        begun: list[bytes] = []  # pieces of a line whose end has not come yet
        while data := os.read(self._source, READ_SIZE):
            self.passing = True
            # First on the tape, then on the wire: an answer is never recorded before what it answers.
            *lines, rest = data.split(b"\n")
            for line in lines:
                self._tape.line(self._sender, b"".join([*begun, line]))
                begun.clear()
            begun.append(rest)
            write_all(self._target, data)
            self.passing = False
        self._tape.line(self._sender, b"".join(begun))
        if self._closing:
            self._closing.close()


def _forward_signals(agent: subprocess.Popen[bytes]) -> None:
    import signal

    def forward(number: int, frame: Any) -> None:
        if not IS_WINDOWS or number == signal.SIGTERM:  # the console's interrupt reaches the agent by itself
            agent.send_signal(number)

    for name in ("SIGTERM", "SIGINT") if IS_WINDOWS else ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), forward)


def read_cassette(path: str) -> list[dict[str, Any]]:
    """The entries of a cassette; ``CassetteError`` when it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError, RecursionError) as problem:
        raise CassetteError(f"{path} cannot be read: {problem}") from None
    if not lines or lines[0] != HEADER:
        raise CassetteError(f"{path} is no cassette")
    for number, entry in enumerate(lines[1:], 2):
        if not _is_entry(entry):
            raise CassetteError(f"{path}, line {number}: no entry of a cassette")
    return lines[1:]


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("at"), (int, float)):
        return False
    said = isinstance(entry.get("raw"), str) or "frame" in entry
    return said and entry.get("from") in ("client", "agent")


class Replay:
    """Plays the agent's side of a cassette to whoever is on our standard streams.

    Ids of requests may differ from the recorded ones. With ``exact`` the client's params and results must be
    the same; otherwise only which methods it calls, and in which order it answers. ``timing``: as slow as it
    was recorded.
    """

    def __init__(self, entries: list[dict[str, Any]], exact: bool, timing: bool) -> None:
        self._entries = entries
        self._exact = exact
        self._timing = timing
        #: Recorded id of a client's request -> the id it has now.
        self._ids: dict[str, Any] = {}
        self._lines: list[bytes] = []
        self._begun: list[bytes] = []
        self._early: list[dict[str, Any]] = []

    def run(self) -> None:
        """Play to the end, then wait for the client's end; ``CassetteError`` when the client diverged."""
        before = 0.0
        for number, entry in enumerate(self._entries, 2):
            if entry["from"] == "client":
                if isinstance(entry.get("frame"), dict):  # nothing else is a thing to wait for
                    self._expect(number, entry["frame"])
            else:
                if self._timing:
                    time.sleep(max(0.0, entry["at"] - before))
                self._say(entry)
            before = entry["at"]
        rest = [*self._early, *iter(self._read, None)]
        if rest:
            raise CassetteError(f"after the last line: the client sent {_named(rest[0])} as well")

    def _expect(self, number: int, recorded: dict[str, Any]) -> None:
        """Wait for the client's counterpart of a recorded frame. What it sends in another order is kept for
        later.
        """
        others: list[dict[str, Any]] = []
        frame: dict[str, Any] | None = None
        while frame is None:
            candidate = self._early.pop(0) if self._early else self._read()
            if candidate is None:
                came = f"; it sent {_named(others[0])}" if others else ""
                raise CassetteError(f"line {number}: the client never sent {_named(recorded)}{came}")
            if _same_call(recorded, candidate):
                frame = candidate
            elif "method" in candidate and "id" in candidate and "method" in recorded:
                raise CassetteError(
                    f"line {number}: {_named(recorded)} was recorded, {_named(candidate)} came"
                )
            else:
                others.append(candidate)
        self._early = others + self._early
        if "method" in recorded and "id" in recorded:
            self._ids[json.dumps(recorded["id"])] = frame.get("id")
        if self._exact:
            place = _difference(_content(recorded), _content(frame))
            if place is not None:
                raise CassetteError(f"line {number}: {_named(recorded)} differs at {place or 'its content'}")

    def _say(self, entry: dict[str, Any]) -> None:
        if "raw" in entry:
            write_all(1, entry["raw"].encode("utf-8", "surrogatepass") + b"\n")
            return
        frame = entry["frame"]
        if isinstance(frame, dict) and "method" not in frame:
            frame = {**frame, "id": self._ids.get(json.dumps(frame.get("id")), frame.get("id"))}
        write_all(1, encode_frame(frame))

    def _read(self) -> dict[str, Any] | None:
        """The client's next frame; None at the end of its stream."""
        while True:
            while self._lines:
                line = self._lines.pop(0)
                if line.strip():
                    return _frame(line)
            data = os.read(0, READ_SIZE)
            if not data and not any(self._begun):
                return None
            *lines, rest = (data or b"\n").split(b"\n")  # a last line may lack its newline
            if lines:
                self._lines = [b"".join([*self._begun, lines[0]]), *lines[1:]]
                self._begun.clear()
            self._begun.append(rest)


def _frame(line: bytes) -> dict[str, Any]:
    try:
        frame = decode_line(line)
    except ValueError:
        frame = None
    return frame if isinstance(frame, dict) else {"method": "a line that is no frame"}


def _same_call(recorded: dict[str, Any], frame: dict[str, Any]) -> bool:
    """Whether a frame is what was recorded: the same method, or an answer to the same request."""
    if "method" in recorded:
        return recorded["method"] == frame.get("method") and ("id" in recorded) == ("id" in frame)
    return "method" not in frame and json.dumps(recorded.get("id")) == json.dumps(frame.get("id"))


def _content(frame: dict[str, Any]) -> dict[str, Any]:
    return {key: frame[key] for key in ("params", "result", "error") if key in frame}


def _difference(recorded: Any, value: Any, place: str = "") -> str | None:
    """The place of the first difference, or None. What was masked differs from nothing."""
    if recorded == value or (isinstance(recorded, str) and "***" in recorded):
        return None
    if isinstance(recorded, dict) and isinstance(value, dict) and set(recorded) == set(value):
        found = (_difference(recorded[key], value[key], f"{place}.{key}".lstrip(".")) for key in recorded)
        return next((deeper for deeper in found if deeper is not None), None)
    if isinstance(recorded, list) and isinstance(value, list) and len(recorded) == len(value):
        pairs = enumerate(zip(recorded, value, strict=True))
        found = (_difference(old, new, f"{place}[{index}]") for index, (old, new) in pairs)
        return next((deeper for deeper in found if deeper is not None), None)
    return place


def _named(frame: dict[str, Any]) -> str:
    if "method" in frame:
        return str(frame["method"])
    return f"the answer to request {json.dumps(frame.get('id'))}"


def replay(path: str, exact: bool, timing: bool) -> int:
    """Play a cassette on the standard streams; the exit code. What went wrong is said on stderr."""
    try:
        entries = read_cassette(path)
    except CassetteError as problem:
        sys.stderr.write(f"fake-acp-server: {problem}\n")
        return UNUSABLE
    try:
        Replay(entries, exact, timing).run()
    except CassetteError as problem:
        sys.stderr.write(f"fake-acp-server: the client diverged from {path}, {problem}\n")
        return DIVERGED
    return 0
