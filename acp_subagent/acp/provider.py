"""The ACP provider: from a request to a ready run.

Owns the resolution of working directory, command, environment, policy and deadlines, all of it before
anything is spawned, and the wiring of conversation, turn and chain. From there on supervision runs the
child.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from math import inf

import trio

from acp_subagent.acp.config import CWD_SENTENCES, AcpConfig
from acp_subagent.acp.conversation import AcpConversation, AcpSettings
from acp_subagent.acp.errands import DeleteSession, ListSessions
from acp_subagent.acp.handshake import Handshake
from acp_subagent.errors import ConfigurationError, SpawnError, SubagentStartError
from acp_subagent.process.environment import scrubbed_environment
from acp_subagent.process.launch import LaunchSpec, check_launch, resolve_command, working_directory_fault
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
from acp_subagent.supervised.clock import TurnLimits
from acp_subagent.supervised.conversation import Outcome
from acp_subagent.supervised.ending import End
from acp_subagent.supervised.reporting import describe, start_error
from acp_subagent.supervised.run import ResumableRun
from acp_subagent.supervised.settings import ChainSettings, TurnSettings
from acp_subagent.supervised.turn import Turn
from acp_subagent.wire.connection import WireLimits

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
        limits = effective(self.config, request.deadlines)
        ends_at = _ends_at(limits)
        cwd = self._working_directory(request.parent)
        conversation = AcpConversation(
            self._settings(cwd, limits, request.session, allow_new_session=request.allow_new_session),
            request.blocks,
        )
        launch = self._checked_launch(cwd, request.session, conversation, context)

        def next_turn(blocks: tuple[ContentBlock, ...], abort: trio.Event | None) -> Turn:
            return Turn(conversation, blocks, self._turn_settings(limits), abort=abort)

        turn = next_turn(request.blocks, request.abort)
        chain = Chain(
            launch=launch,
            conversation=conversation,
            first_turn=turn,
            context=context,
            settings=self._chain_settings(limits, ends_at),
        )
        run = ResumableRun(chain, turn, owner=True, next_turn=next_turn, announce=context.announce)
        await chain.start()
        return run

    async def list_sessions(self, parent: Parent, context: StartContext) -> tuple[SessionInfo, ...]:
        """The sessions that the agent has kept; see `seam.run.SupportsStoredSessions`."""
        cwd = self._working_directory(parent)
        errand = ListSessions(provider=self.name, cwd=cwd or "")
        await self._do_errand(errand, cwd, None, context)
        return tuple(errand.found)

    async def delete_session(self, ref: SessionRef, context: StartContext) -> None:
        """Let the agent forget a session; see `seam.run.SupportsStoredSessions`."""
        cwd = self._working_directory(Parent(cwd=ref.cwd))
        await self._do_errand(DeleteSession(ref), cwd, ref, context)

    async def _do_errand(
        self,
        errand: Callable[[Handshake], Awaitable[Outcome]],
        cwd: str | None,
        session: SessionRef | None,
        context: StartContext,
    ) -> None:
        limits = effective(self.config, Deadlines())
        ends_at = _ends_at(limits)
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

    # -- resolution: nothing is spawned here

    def _working_directory(self, parent: Parent) -> str | None:
        """The provider's own directory, else the parent's; the same string for process and session."""
        if self.config.cwd is not None:
            return self.config.cwd
        return None if parent.cwd is None else os.fspath(parent.cwd)

    def _checked_launch(
        self,
        cwd: str | None,
        session: SessionRef | None,
        conversation: AcpConversation,
        context: StartContext,
    ) -> LaunchSpec:
        """How the agent is launched; raises `SubagentStartError` when it cannot be, and tells the host."""
        outcome = self._fault(cwd, session)
        if outcome is None and cwd is not None:
            try:
                return self._launch(cwd)
            except SpawnError as exc:
                outcome = Outcome(end=End.NOT_SPAWNED, reason=exc.reason, cause=exc)
        raise _refused(conversation, outcome or Outcome(end=End.NOT_CONFIGURED), context)

    def _fault(self, cwd: str | None, session: SessionRef | None) -> Outcome | None:
        fault = working_directory_fault(cwd)
        if fault is not None:
            cause = ConfigurationError(CWD_SENTENCES[fault], reason=str(fault))
            return Outcome(end=End.NOT_CONFIGURED, reason=fault, cause=cause)
        if session is not None and (session.provider != self.config.name or session.cwd != cwd):
            cause = ConfigurationError("The session belongs to another provider or working directory.")
            return Outcome(end=End.NOT_CONFIGURED, cause=cause)
        return None

    def _launch(self, cwd: str) -> LaunchSpec:
        config = self.config
        environment = scrubbed_environment(os.environ, env=config.env, pass_env=config.pass_env)
        spec = LaunchSpec(
            command=resolve_command(config.command, search_path=environment.get("PATH")),
            args=config.args,
            cwd=cwd,
            environment=environment,
            eof_grace_seconds=config.eof_grace_seconds,
            term_grace_seconds=config.term_grace_seconds,
            kill_grace_seconds=config.kill_grace_seconds,
            exit_observation_seconds=config.exit_observation_seconds,
            stderr_tail_bytes=config.stderr_tail_bytes,
        )
        check_launch(spec)
        return spec

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
        config = self.config
        return ChainSettings(
            turn=self._turn_settings(limits),
            wire=WireLimits(
                max_frame_bytes=config.max_frame_bytes,
                max_noise_lines=config.max_noise_lines,
                max_unsent_bytes=config.max_unsent_bytes,
            ),
            startup_ends_at=ends_at,
            settle_grace_seconds=config.settle_grace_seconds,
            wire_log=config.wire_log,
        )

    def _turn_settings(self, limits: Deadlines) -> TurnSettings:
        config = self.config
        return TurnSettings(
            limits=TurnLimits(
                turn_seconds=limits.turn_seconds,
                idle_seconds=limits.idle_seconds,
                tool_idle_seconds=limits.tool_idle_seconds,
            ),
            cancel_grace_seconds=config.cancel_grace_seconds,
            exit_observation_seconds=config.exit_observation_seconds,
            event_buffer_events=config.event_buffer_events,
            subscriber_stall_seconds=config.subscriber_stall_seconds,
        )


def effective(config: AcpConfig, wished: Deadlines) -> Deadlines:
    """The deadlines that hold for a request: its own where they are set, else the provider's."""

    def first(own: float | None, provider: float | None) -> float | None:
        return provider if own is None else own

    return Deadlines(
        startup_seconds=first(wished.startup_seconds, config.startup_timeout_seconds),
        turn_seconds=first(wished.turn_seconds, config.turn_timeout_seconds),
        idle_seconds=first(wished.idle_seconds, config.idle_timeout_seconds),
        tool_idle_seconds=first(wished.tool_idle_seconds, config.tool_idle_timeout_seconds),
        permission_seconds=first(wished.permission_seconds, config.permission_timeout_seconds),
    )


def _ends_at(limits: Deadlines) -> float:
    """When a start that begins now has to be done."""
    return inf if limits.startup_seconds is None else trio.current_time() + limits.startup_seconds


def _refused(conversation: AcpConversation, outcome: Outcome, context: StartContext) -> SubagentStartError:
    """The error of a start that was refused before the spawn; the host has been told."""
    failure = describe(conversation, conversation.classify(outcome), outcome)
    assert failure is not None
    context.report(failure)
    return start_error(failure)
