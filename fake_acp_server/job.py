"""One request of the client while it is being served: its waits, its cancellation, its one answer.

A job runs its steps in a thread of its own, so that the main thread goes on reading. Every wait is a wait on
the agent's one condition, which is told about each frame that changes something. What a step does is in
``steps``.
"""

from __future__ import annotations

import time

from fake_acp_server import protocol
from fake_acp_server.template import expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fake_acp_server.agent import Agent
    from fake_acp_server.sessions import Session

#: How long a cancelled turn waits for the answers that a client owes to open permission requests.
OWED_ANSWER_SECONDS = 2.0

#: How many updates of a session are kept for a later load.
KEPT_UPDATES = 10_000


class CancelledError(Exception):
    """The client cancelled what this job does, and the scenario lets the cancellation through."""


class StepError(Exception):
    """A step of the scenario cannot be done; the text says which and why."""


class Job:
    """A request being served. ``session`` is None where the method names none."""

    def __init__(
        self, agent: Agent, method: str, request_id: Any, params: dict[str, Any], session: Session | None
    ) -> None:
        self.agent = agent
        self.method = method
        self.request_id = request_id
        self.params = params
        self.session = session
        #: The answer is decided (or will never come); the session is free for the next prompt.
        self.answered = False
        #: The answer is written out.
        self.sent = False
        self.cancel_seen = False
        self.cancel_handled = False
        self.request_cancelled = False
        self.messages = 0
        #: Results that steps saved, by name, for ``${name.key}``.
        self.saved: dict[str, Any] = {}

    # What steps use

    def check_cancel(self) -> None:
        """Raise ``CancelledError`` when the job was cancelled and the scenario lets that through."""
        if self.answered or self.cancel_handled:
            return
        if self.request_cancelled or (self.cancel_seen and self.agent.on_cancel != "ignore"):
            raise CancelledError

    def wait(
        self, ready: Callable[[], bool], timeout_seconds: float | None = None, patient: bool = False
    ) -> bool:
        """Wait for ``ready``, at most so long; True when ready. A cancel ends it, unless ``patient``."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        with self.agent.changed:
            while not ready():
                if not patient:
                    self.check_cancel()
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                self.agent.changed.wait(remaining)
        return True

    def wait_for_answer(
        self, request_id: Any, timeout_seconds: float | None = None, patient: bool = True
    ) -> dict[str, Any] | None:
        """The client's answer to a request of ours, or None after the timeout.

        A cancelled job still waits a little, for the client owes the answer, unless it is not ``patient``.
        Once the input has ended no answer can come.
        """
        answer = self.agent.answer_to(request_id)

        def ready() -> bool:
            return answer.frame is not None or self.agent.input_ended

        if patient:
            self.wait(lambda: ready() or self.cancel_seen, timeout_seconds, patient=True)
            if self.cancel_seen and not ready() and self.agent.on_cancel != "ignore":
                self.wait(ready, OWED_ANSWER_SECONDS, patient=True)
        self.wait(ready, timeout_seconds)
        return answer.frame

    def expand(self, value: Any) -> Any:
        """The value with every ``${name}`` in it replaced."""
        return expand(value, self._names)

    def update(self, update: dict[str, Any]) -> None:
        """Send one ``session/update`` for the job's session."""
        self.agent.notify("session/update", {"sessionId": self.session_id, "update": update})
        if self.session and len(self.session.history) < KEPT_UPDATES:
            self.session.history.append(update)

    def answer(self, result: Any) -> None:
        """Answer the request with a result."""
        self._finish({"jsonrpc": "2.0", "id": self.request_id, "result": result})

    def refuse(self, error: dict[str, Any]) -> None:
        """Answer the request with a JSON-RPC error."""
        self._finish({"jsonrpc": "2.0", "id": self.request_id, "error": error})

    def drop(self) -> None:
        """Never answer the request."""
        self._end_turn()
        self._sent()

    @property
    def session_id(self) -> str:
        """The id of the job's session; of the newest one where the job has none."""
        if self.session:
            return self.session.id
        return self.agent.sessions.newest_id()

    def _finish(self, frame: dict[str, Any]) -> None:
        # The turn is over before the answer is out: the client's next prompt may follow it at once.
        self._end_turn()
        self.agent.output.frame(frame)
        self._sent()

    def _sent(self) -> None:
        with self.agent.changed:
            self.sent = True
            self.agent.unsent_turns.discard(self)
            self.agent.changed.notify_all()
            self.agent.start_queued(self.session)

    def _end_turn(self) -> None:
        self.answered = True
        self.agent.job_ended(self)

    def _names(self, name: str) -> Any:
        if name == "request_id":
            return self.request_id
        if name == "session_id":
            return self.session_id
        if name == "cwd":
            return self.session.cwd if self.session else self.agent.cwd
        if name == "turn":
            return self.session.turns_started if self.session else 0
        if name == "prompt":
            return protocol.prompt_text(self.params.get("prompt") or [])
        if name == "method":
            return self.method
        saved, _, key = name.partition(".")
        if saved in self.saved:
            value = self.saved[saved]
            return value.get(key) if key and isinstance(value, dict) else value
        return self.agent.names(name)
