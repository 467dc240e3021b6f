"""What is asked of an agent before its first turn: what its introduction says, and the session.

Owns the requests that open a session and how the answers are read: in the reader, the moment they come, so
that an update right behind one is never misplaced. What they mean is `acp.classify`'s, how long they may take
is supervision's.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_subagent.acp.schema import (
    AgentCapabilities,
    InitializeResult,
    NewSessionResult,
    SessionResult,
    read,
)
from acp_subagent.acp.session import Event, SessionMachine
from acp_subagent.acp.updates import SessionUpdates
from acp_subagent.acp.vocabulary import PROTOCOL_VERSION, Reason
from acp_subagent.errors import UnsupportedCapabilityError
from acp_subagent.seam.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock
from acp_subagent.seam.request import SessionRef
from acp_subagent.supervised.asking import ask
from acp_subagent.supervised.conversation import Link, Outcome
from acp_subagent.supervised.ending import End

#: Answers after which a session that was asked for is known to be out of reach.
_LOST = {End.RPC_ERROR, End.MALFORMED, End.UNACCEPTABLE}


class Handshake:
    """The opening of one conversation over `link`, from the agent's answer to our introduction on."""

    def __init__(self, link: Link, machine: SessionMachine, updates: SessionUpdates, *, cwd: str) -> None:
        self._link = link
        self._machine = machine
        self._updates = updates
        self._cwd = cwd
        self.agent = AgentCapabilities()  #: what the agent says it can do
        self.context_lost = False  #: a new session replaced the one asked for

    def on_initialized(self, value: object) -> Outcome:
        """The agent has introduced itself: learn what it can do."""
        answer = read(InitializeResult, value)
        if answer is None:
            return Outcome(end=End.MALFORMED)
        if answer.protocolVersion != PROTOCOL_VERSION:
            return Outcome(end=End.UNACCEPTABLE, reason=Reason.VERSION_MISMATCH)
        self.agent = answer.agentCapabilities
        self._machine.advance(Event.INITIALIZED)
        return Outcome(end=End.ANSWERED)

    def check_prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Raise `UnsupportedCapabilityError` when the agent did not say that it takes such content."""
        takes = self.agent.promptCapabilities
        for block in blocks:
            if isinstance(block, ImageBlock) and not takes.image:
                raise UnsupportedCapabilityError("image")
            if isinstance(block, AudioBlock) and not takes.audio:
                raise UnsupportedCapabilityError("audio")
            if isinstance(block, ResourceBlock) and not takes.embeddedContext:
                raise UnsupportedCapabilityError("embeddedContext")

    async def open_session(self, wanted: SessionRef | None, *, allow_new: bool) -> Outcome:
        """Open the session that is wanted, or a new one; `allow_new` lets a new one take its place."""
        outcome = None if wanted is None else await self._continue_session(wanted.token)
        if outcome is not None and outcome.end in _LOST and allow_new:
            outcome, self.context_lost = None, True
        if outcome is None:
            params: dict[str, object] = {"cwd": self._cwd, "mcpServers": []}
            outcome = await self.ask("session/new", params, self._on_new_session)
        if outcome.end is End.ANSWERED:
            self._link.timed("new_session")
        return outcome

    async def ask(
        self, method: str, params: dict[str, object], on_result: Callable[[object], Outcome]
    ) -> Outcome:
        """Send a request and wait for its outcome; see `supervised.asking`."""
        return await ask(self._link.connection, method, params, on_result)

    async def _continue_session(self, token: str) -> Outcome:
        """Resume where the agent can (nothing is replayed), else load."""
        if self.agent.sessionCapabilities.resume is not None:
            method = "session/resume"
        elif self.agent.loadSession:
            method = "session/load"
        else:
            return Outcome(end=End.UNACCEPTABLE)
        params: dict[str, object] = {"sessionId": token, "cwd": self._cwd, "mcpServers": []}
        self._updates.begin_replay(token)
        outcome = await self.ask(method, params, lambda value: self._on_continued(token, value))
        self._updates.end_replay()
        return outcome

    def _on_new_session(self, value: object) -> Outcome:
        answer = read(NewSessionResult, value)
        return Outcome(end=End.MALFORMED) if answer is None else self._opened(answer.sessionId)

    def _on_continued(self, token: str, value: object) -> Outcome:
        answer = read(SessionResult, {} if value is None else value)
        return Outcome(end=End.MALFORMED) if answer is None else self._opened(token)

    def _opened(self, session_id: str) -> Outcome:
        self._updates.open_session(session_id)
        self._machine.advance(Event.SESSION_OPENED)
        return Outcome(end=End.ANSWERED)
