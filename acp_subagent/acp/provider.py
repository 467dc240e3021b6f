"""The ACP provider: from a request to a ready run.

Owns the resolution of working directory, command, environment, policy and deadlines, all of it before
anything is spawned, and the wiring of conversation, turn and chain. From there on supervision runs the
child.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from acp_subagent.acp.config import AcpConfig
from acp_subagent.acp.conversation import AcpConversation, AcpSettings
from acp_subagent.errors import ConfigurationError
from acp_subagent.process.launch import LaunchSpec
from acp_subagent.seam.content import ContentBlock
from acp_subagent.seam.request import (
    Deadlines,
    Parent,
    SessionInfo,
    SessionRef,
    SubagentCapabilities,
    SubagentRequest,
)
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.chain import Chain
from acp_subagent.supervised.claims import SessionClaims
from acp_subagent.supervised.preparation import (
    chain_settings,
    checked_launch,
    effective_deadlines,
    startup_end,
    turn_settings,
    working_directory,
)
from acp_subagent.supervised.run import ResumableRun
from acp_subagent.supervised.settings import ChainSettings, TurnSettings
from acp_subagent.supervised.turn import Turn

if TYPE_CHECKING:
    from acp_subagent.acp.handshake import Handshake
    from acp_subagent.supervised.conversation import Outcome

_CAPABILITIES = SubagentCapabilities(
    sessions=True,
    deadlines=frozenset(
        {"startup_seconds", "turn_seconds", "idle_seconds", "tool_idle_seconds", "permission_seconds"}
    ),
)


class AcpProvider:
    """Runs an agent that speaks the Agent Client Protocol as a child process."""

    inherits_parent_context = False  #: a fresh child knows nothing of what its parent has seen

    def __init__(self, config: AcpConfig) -> None:
        """Raises `ConfigurationError` when the configuration cannot be used on this machine."""
        config.check()
        self.config = config
        self._claims = SessionClaims()

    def __repr__(self) -> str:
        return "<AcpProvider>"

    @property
    def name(self) -> str:
        """The name under which it is registered."""
        return self.config.name

    @property
    def capabilities(self) -> SubagentCapabilities:
        """Which optional fields of a request it honours."""
        return _CAPABILITIES

    async def start(self, request: SubagentRequest, context: StartContext) -> ResumableRun:
        """Bring a run to the point where its prompt can be sent; see `seam.run.SubagentProvider`."""
        limits = effective_deadlines(self.config, request.deadlines)
        ends_at = startup_end(limits)
        cwd = working_directory(self.config, request.parent)
        conversation = AcpConversation(
            self._settings(cwd, limits, request.session, allow_new_session=request.allow_new_session),
            request.blocks,
        )
        launch = self._checked_launch(cwd, request.session, conversation, context)

        def next_turn(blocks: tuple[ContentBlock, ...], abort: trio.Event | None) -> Turn:
            turn = Turn(conversation, blocks, self._turn_settings(limits), abort=abort)
            self._claim(conversation.session, turn, continued=conversation.session == request.session)
            return turn

        turn = Turn(conversation, request.blocks, self._turn_settings(limits), abort=request.abort)
        chain = Chain(
            launch=launch,
            conversation=conversation,
            first_turn=turn,
            context=context,
            settings=self._chain_settings(limits, ends_at),
        )
        run = ResumableRun(chain, turn, owner=True, next_turn=next_turn, announce=context.announce)
        self._claims.claim(request.session, continued=True)
        try:
            await chain.start()
        finally:
            self._claims.release(request.session)
        # No checkpoint since the run got ready: nobody came in between.
        self._claim(conversation.session, turn, continued=False)
        return run

    async def list_sessions(self, parent: Parent, context: StartContext) -> tuple[SessionInfo, ...]:
        """The sessions that the agent has kept; see `seam.run.SupportsStoredSessions`."""
        from acp_subagent.acp.errands import ListSessions  # noqa: PLC0415  few programs need it

        cwd = working_directory(self.config, parent)
        errand = ListSessions(provider=self.name, cwd=cwd or "")
        await self._do_errand(errand, cwd, None, context)
        return tuple(errand.found)

    async def delete_session(self, ref: SessionRef, context: StartContext) -> None:
        """Let the agent forget a session; see `seam.run.SupportsStoredSessions`."""
        from acp_subagent.acp.errands import DeleteSession  # noqa: PLC0415  few programs need it

        cwd = working_directory(self.config, Parent(cwd=ref.cwd))
        await self._do_errand(DeleteSession(ref), cwd, ref, context)

    async def _do_errand(
        self,
        errand: Callable[[Handshake], Awaitable[Outcome]],
        cwd: str | None,
        session: SessionRef | None,
        context: StartContext,
    ) -> None:
        limits = effective_deadlines(self.config, Deadlines())
        ends_at = startup_end(limits)
        conversation = AcpConversation(self._settings(cwd, limits), errand=errand)
        launch = self._checked_launch(cwd, session, conversation, context)
        chain = Chain(
            launch=launch,
            conversation=conversation,
            first_turn=Turn(conversation, (), self._turn_settings(limits)),
            context=context,
            settings=self._chain_settings(limits, ends_at),
        )
        await chain.do_errand()

    def _claim(self, session: SessionRef | None, turn: Turn, *, continued: bool) -> None:
        """Let `turn` be the one that the session has until it settles."""
        self._claims.claim(session, continued=continued)
        turn.when_settled(lambda _: self._claims.release(session))

    # -- resolution: nothing is spawned here

    def _checked_launch(
        self,
        cwd: str | None,
        session: SessionRef | None,
        conversation: AcpConversation,
        context: StartContext,
    ) -> LaunchSpec:
        """How the agent is launched; raises `SubagentStartError` when it cannot be, and tells the host."""
        fault = None
        if session is not None and (session.provider != self.config.name or session.cwd != cwd):
            fault = ConfigurationError("The session belongs to another provider or working directory.")
        return checked_launch(self.config, cwd, conversation, context, fault=fault)

    def _settings(
        self,
        cwd: str | None,
        limits: Deadlines,
        session: SessionRef | None = None,
        *,
        allow_new_session: bool = False,
    ) -> AcpSettings:
        config = self.config
        return AcpSettings(
            provider=config.name,
            cwd=cwd or "",
            policy=config.permission,
            handler=config.permission_handler,
            permission_timeout_seconds=limits.permission_seconds,
            close_grace_seconds=config.close_grace_seconds,
            max_output_bytes=config.max_output_bytes,
            max_early_updates=config.max_early_updates,
            max_open_requests=config.max_open_requests,
            session=session,
            allow_new_session=allow_new_session,
        )

    def _chain_settings(self, limits: Deadlines, ends_at: float) -> ChainSettings:
        return chain_settings(self.config, self._turn_settings(limits), startup_ends_at=ends_at)

    def _turn_settings(self, limits: Deadlines) -> TurnSettings:
        grace = self.config.cancel_grace_seconds
        return turn_settings(self.config, limits, cancel_grace_seconds=grace)
