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
from fake_acp_server.wire import IS_WINDOWS, READ_SIZE, encode_frame, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

HEADER = {"cassette": 1}

#: Exit code of a replay from which the client diverged, or of a cassette that cannot be used.
DIVERGED = 1
UNUSABLE = 2


class CassetteError(Exception):
    """A cassette cannot be read, or a client diverged from it; the text says where."""


class Tape:
    """Writes a cassette, secrets masked. Both directions may write at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
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
            entry["frame"] = self._masker.value(json.loads(line))
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
    threading.Thread(
        target=_pump, args=(0, agent.stdin.fileno(), "client", tape, agent.stdin), daemon=True
    ).start()
    answers = threading.Thread(
        target=_pump, args=(agent.stdout.fileno(), 1, "agent", tape, None), daemon=True
    )
    answers.start()
    code = agent.wait()
    answers.join(1.0)  # what the agent left in its pipe; a child of it may hold the pipe open for ever
    return code if code >= 0 else 128 - code


def _pump(source: int, target: int, sender: str, tape: Tape, closing: IO[bytes] | None) -> None:
    """Record line by line, and pass every byte on."""
    rest = b""
    while data := os.read(source, READ_SIZE):
        # First on the tape, then on the wire: an answer can never be recorded before what it answers.
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            tape.line(sender, line)
        write_all(target, data)
    tape.line(sender, rest)
    if closing:
        closing.close()


def _forward_signals(agent: subprocess.Popen[bytes]) -> None:
    import signal

    def forward(number: int, frame: Any) -> None:
        agent.send_signal(number)

    for name in ("SIGTERM", "SIGINT") if IS_WINDOWS else ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), forward)


def read_cassette(path: str) -> list[dict[str, Any]]:
    """The entries of a cassette; ``CassetteError`` when it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError) as problem:
        raise CassetteError(f"{path} cannot be read: {problem}") from None
    if not lines or lines[0] != HEADER:
        raise CassetteError(f"{path} is no cassette")
    for number, entry in enumerate(lines[1:], 2):
        if entry.get("from") not in ("client", "agent") or not ("frame" in entry or "raw" in entry):
            raise CassetteError(f"{path}, line {number}: no entry of a cassette")
    return lines[1:]


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
        self._buffer = b""
        self._early: list[dict[str, Any]] = []

    def run(self) -> None:
        """Play to the end, then wait for the client's end; ``CassetteError`` when the client diverged."""
        before = 0.0
        for number, entry in enumerate(self._entries, 2):
            if entry["from"] == "client":
                if "frame" in entry:
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
            self._ids[json.dumps(recorded["id"])] = frame["id"]
        if self._exact:
            place = _difference(_content(recorded), _content(frame))
            if place is not None:
                raise CassetteError(f"line {number}: {_named(recorded)} differs at {place or 'its content'}")

    def _say(self, entry: dict[str, Any]) -> None:
        if "raw" in entry:
            write_all(1, entry["raw"].encode() + b"\n")
            return
        frame = entry["frame"]
        if isinstance(frame, dict) and "method" not in frame:
            frame = {**frame, "id": self._ids.get(json.dumps(frame.get("id")), frame.get("id"))}
        write_all(1, encode_frame(frame))

    def _read(self) -> dict[str, Any] | None:
        """The client's next frame; None at the end of its stream."""
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if not newline:
                data = os.read(0, READ_SIZE)
                if not data:
                    return None
                self._buffer += data
                continue
            self._buffer = rest
            if line.strip():
                return _frame(line)


def _frame(line: bytes) -> dict[str, Any]:
    try:
        frame = json.loads(line)
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
