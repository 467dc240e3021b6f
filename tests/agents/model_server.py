"""A model server on loopback that says what a test tells it to: OpenAI-style streamed chat completions.

It owns one listening socket on 127.0.0.1 and the threads that answer on it; leaving the ``with`` block ends
them all, also those in the middle of an answer. Each chat completion takes the next reply of the script; one
more than the script has is answered with HTTP 500 and kept in ``unscripted``, so that a test can see it. It
checks no key and judges no request: what was asked is in ``requests``.
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

#: How long the answering threads may take to end once the block is left.
CLOSE_TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Answer:
    """An answer in pieces, each of them streamed as a chunk of its own."""

    pieces: tuple[str, ...]
    #: ``stop``, or ``length`` for an answer that the token limit cut off.
    finish_reason: str = "stop"


@dataclass(frozen=True)
class CallTool:
    """The model asks for one call of a tool that the agent offered."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    call_id: str = "call_1"


@dataclass(frozen=True)
class Endless:
    """The first words of an answer that never goes on: the stream stays open until the agent hangs up."""

    first_words: str


@dataclass(frozen=True)
class HttpFailure:
    """The request is refused with this status."""

    status: int = 500


Reply = Answer | CallTool | Endless | HttpFailure


class ModelServer:
    """``with ModelServer([Answer(("hello",))]) as server:`` serves at ``server.url`` until the block ends."""

    def __init__(self, script: Iterable[Reply]) -> None:
        #: The body of every chat completion that was asked for, in order of arrival.
        self.requests: list[dict[str, Any]] = []
        #: Those for which the script had no reply.
        self.unscripted: list[dict[str, Any]] = []
        #: Set when the first words of an ``Endless`` answer are on their way.
        self.streaming = threading.Event()
        #: Set when an agent hung up on an ``Endless`` answer.
        self.hung_up = threading.Event()
        self._script = deque(script)
        self._turn = threading.Lock()
        # A byte that is never read: every wait of an answering thread ends when it is there.
        self._closing, self._close = socket.socketpair()
        self._http = _HttpServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="model server")

    @property
    def url(self) -> str:
        """Where it listens, without a path; clients may put ``/v1`` behind it or not."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close.send(b"!")
        self._http.shutdown()
        self._http.server_close()  # joins the answering threads
        self._thread.join(CLOSE_TIMEOUT_SECONDS)
        self._closing.close()
        self._close.close()

    def take_reply(self, request: dict[str, Any]) -> Reply:
        """The next reply of the script; the request is recorded."""
        with self._turn:
            self.requests.append(request)
            if self._script:
                return self._script.popleft()
            self.unscripted.append(request)
            return HttpFailure()

    def sees_hang_up(self) -> bool:
        """Whether an agent has hung up on an ``Endless`` answer, which a thread may see only in a moment."""
        return self.hung_up.wait(CLOSE_TIMEOUT_SECONDS)

    def wait_for_hang_up(self, client: socket.socket) -> None:
        """Return when the client has closed its end, or when the server is being closed."""
        ready, _, _ = select.select([client, self._closing], [], [])
        if self._closing not in ready:
            self.hung_up.set()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: an agent that hangs up in the middle is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _HttpServer

    def do_GET(self) -> None:
        """The list of models, wherever the client looks for it."""
        if self.path.rstrip("/").endswith("/models"):
            self._send_json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self._send_json(404, {"error": {"message": "not found", "type": "invalid_request_error"}})

    def do_POST(self) -> None:
        """A chat completion, streamed or whole as the request wants it."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.path.rstrip("/").endswith("/chat/completions"):
            self._send_json(404, {"error": {"message": "not found", "type": "invalid_request_error"}})
            return
        request = json.loads(body)
        reply = self.server.model.take_reply(request)
        if isinstance(reply, HttpFailure):
            self._send_json(reply.status, {"error": {"message": "scripted failure", "type": "server_error"}})
        elif request.get("stream"):
            self._stream(reply, str(request.get("model")))
        else:
            self._send_json(200, _whole(reply, str(request.get("model"))))

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the tests' output free of access lines."""

    def _send_json(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, reply: Answer | CallTool | Endless, model: str) -> None:
        # HTTP/1.0 without a length: the end of the connection is the end of the stream.
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        for delta, finish_reason in _deltas(reply):
            self._send_event(_chunk(model, delta, finish_reason))
        if isinstance(reply, Endless):
            self.server.model.streaming.set()
            self.server.model.wait_for_hang_up(self.connection)
            return
        self._send_event(_chunk(model, None, None) | {"usage": _USAGE})
        self.wfile.write(b"data: [DONE]\n\n")

    def _send_event(self, content: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")
        self.wfile.flush()


_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _deltas(reply: Answer | CallTool | Endless) -> Iterator[tuple[dict[str, Any], str | None]]:
    """What is streamed for a reply: one delta a chunk, and with the last one why it ended."""
    yield {"role": "assistant", "content": ""}, None
    match reply:
        case Answer(pieces, finish_reason):
            for piece in pieces:
                yield {"content": piece}, None
            yield {}, finish_reason
        case CallTool():
            yield {"tool_calls": [{"index": 0, **_tool_call(reply)}]}, None
            yield {}, "tool_calls"
        case Endless(first_words):
            yield {"content": first_words}, None


def _tool_call(reply: CallTool) -> dict[str, Any]:
    function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
    return {"id": reply.call_id, "type": "function", "function": function}


def _chunk(model: str, delta: dict[str, Any] | None, finish_reason: str | None) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return {
        "id": "scripted-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
        "choices": choices,
    }


def _whole(reply: Answer | CallTool | Endless, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    finish_reason = "stop"
    match reply:
        case Answer(pieces, finish_reason):
            message["content"] = "".join(pieces)
        case CallTool():
            message["tool_calls"] = [_tool_call(reply)]
            finish_reason = "tool_calls"
        case Endless(first_words):
            message["content"] = first_words
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {
        "id": "scripted-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": _USAGE,
    }
