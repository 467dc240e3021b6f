"""What a short-lived agent is asked instead of a turn: the sessions that it has kept, and to forget one.

Owns the requests and how their answers are read; an errand takes the place of the opening of a session.
"""

from __future__ import annotations

from acp_subagent.acp.handshake import Handshake
from acp_subagent.acp.schema import DeleteResult, ListResult, SessionEntry, read
from acp_subagent.errors import UnsupportedCapabilityError
from acp_subagent.seam.request import SessionInfo, SessionRef
from acp_subagent.supervised.conversation import Outcome
from acp_subagent.supervised.ending import End

#: Pages asked for and sessions taken at most: an agent whose list has no end must not hold us.
MAX_PAGES = 1000
MAX_SESSIONS = 10_000


class ListSessions:
    """Gathers the sessions of one working directory."""

    def __init__(self, *, provider: str, cwd: str) -> None:
        self._provider = provider
        self._cwd = cwd
        self._cursor: str | None = None
        self.found: list[SessionInfo] = []

    async def __call__(self, handshake: Handshake) -> Outcome:
        """Ask page by page. Raises `UnsupportedCapabilityError` when the agent has no list."""
        if handshake.agent.sessionCapabilities.list is None:
            raise UnsupportedCapabilityError("session/list")
        outcome = Outcome(end=End.ANSWERED)
        for _ in range(MAX_PAGES):
            params: dict[str, object] = {"cwd": self._cwd}
            if self._cursor is not None:
                params["cursor"] = self._cursor
            outcome = await handshake.ask("session/list", params, self._on_page)
            if outcome.end is not End.ANSWERED or self._cursor is None:
                break
        return outcome

    def _on_page(self, value: object) -> Outcome:
        page = read(ListResult, value)
        if page is None:
            return Outcome(end=End.MALFORMED)
        entries = [entry for entry in (read(SessionEntry, raw) for raw in page.sessions) if entry is not None]
        self.found += [
            SessionInfo(
                ref=SessionRef(self._provider, entry.cwd, entry.sessionId),
                title=entry.title,
                updated_at=entry.updatedAt,
            )
            for entry in entries[: MAX_SESSIONS - len(self.found)]
        ]
        self._cursor = page.nextCursor if len(self.found) < MAX_SESSIONS else None
        return Outcome(end=End.ANSWERED)


class DeleteSession:
    """Lets the agent forget one session."""

    def __init__(self, ref: SessionRef) -> None:
        self._ref = ref

    async def __call__(self, handshake: Handshake) -> Outcome:
        """Ask it to. Raises `UnsupportedCapabilityError` when the agent deletes none."""
        if handshake.agent.sessionCapabilities.delete is None:
            raise UnsupportedCapabilityError("session/delete")
        params: dict[str, object] = {"sessionId": self._ref.token}
        return await handshake.ask("session/delete", params, self._on_deleted)

    def _on_deleted(self, value: object) -> Outcome:
        answer = read(DeleteResult, {} if value is None else value)
        return Outcome(end=End.MALFORMED if answer is None else End.ANSWERED)
