"""A small, plain client for the tests of the fake: blocking pipes, a bound on every wait, each frame judged.

It owns one process of the fake and ends it, whatever the test did. Of the fake it uses only the command line.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.wire_schema import AGENT, CLIENT, FrameChecker

REPOSITORY = Path(__file__).resolve().parents[2]

#: No wait of a test is longer than this.
BOUND_SECONDS = 20.0


def fake_command(*arguments: str) -> list[str]:
    """The argv of the fake."""
    return [sys.executable, "-m", "fake_acp_server", *arguments]


class Fake:
    """A running fake and the conversation with it. ``scenario``: its data, its name, or a whole command."""

    def __init__(
        self,
        scenario: dict[str, Any] | str | list[str],
        checker: FrameChecker | None = None,
        environment: dict[str, str] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        # A file takes all that comes, as a client that drains its pipe does.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        if isinstance(scenario, list):
            command = scenario
        elif isinstance(scenario, str):
            command = fake_command("--scenario", scenario, *arguments)
        else:
            command = fake_command("--json", json.dumps(scenario), *arguments)
        self.process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
        )
        self._checker = checker
        self._buffer = b""
        self._id = 0
        self.seen: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(BOUND_SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            if stream:
                stream.close()

    # Writing

    def write(self, data: bytes) -> None:
        """Write bytes to the fake's stdin."""
        assert self.process.stdin
        while data:
            data = data[self.process.stdin.write(data) :]

    def send(self, frame: dict[str, Any]) -> None:
        """Send one frame, judged first if a checker was given."""
        frame = {"jsonrpc": "2.0", **frame}
        if self._checker:
            self._checker.check(CLIENT, frame)
        self.write(json.dumps(frame).encode() + b"\n")

    def request(self, method: str, params: dict[str, Any]) -> int:
        """Send a request; returns its id."""
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        return self._id

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    def answer(self, request: dict[str, Any], result: Any) -> None:
        """Answer a request of the fake."""
        self.send({"id": request["id"], "result": result})

    def select_option(self, request: dict[str, Any], option_id: str) -> None:
        """Answer a permission request with an option."""
        self.answer(request, {"outcome": {"outcome": "selected", "optionId": option_id}})

    # Reading

    def read_bytes(self) -> bytes:
        """What the fake wrote next; ``b""`` at the end of its stdout."""
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], BOUND_SECONDS)
        assert ready, "the fake wrote nothing in time"
        return os.read(self.process.stdout.fileno(), 65536)

    def read_line(self) -> bytes:
        """The next line of stdout, without its newline; ``EOFError`` at the end."""
        while b"\n" not in self._buffer:
            data = self.read_bytes()
            if not data:
                raise EOFError(self._buffer)
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def read(self) -> dict[str, Any]:
        """The next frame, judged if a checker was given."""
        frame: dict[str, Any] = json.loads(self.read_line())
        if self._checker:
            self._checker.check(AGENT, frame)
        self.seen.append(frame)
        return frame

    def judge(self, frame: dict[str, Any]) -> None:
        """Judge a frame that was read in another way."""
        if self._checker:
            self._checker.check(AGENT, frame)

    def read_until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read frames until one is wanted, and return that."""
        while True:
            frame = self.read()
            if wanted(frame):
                return frame

    def read_answer(self, request_id: Any) -> dict[str, Any]:
        """Read frames until the answer to a request of ours."""
        return self.read_until(lambda frame: "method" not in frame and frame.get("id") == request_id)

    def read_request(self, method: str = "session/request_permission") -> dict[str, Any]:
        """Read frames until a request of the fake."""
        return self.read_until(lambda frame: frame.get("method") == method and "id" in frame)

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and read until its answer."""
        return self.read_answer(self.request(method, params))

    # Conversations

    def open_session(self, capabilities: dict[str, Any] | None = None, cwd: str = "/srv/demo") -> str:
        """initialize and session/new; returns the session's id."""
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities or {}})
        session_id: str = self.call("session/new", {"cwd": cwd, "mcpServers": []})["result"]["sessionId"]
        return session_id

    def prompt(self, session_id: str, text: str = "hello") -> int:
        """Send a prompt; returns the request's id."""
        return self.request(
            "session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}
        )

    def updates(self, kind: str) -> list[dict[str, Any]]:
        """The updates of one kind that were read so far."""
        updates = [
            frame["params"]["update"] for frame in self.seen if frame.get("method") == "session/update"
        ]
        return [update for update in updates if update["sessionUpdate"] == kind]

    def text(self) -> str:
        """The answer texts that were read so far."""
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk"))

    # The process

    def close_stdin(self) -> None:
        """Close the fake's stdin."""
        assert self.process.stdin
        self.process.stdin.close()

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        return self.process.wait(BOUND_SECONDS)

    def stderr(self) -> bytes:
        """Everything the fake wrote to stderr; waits for its end."""
        self.exit_code()
        self._stderr.seek(0)
        return self._stderr.read()


class LifeSocket:
    """A listening Unix socket: whoever connects is alive until the kernel says the connection ended."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "life")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._listener.settimeout(BOUND_SECONDS)
        self._connections: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, str]:
        """The next connection and the first line said on it."""
        connection, _ = self._listener.accept()
        connection.settimeout(BOUND_SECONDS)
        self._connections.append(connection)
        return connection, connection.recv(200).decode().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in (self._listener, *self._connections):
            connection.close()


def kill_pid(pid: int) -> None:
    """Kill a process that a test let the fake leave behind."""
    os.kill(pid, signal.SIGKILL)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition that no event announces holds; fails after the bound."""
    deadline = time.monotonic() + BOUND_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)
