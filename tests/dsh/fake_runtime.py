"""A DeepSeek Harness runtime that plays a script, for the faults that the real one does not commit.

Run as a program with one argument, a JSON object or the path of a file with one: `initialize`, `prompt` and
`shutdown` are lists of steps for each request, `log` is a file that gets a line for every frame that came
(and one for the environment), `ignore_eof` and `ignore_term` make it outstay its welcome.
Knows nothing of the library; the standard library is all it needs.

A step is an object with one member:

- `answer`, `error`: answer the request with this result or error (`true` for the usual result)
- `event`: tell this event of the root session; `[session, event]` of another one
- `status`: tell this status of the root session; `[session, status]` of another one
- `notify`: `[method, params]`
- `request`: ask the other side; `[method, params]`
- `text`: a whole message of the agent; `end`: the end of a turn, a kind or a whole reason
- `raw`: write this text as it is, or `{"text": ..., "repeat": ...}`; `stderr`: write this to stderr
- `sleep`: wait so many seconds; `wait`: wait for the end of the process
- `exit`, `signal`: end the process; `close_stdout`, `close_stdin`; `spawn`: leave a child that sleeps

The strings `$session` and `$message` in a step are the ids of the root session and of its prompt's message.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SERVER_INFO = {"serverInfo": {"name": "deepseek-harness-sdk-runtime", "version": "0.0.1"}}
MESSAGE_ID = "message-1"

#: a receipt in the inbox, and that the agent is at work: what comes before the answer to a prompt
RECEIPT: list[dict[str, Any]] = [
    {"event": {"type": "agent/inbox/spliced", "data": {"inserted": [{"id": "$message"}]}}},
    {"status": "running"},
    {"event": {"type": "turn/start", "data": {"turn": 1}}},
    {"answer": True},
]

DEFAULTS: dict[str, list[dict[str, Any]]] = {
    "initialize": [{"answer": True}],
    "prompt": [*RECEIPT, {"text": "done"}, {"end": "completed"}, {"status": "idle"}],
    "shutdown": [{"answer": True}, {"exit": 0}],
}
RESULTS: dict[str, object] = {
    "initialize": SERVER_INFO,
    "prompt": {"messageId": MESSAGE_ID},
    "shutdown": {},
}
METHODS = {"initialize": "initialize", "session/prompt": "prompt", "shutdown": "shutdown"}


class Runtime:
    """One runtime on the pipes of this process."""

    def __init__(self, script: dict[str, Any]) -> None:
        self._script = script
        self._session = ""
        self._writing = threading.Lock()
        self._stdout = os.fdopen(os.dup(1), "wb", buffering=0)
        self._messages = 0
        self._steps: dict[str, Callable[[Any, str, Any], object]] = {
            "answer": self._answer,
            "error": lambda value, _, request: self._send({"id": request, "error": value}),
            "event": lambda value, *_: self._notify_of("session.event", "event", value),
            "status": lambda value, *_: self._notify_of("session.status", "status", value),
            "notify": lambda value, *_: self._send({"method": value[0], "params": value[1]}),
            "request": lambda value, *_: self._send({"id": "r", "method": value[0], "params": value[1]}),
            "text": self._text,
            "end": self._end,
            "raw": self._raw,
            "stderr": lambda value, *_: os.write(2, f"{value}\n".encode()),
            "sleep": lambda value, *_: time.sleep(value),
            "wait": lambda *_: threading.Event().wait(),
            "exit": lambda value, *_: os._exit(value),
            "signal": lambda value, *_: os.kill(os.getpid(), getattr(signal, f"SIG{value}")),
            "close_stdout": self._close_stdout,
            "close_stdin": lambda *_: os.close(0),
            "spawn": self._spawn,
        }

    def serve(self) -> None:
        """Answer requests until stdin ends; the steps of a prompt are played beside it."""
        for line in sys.stdin:
            frame = json.loads(line)
            self._log({"received": frame})
            name = METHODS.get(frame.get("method"))
            if name is None:
                continue
            if name == "prompt":
                self._session = frame["params"]["sessionId"]
                threading.Thread(target=self._play, args=(name, frame["id"]), daemon=True).start()
            else:
                self._play(name, frame["id"])
        if self._script.get("ignore_eof"):
            threading.Event().wait()

    def _play(self, name: str, request: Any) -> None:
        for step in self._script.get(name, DEFAULTS[name]):
            for kind, value in step.items():
                self._steps[kind](self._filled(value), name, request)

    def _filled(self, value: Any) -> Any:
        """The value with the ids of this run in it."""
        known = {"$session": self._session, "$message": MESSAGE_ID}
        if isinstance(value, str):
            return known.get(value, value)
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        return value

    def _answer(self, value: Any, name: str, request: Any) -> None:
        self._send({"id": request, "result": RESULTS[name] if value is True else value})

    def _notify_of(self, method: str, member: str, value: Any) -> None:
        session, what = value if isinstance(value, list) else (self._session, value)
        self._send({"method": method, "params": {"sessionId": session, member: what}})

    def _text(self, value: Any, *_: Any) -> None:
        self._messages += 1
        message = {"id": f"answer-{self._messages}", "content": [{"type": "text", "text": value}]}
        self._notify_of("session.event", "event", {"type": "assistant/message", "data": {"message": message}})

    def _end(self, value: Any, *_: Any) -> None:
        reason = {"kind": value} if isinstance(value, str) else value
        self._notify_of("session.event", "event", {"type": "turn/end", "data": {"reason": reason}})

    def _raw(self, value: Any, *_: Any) -> None:
        text = value if isinstance(value, str) else value["text"] * value["repeat"]
        self._write(text.encode())

    def _close_stdout(self, *_: Any) -> None:
        os.close(1)
        self._stdout.close()

    def _spawn(self, *_: Any) -> None:
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def _send(self, frame: dict[str, Any]) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        with self._writing:
            self._stdout.write(data)

    def _log(self, entry: dict[str, Any]) -> None:
        if path := self._script.get("log"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def main() -> None:
    script = json.loads(sys.argv[1] if sys.argv[1].startswith("{") else Path(sys.argv[1]).read_text())
    if script.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    runtime = Runtime(script)
    runtime._log({"environment": dict(os.environ), "cwd": os.getcwd()})
    runtime.serve()


if __name__ == "__main__":
    main()
