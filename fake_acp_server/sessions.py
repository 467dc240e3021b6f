"""The sessions of one agent process: their ids, turns, history, mode and options. No I/O."""

from __future__ import annotations

from fake_acp_server.template import expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fake_acp_server.job import Job


class Session:
    """One conversation."""

    def __init__(self, session_id: str, cwd: str, history: list[Any]) -> None:
        self.id = session_id
        self.cwd = cwd
        #: Every update that was sent for it, for ``session/load`` to replay.
        self.history = history
        self.turns_started = 0
        #: The prompt that runs, if one does.
        self.turn: Job | None = None
        #: Prompts that wait for it (``second_prompt = "queue"``).
        self.queue: list[Job] = []
        self.modes: dict[str, Any] | None = None
        self.config_options: list[Any] = []

    def info(self) -> dict[str, Any]:
        """The entry in ``session/list``."""
        return {"sessionId": self.id, "cwd": self.cwd}

    def set_option(self, option_id: str, value: Any) -> bool:
        """Change one option; False when there is none with that id."""
        for option in self.config_options:
            if isinstance(option, dict) and option.get("id") == option_id:
                option["currentValue"] = value
                return True
        return False


class Sessions:
    """All sessions that are open, by id; closed ones are remembered for load, resume and list."""

    def __init__(self, id_pattern: str, history: list[Any]) -> None:
        self._id_pattern = id_pattern
        self._history = history
        self._number = 0
        self._newest = "session-0"
        self.open: dict[str, Session] = {}
        self.closed: dict[str, Session] = {}

    def create(self, cwd: str, agent_names: Any) -> Session:
        """A new session with the next id."""
        self._number += 1
        number = self._number
        session_id = expand(self._id_pattern, lambda name: number if name == "number" else agent_names(name))
        return self._add(Session(str(session_id), cwd, list(self._history)))

    def bring_back(self, session_id: str, cwd: str) -> Session:
        """The session of that id: still open, closed earlier, or of another process of the past."""
        known = self.open.get(session_id) or self.closed.pop(session_id, None)
        session = known or Session(session_id, cwd, list(self._history))
        session.cwd = cwd
        return self._add(session)

    def rename(self, session: Session, session_id: str) -> None:
        """The scenario chose another id in its answer."""
        self.open.pop(session.id, None)
        session.id = session_id
        self._add(session)

    def close(self, session_id: str) -> None:
        """Free a session; its history stays for a later load."""
        session = self.open.pop(session_id, None)
        if session:
            self.closed[session_id] = session

    def delete(self, session_id: str) -> None:
        """Forget a session; one that was never there is no mistake."""
        self.open.pop(session_id, None)
        self.closed.pop(session_id, None)

    def listed(self, cwd: str | None) -> list[dict[str, Any]]:
        """The entries of ``session/list``, those of one directory if it is given."""
        known = {**self.closed, **self.open}.values()
        return [session.info() for session in known if cwd is None or session.cwd == cwd]

    def newest_id(self) -> str:
        """The id of the session that was opened last."""
        return self._newest

    def _add(self, session: Session) -> Session:
        self.open[session.id] = session
        self._newest = session.id
        return session
