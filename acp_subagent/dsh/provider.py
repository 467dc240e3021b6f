"""The DSH SDK provider: from a request to a ready run.

Owns the wiring of conversation, turn and chain; what is resolved before the spawn is
`supervised.preparation`'s. From there on supervision runs the child.
"""

from __future__ import annotations

from acp_subagent.dsh.config import DshConfig
from acp_subagent.dsh.conversation import DshConversation, DshSettings
from acp_subagent.seam.request import SubagentCapabilities, SubagentRequest
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.chain import Chain
from acp_subagent.supervised.preparation import (
    chain_settings,
    checked_launch,
    effective_deadlines,
    startup_end,
    turn_settings,
    working_directory,
)
from acp_subagent.supervised.run import SupervisedRun
from acp_subagent.supervised.turn import Turn

_CAPABILITIES = SubagentCapabilities(deadlines=frozenset({"startup_seconds", "turn_seconds"}))


class DshProvider:
    """Runs the agent of a DeepSeek Harness runtime as a child process."""

    inherits_parent_context = False  #: a fresh child knows nothing of what its parent has seen

    def __init__(self, config: DshConfig) -> None:
        """Raises `ConfigurationError` when the configuration cannot be used on this machine."""
        config.check()
        self.config = config

    def __repr__(self) -> str:
        return "<DshProvider>"

    @property
    def name(self) -> str:
        """The name under which it is registered."""
        return self.config.name

    @property
    def capabilities(self) -> SubagentCapabilities:
        """Which optional fields of a request it honours: none but its two deadlines."""
        return _CAPABILITIES

    async def start(self, request: SubagentRequest, context: StartContext) -> SupervisedRun:
        """Bring a run to the point where its prompt can be sent; see `seam.run.SubagentProvider`."""
        limits = effective_deadlines(self.config, request.deadlines)
        ends_at = startup_end(limits)
        cwd = working_directory(self.config, request.parent)
        conversation = DshConversation(self._settings(cwd))
        conversation.check_prompt(request.blocks)
        launch = checked_launch(self.config, cwd, conversation, context)
        # Nothing on the wire cancels a turn: there is no answer to wait for.
        settings = turn_settings(self.config, limits, cancel_grace_seconds=0.0)
        turn = Turn(conversation, request.blocks, settings, abort=request.abort)
        chain = Chain(
            launch=launch,
            conversation=conversation,
            first_turn=turn,
            context=context,
            settings=chain_settings(self.config, settings, startup_ends_at=ends_at),
        )
        run = SupervisedRun(chain, turn, owner=True)
        await chain.start()
        return run

    def _settings(self, cwd: str | None) -> DshSettings:
        config = self.config
        return DshSettings(
            cwd=cwd or "",
            provider=config.provider,
            model=config.model,
            max_tokens=config.max_tokens,
            reasoning_effort=config.reasoning_effort,
            shutdown_grace_seconds=config.shutdown_grace_seconds,
            max_output_bytes=config.max_output_bytes,
        )
