"""A client without judgement: it goes through one conversation with a fake and says in one phrase how it
ended.

``initialize: exit 3``, ``prompt: end_turn``, ``prompt: silent`` and the like. It survives every fault there
is.
"""

from __future__ import annotations

import json
import os
import select
from typing import Any

from tests.fake.driver import BOUND_SECONDS, Fake

#: How long nothing must come from a fake that is expected to fall silent.
SILENCE_SECONDS = 0.4

#: What this client serves, whatever it advertised.
SERVED: dict[str, Any] = {
    "fs/read_text_file": {"content": "the notes"},
    "fs/write_text_file": {},
    "terminal/create": {"terminalId": "t-1"},
    "terminal/wait_for_exit": {"exitCode": 0},
    "terminal/output": {"output": "hello\n", "truncated": False},
    "terminal/release": {},
    "elicitation/create": {"action": "accept", "content": {"branch": "dev"}},
}

CAPABILITIES = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}


class EndedError(Exception):
    """The conversation cannot go on; the text is how it ended."""


class Visit:
    """One conversation.

    ``cancel_at_text``: cancel as soon as the turn has said something. ``ends``: the end that is expected;
    where that is silence, it is not waited for longer than it takes to be sure.
    """

    def __init__(self, fake: Fake, cancel_at_text: bool = False, allow: bool = True, ends: str = "") -> None:
        self.fake = fake
        self._ends = ends
        self._stage = "initialize"
        self.cancel_at_text = cancel_at_text
        self.allow = allow
        self._texts: list[str] = []
        self.noise = 0
        self._buffer = b""

    @property
    def answer(self) -> str:
        """All answer texts so far."""
        return "".join(self._texts)

    def run(self, prompts: int = 1) -> str:
        """Open a session, send the prompts one after the other; the phrase for how it ended."""
        try:
            self._result(
                self.fake.request("initialize", {"protocolVersion": 1, "clientCapabilities": CAPABILITIES})
            )
            self._stage = "new"
            new = self._result(self.fake.request("session/new", {"cwd": "/srv", "mcpServers": []}))
            session_id = new.get("sessionId")
            if not isinstance(session_id, str):
                return "new: malformed"
            self._stage = "prompt"
            reason = ""
            for _ in range(prompts):
                reason = str(self._result(self.fake.prompt(session_id), session_id).get("stopReason"))
        except EndedError as end:
            return f"{self._stage}: {end}"
        except (BrokenPipeError, ConnectionResetError):
            return f"{self._stage}: {self._exit()}"
        return f"{self._stage}: {reason}"

    def _result(self, request_id: int, session_id: str | None = None) -> dict[str, Any]:
        while True:
            frame = self._frame()
            if "method" in frame:
                self._serve(frame, session_id)
            elif frame.get("id") == request_id and not isinstance(frame["id"], bool):
                if "error" in frame and "result" not in frame:
                    raise EndedError(f"error {frame['error']['code']}")
                if not isinstance(frame.get("result"), dict) or "error" in frame:
                    raise EndedError("malformed")
                return dict(frame["result"])

    def _serve(self, frame: dict[str, Any], session_id: str | None) -> None:
        method, params = frame["method"], frame.get("params") or {}
        if "id" not in frame:
            update = params.get("update") or {}
            if update.get("sessionUpdate") == "agent_message_chunk":
                self._texts.append(update["content"].get("text", ""))
                if self.cancel_at_text and session_id:
                    self.cancel_at_text = False
                    self.fake.notify("session/cancel", {"sessionId": session_id})
        elif method == "session/request_permission":
            self.fake.answer(frame, {"outcome": self._decision(params["options"])})
        elif method in SERVED:
            self.fake.answer(frame, SERVED[method])
        else:
            self.fake.send({"id": frame["id"], "error": {"code": -32601, "message": "Method not found"}})

    def _decision(self, options: list[dict[str, Any]]) -> dict[str, Any]:
        wanted = "allow_once" if self.allow else "reject_once"
        for option in options:
            if option["kind"] == wanted:
                return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}

    def _frame(self) -> dict[str, Any]:
        while True:
            line = self._line()
            try:
                frame = json.loads(line.decode("utf-8", "replace"))
            except ValueError:
                self.noise += 1
                continue
            if not isinstance(frame, dict) or not ("method" in frame or "id" in frame):
                self.noise += 1
                continue
            self.fake.judge(frame)
            return frame

    def _line(self) -> bytes:
        pieces = [self._buffer]
        while b"\n" not in pieces[-1]:
            piece = self._read()
            if not piece:
                if any(pieces):
                    self._buffer = b""
                    return b"".join(pieces)
                raise EndedError(self._exit())
            pieces.append(piece)
            if len(pieces) > 1000 and sum(map(len, pieces)) > 64 << 20:
                raise EndedError("huge")
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line

    def _read(self) -> bytes:
        assert self.fake.process.stdout
        is_quiet = self._ends == f"{self._stage}: silent" and not self.cancel_at_text
        patience_seconds = SILENCE_SECONDS if is_quiet else BOUND_SECONDS
        ready, _, _ = select.select([self.fake.process.stdout], [], [], patience_seconds)
        if not ready:
            raise EndedError("silent")
        return os.read(self.fake.process.stdout.fileno(), 1 << 16)

    def _exit(self) -> str:
        try:
            code = self.fake.process.wait(SILENCE_SECONDS if "closed" in self._ends else BOUND_SECONDS)
        except Exception:  # noqa: BLE001  # subprocess.TimeoutExpired: it closed its stdout and lives
            return "closed"
        return f"exit {code}" if code >= 0 else f"signal {-code}"


def leave(fake: Fake) -> int:
    """Close the fake's stdin and wait for its end."""
    fake.close_stdin()
    return fake.process.wait(BOUND_SECONDS)
