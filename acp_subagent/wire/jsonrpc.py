"""Lines to JSON-RPC 2.0 messages and back: one peer, where both sides may ask.

Owns our request ids, the requests that wait for an answer, the counters and the noise samples. Promises: the
receiver is called in wire order; every request of ours gets exactly one `Answer`; no line of the other side
raises, whatever is in it. Leaves to others: bytes to lines (`frames`), reading and writing (`connection`),
answering the requests that the receiver was given. No I/O.

The only file that knows jsonrpcclient, whose traps are met here: its id counter is global (ids are given), it
drops empty params (they are put back), and its parser takes only well-formed responses (classified first).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeGuard

import jsonrpcclient
from pydantic_core import from_json, to_json

from acp_subagent.wire.frames import Line

INVALID_REQUEST = -32600
"""The message is no request: its method is not a string."""

METHOD_NOT_FOUND = -32601
"""There is no such method here."""

INVALID_PARAMS = -32602
"""The params of the request are not an object."""

NOISE_SAMPLES = 20
"""How many of the latest noise lines are kept."""

NOISE_SAMPLE_BYTES = 200
"""How much of each noise line is kept."""

RequestId: TypeAlias = int | str | None
"""An id chosen by the other side, echoed with value and type. 0 is an id, booleans and fractions are none."""

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


@dataclass(slots=True)
class Result:
    """The other side answered with a result; null is one too."""

    value: object = field(repr=False)
    """What it answered, as parsed. Foreign data: kept out of the repr."""


@dataclass(slots=True)
class RpcError:
    """The other side answered with a JSON-RPC error. Its repr shows only the code."""

    code: int
    """The error's code; any integer."""

    message: str = field(repr=False)
    """Foreign text, empty when there was none; for the host only."""

    data: object = field(repr=False)
    """Foreign data, None when there was none; for the host only."""


@dataclass(slots=True)
class Malformed:
    """An answer to our id came that is neither a result nor an error."""


@dataclass(slots=True)
class NoAnswer:
    """The conversation ended before an answer came."""


Answer: TypeAlias = Result | RpcError | Malformed | NoAnswer
"""How a request of ours ended."""

OnAnswer: TypeAlias = Callable[[Answer], None]
"""Called once, synchronously and in wire order; must neither block nor raise."""


class Receiver(Protocol):
    """What the other side asks and tells goes here: synchronously, in wire order. Must not block or raise."""

    def on_request(self, id: RequestId, method: str, params: dict[str, object]) -> None:
        """A request came; the receiver owes exactly one answer to this id."""

    def on_notification(self, method: str, params: dict[str, object]) -> None:
        """A notification came; it is never answered."""


@dataclass(slots=True)
class Counters:
    """What was seen on the wire so far."""

    frames: int = 0
    """Lines that were JSON-RPC messages."""

    repaired_frames: int = 0
    """Those of them that were no strict JSON: broken UTF-8, lone surrogates, very deep nesting."""

    noise_lines: int = 0
    """Lines that were none: text, scalars, arrays, objects that are no message."""

    dropped_responses: int = 0
    """Answers to an id that is unknown, or whose request had ended before."""


@dataclass(slots=True)
class Outgoing:
    """A request of ours, ready to be sent."""

    id: int
    """Ours; what `abandon` takes."""

    frame: bytes = field(repr=False)
    """The encoded line, newline included."""


class Peer:
    """One side of a JSON-RPC conversation; see the module's docstring."""

    def __init__(self, receiver: Receiver, *, max_noise_lines: int) -> None:
        """`max_noise_lines` is how many noise lines may come before the first valid frame."""
        self._receiver = receiver
        self._max_noise_lines = max_noise_lines
        self._pending: dict[int, OnAnswer] = {}
        self._next_id = 0
        self._closed = False
        self.counters = Counters()
        """What was seen so far; updated in place."""
        self.noise_samples: list[bytes] = []
        """The beginnings of the latest noise lines. Foreign data, for the host only."""
        self.never_spoke = False
        """The noise limit was passed before the first valid frame; everything after it is ignored."""
        self.outbox: list[bytes] = []
        """Frames that the peer itself answers invalid requests with; the caller sends and clears them."""

    @property
    def spoken(self) -> bool:
        """A valid frame was seen."""
        return self.counters.frames > 0

    def request(self, method: str, params: dict[str, object], on_answer: OnAnswer) -> Outgoing:
        """Register a request and encode it. After `close`, `on_answer` gets `NoAnswer` before this returns.

        Raises ValueError or TypeError when `params` is not JSON; then nothing was registered.
        """
        request_id = self._next_id
        message = jsonrpcclient.request(method, id=request_id)
        message["params"] = params
        outgoing = Outgoing(request_id, encode(message))
        self._next_id += 1
        if self._closed:
            on_answer(NoAnswer())
        else:
            self._pending[request_id] = on_answer
        return outgoing

    def notification(self, method: str, params: dict[str, object]) -> bytes:
        """Encode a notification. Raises ValueError or TypeError when `params` is not JSON."""
        message = jsonrpcclient.notification(method)
        message["params"] = params
        return encode(message)

    def result(self, id: RequestId, value: object) -> bytes:
        """Encode the result of a request that came. Raises ValueError or TypeError when it is not JSON."""
        return encode({"jsonrpc": "2.0", "id": id, "result": value})

    def error(self, id: RequestId, code: int, message: str) -> bytes:
        """Encode an error as the answer to a request that came."""
        return encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def abandon(self, id: int) -> None:
        """Forget a request: its `on_answer` is never called, a late answer is dropped and counted."""
        self._pending.pop(id, None)

    def feed(self, lines: Sequence[Line]) -> None:
        """Handle lines in order. Only a callback's exception comes out; the lines after it are lost then."""
        if self.never_spoke:
            return
        counters = self.counters
        on_notification, on_request = self._receiver.on_notification, self._receiver.on_request
        for line in lines:
            try:
                message = from_json(line)
            except ValueError:
                message = self._repaired(line)
            try:
                method, params = message["method"], message["params"]
            except (KeyError, TypeError):
                method = params = None  # an answer, a call without params, or no object at all
            # What the other side usually sends takes the short way; `_handle` knows all of it.
            if type(method) is str and type(params) is dict:
                if "id" not in message:
                    counters.frames += 1
                    on_notification(method, params)
                    continue
                if _usable(message["id"]):
                    counters.frames += 1
                    on_request(message["id"], method, params)
                    continue
            if type(message) is dict and self._handle(message):
                continue
            self._note_noise(line)
            if self.never_spoke:
                return

    def close(self) -> None:
        """The conversation is over: every request that waits gets `NoAnswer`, also when a callback raises.

        The first exception of a callback comes out when all have been told. Idempotent.
        """
        self._closed = True
        waiting = list(self._pending.values())
        self._pending.clear()
        raised: Exception | None = None
        for on_answer in waiting:
            try:
                on_answer(NoAnswer())
            except Exception as error:  # noqa: BLE001 - the others must still be told
                raised = raised or error
        if raised is not None:
            raise raised

    def _handle(self, message: dict[str, object]) -> bool:
        """Handle any message; False when it is none."""
        if "method" in message:
            return self._handle_call(message)
        return self._handle_answer(message)

    def _handle_call(self, message: dict[str, object]) -> bool:
        is_request = "id" in message
        request_id = message.get("id")
        method = message["method"]
        params = message.get("params")
        if params is None:
            params = {}
        if not _usable(request_id):
            return False
        if isinstance(method, str) and isinstance(params, dict):
            self.counters.frames += 1
            if is_request:
                self._receiver.on_request(request_id, method, params)
            else:
                self._receiver.on_notification(method, params)
            return True
        if not is_request:
            return False
        self.counters.frames += 1
        if isinstance(method, str):
            self.outbox.append(self.error(request_id, INVALID_PARAMS, "params must be an object"))
        else:
            self.outbox.append(self.error(request_id, INVALID_REQUEST, "method must be a string"))
        return True

    def _handle_answer(self, message: dict[str, object]) -> bool:
        answered_id = message.get("id")
        # True and 1.0 would find the request 1 in a dict.
        on_answer = self._pending.pop(answered_id, None) if type(answered_id) is int else None
        if on_answer is not None:
            self.counters.frames += 1
            on_answer(classified(message))
            return True
        if "jsonrpc" not in message:
            # Programs that log JSON lines have members named `id` and `error` too.
            return False
        self.counters.frames += 1
        self.counters.dropped_responses += 1
        return True

    def _repaired(self, line: Line) -> dict[str, object] | None:
        message = repaired(line)
        if message is not None:
            self.counters.repaired_frames += 1
        return message

    def _note_noise(self, line: Line) -> None:
        if not line.strip():
            return
        self.counters.noise_lines += 1
        self.noise_samples.append(bytes(line[:NOISE_SAMPLE_BYTES]))
        del self.noise_samples[:-NOISE_SAMPLES]
        if not self.spoken and self.counters.noise_lines > self._max_noise_lines:
            self.never_spoke = True


def classified(message: dict[str, object]) -> Answer:
    """What a response says; `Malformed` unless it has exactly one of a result and an error with a code."""
    if ("result" in message) == ("error" in message):
        return Malformed()
    if "error" in message:
        error = message["error"]
        if not isinstance(error, dict) or type(error.get("code")) is not int:
            return Malformed()
        text = error.get("message")
        # The text is for the host alone: one that is missing spoils nothing.
        message = {**message, "error": {**error, "message": text if isinstance(text, str) else ""}}
    parsed = jsonrpcclient.parse(message)
    if isinstance(parsed, jsonrpcclient.Ok):
        return Result(parsed.result)
    if isinstance(parsed, jsonrpcclient.Error):
        return RpcError(parsed.code, parsed.message, parsed.data)
    return Malformed()


def repaired(line: Line) -> dict[str, object] | None:
    """A second, more patient look at a line that is no strict JSON; None when it is noise.

    Broken UTF-8 and lone surrogates become U+FFFD.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    text = line.decode("utf-8", errors="replace")
    try:
        message = json.loads(text)
        if "\\u" in text:
            # Surrogates can only come from escapes; written out and read once more they are all in one text.
            written = json.dumps(message, ensure_ascii=False)
            message = json.loads(_LONE_SURROGATES.sub(_REPLACEMENT, written))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def encode(message: dict[str, object]) -> bytes:
    """One line of JSON with its newline; lone surrogates become U+FFFD.

    Raises ValueError when there is a NaN or an infinity in it, TypeError when something is no JSON.
    """
    try:
        encoded = to_json(message)
    except ValueError:
        encoded = None  # lone surrogates; or no JSON, and then the next one raises too
    # `find`: `in` costs several times as much, it first tries to take the needle for a number.
    if encoded is None or encoded.find(b"NaN") >= 0 or encoded.find(b"Infinity") >= 0:
        # The fast encoder writes these as they are; the strict one tells a number from a text.
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        encoded = _LONE_SURROGATES.sub(_REPLACEMENT, text).encode()
    return encoded + b"\n"


def _usable(candidate: object) -> TypeGuard[RequestId]:
    return candidate is None or type(candidate) is int or type(candidate) is str
