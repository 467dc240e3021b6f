"""From a configuration and a request to everything that a chain needs; nothing is spawned here.

Owns the rules that hold for every child: which working directory, which deadlines, which environment and
command, and that whatever cannot be is refused before the spawn, with the same error as a start that failed.
"""

from __future__ import annotations

import os
from dataclasses import fields
from math import inf

import trio

from acp_subagent.errors import ConfigurationError, SpawnError
from acp_subagent.process.environment import scrubbed_environment
from acp_subagent.process.launch import LaunchSpec, resolve_command, working_directory_fault
from acp_subagent.seam.request import Deadlines, Parent
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.clock import TurnLimits
from acp_subagent.supervised.config import CWD_SENTENCES, ChildConfig
from acp_subagent.supervised.conversation import Conversation, Outcome
from acp_subagent.supervised.ending import End
from acp_subagent.supervised.reporting import describe, start_error
from acp_subagent.supervised.settings import ChainSettings, TurnSettings
from acp_subagent.wire.connection import WireLimits


def effective_deadlines(config: ChildConfig, wished: Deadlines) -> Deadlines:
    """The deadlines that hold for a request: its own where they are set, else the provider's.

    `x_seconds` of a request takes the place of `x_timeout_seconds` of a configuration.
    """

    def chosen(name: str) -> float | None:
        own: float | None = getattr(wished, name)
        provided: float | None = getattr(config, f"{name.removesuffix('_seconds')}_timeout_seconds", None)
        return provided if own is None else own

    return Deadlines(**{item.name: chosen(item.name) for item in fields(Deadlines)})


def startup_end(limits: Deadlines) -> float:
    """When a start that begins now has to be done, on trio's clock."""
    return inf if limits.startup_seconds is None else trio.current_time() + limits.startup_seconds


def working_directory(config: ChildConfig, parent: Parent) -> str | None:
    """The provider's own directory, else the parent's; the same string for process and session."""
    if config.cwd is not None:
        return config.cwd
    return None if parent.cwd is None else os.fspath(parent.cwd)


def checked_launch(
    config: ChildConfig,
    cwd: str | None,
    conversation: Conversation,
    context: StartContext,
    *,
    fault: ConfigurationError | None = None,
) -> LaunchSpec:
    """How the child is launched; raises `SubagentStartError` when it cannot be, and tells the host.

    `fault` is what the provider itself has found wrong; an unusable working directory comes before it.
    """
    word = working_directory_fault(cwd)
    if word is not None:
        fault = ConfigurationError(CWD_SENTENCES[word], reason=str(word))
    if fault is None and cwd is not None:
        try:
            return _launch(config, cwd)
        except SpawnError as exc:
            outcome = Outcome(end=End.NOT_SPAWNED, reason=exc.reason, cause=exc)
    else:
        reason = None if fault is None else fault.reason
        outcome = Outcome(end=End.NOT_CONFIGURED, reason=reason, cause=fault)
    failure = describe(conversation, conversation.classify(outcome), outcome)
    assert failure is not None
    context.report(failure)
    raise start_error(failure)


def _launch(config: ChildConfig, cwd: str) -> LaunchSpec:
    environment = scrubbed_environment(os.environ, env=config.env, pass_env=config.pass_env)
    return LaunchSpec(
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


def turn_settings(config: ChildConfig, limits: Deadlines, *, cancel_grace_seconds: float) -> TurnSettings:
    """The limits of one turn; `cancel_grace_seconds` is how long its cancel waits for the child's answer."""
    return TurnSettings(
        limits=TurnLimits(
            turn_seconds=limits.turn_seconds,
            idle_seconds=limits.idle_seconds,
            tool_idle_seconds=limits.tool_idle_seconds,
        ),
        cancel_grace_seconds=cancel_grace_seconds,
        exit_observation_seconds=config.exit_observation_seconds,
        event_buffer_events=config.event_buffer_events,
        subscriber_stall_seconds=config.subscriber_stall_seconds,
    )


def chain_settings(config: ChildConfig, turn: TurnSettings, *, startup_ends_at: float) -> ChainSettings:
    """The limits of one child."""
    return ChainSettings(
        turn=turn,
        wire=WireLimits(
            max_frame_bytes=config.max_frame_bytes,
            max_noise_lines=config.max_noise_lines,
            max_unsent_bytes=config.max_unsent_bytes,
        ),
        startup_ends_at=startup_ends_at,
        settle_grace_seconds=config.settle_grace_seconds,
        wire_log=config.wire_log,
    )
