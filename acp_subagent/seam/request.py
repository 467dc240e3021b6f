"""What a caller asks of a subagent: the request, who asks, and what a provider can be asked.

Owns the request types and the checks that need nothing but the request itself; they run when it is made.
What a provider can do with it is for `seam.service` to check. Every `repr` leaves content out: prompts
never reach a log by accident.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from acp_subagent.errors import ConfigurationError
from acp_subagent.seam.content import PROMPT_BLOCKS, ContentBlock, TextBlock

if TYPE_CHECKING:
    # A name only: the pure files, which use the records of this room, never load trio.
    import trio


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """Who delegates.

    `cwd` is used by providers that have no working directory of their own; it must be absolute, which is
    checked at the start of a run, where it is needed.
    """

    cwd: str | os.PathLike[str] | None = field(default=None, repr=False)
    session_id: str | None = field(default=None, repr=False)
    depth: int = 0  #: how many delegations lie above this one

    def __post_init__(self) -> None:
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 0:
            raise ConfigurationError("Parent.depth must be an integer of at least 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Limits for one request, in seconds; None means the provider's own.

    Each must be finite and greater than 0 (`ConfigurationError` otherwise).
    """

    startup_seconds: float | None = None  #: from the call of `start` to the ready run
    turn_seconds: float | None = None  #: from the prompt to its answer
    idle_seconds: float | None = None  #: silence of the agent
    tool_idle_seconds: float | None = None  #: silence of the agent while a tool call is in progress
    permission_seconds: float | None = None  #: one answer of a permission handler

    def __post_init__(self) -> None:
        for name in self.given():
            check_seconds(f"Deadlines.{name}", getattr(self, name))

    def given(self) -> tuple[str, ...]:
        """The names of the deadlines that are set."""
        return tuple(item.name for item in fields(self) if getattr(self, item.name) is not None)


def check_seconds(name: str, value: object) -> None:
    """Raise `ConfigurationError` unless `value` is a finite number greater than 0."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 < value < float("inf"):  # type: ignore[operator]  # a number, if we get there
        raise ConfigurationError(f"{name} must be a finite number of seconds greater than 0.")


@dataclass(frozen=True, slots=True)
class SessionRef:
    """A session that can be found again: which provider, which directory, and the provider's own token.

    `to_json` and `from_json` carry it across processes; its `repr` hides the token.
    """

    provider: str
    cwd: str = field(repr=False)
    token: str = field(repr=False)

    def to_json(self) -> dict[str, str]:
        """The reference as a JSON-able object."""
        return {"provider": self.provider, "cwd": self.cwd, "token": self.token}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> SessionRef:
        """The reference that `to_json` gave; raises `ConfigurationError` for anything else."""
        parts = [value.get(key) for key in ("provider", "cwd", "token")]
        if not all(isinstance(part, str) for part in parts):
            raise ConfigurationError("A session reference needs provider, cwd and token, all strings.")
        return cls(*parts)  # type: ignore[arg-type]  # three strings, as was just seen


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session that an agent has kept; `ref` is what a request continues it with."""

    ref: SessionRef
    title: str | None = field(default=None, repr=False)  #: display text of the agent
    updated_at: str | None = field(default=None, repr=False)  #: as the agent wrote it, normally ISO 8601


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentCapabilities:
    """Which optional fields of a request a provider can honour; the others are refused when set."""

    output_schema: bool = False
    depth_limit: bool = False  #: honours `max_depth`
    tool_filter: bool = False
    persona: bool = False
    agent_options: bool = False
    sessions: bool = False  #: honours `session` and `allow_new_session`
    #: the names of the `Deadlines` for which the provider has a limit
    deadlines: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentRequest:
    """One task for a subagent.

    A `prompt` given as a string is one text block; afterwards it is always a tuple of blocks. An empty
    prompt is refused (`ConfigurationError`).
    """

    prompt: str | Iterable[ContentBlock] = field(repr=False)
    parent: Parent = field(default_factory=Parent)
    label: str | None = field(default=None, repr=False)  #: a name for the caller's own use
    abort: trio.Event | None = field(default=None, repr=False)  #: set it to abort the run
    deadlines: Deadlines = field(default_factory=Deadlines)
    session: SessionRef | None = None  #: continue this session instead of opening a new one
    allow_new_session: bool = False  #: open a new one when that session cannot be continued
    output_schema: Mapping[str, object] | None = field(default=None, repr=False)  #: JSON Schema, object root
    max_depth: int | None = None  #: how many further delegations the child may make
    tool_filter: object = field(default=None, repr=False)
    persona: object = field(default=None, repr=False)
    agent_options: Mapping[str, object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", prompt_blocks(self.prompt))
        if not isinstance(self.parent, Parent):
            raise ConfigurationError("SubagentRequest.parent must be a Parent.")
        if not isinstance(self.deadlines, Deadlines):
            raise ConfigurationError("SubagentRequest.deadlines must be a Deadlines.")
        if self.session is not None and not isinstance(self.session, SessionRef):
            raise ConfigurationError("SubagentRequest.session must be a SessionRef.")
        if self.abort is not None and not all(hasattr(self.abort, name) for name in ("is_set", "wait")):
            raise ConfigurationError("SubagentRequest.abort must be a trio.Event.")

    @property
    def blocks(self) -> tuple[ContentBlock, ...]:
        """The prompt as content blocks."""
        return self.prompt  # type: ignore[return-value]  # a text became blocks when this was made


def prompt_blocks(prompt: object) -> tuple[ContentBlock, ...]:
    """A prompt as a tuple of content blocks.

    Raises `ConfigurationError` when it is empty or made of something else.
    """
    if isinstance(prompt, str):
        prompt = (TextBlock(prompt),)
    if not isinstance(prompt, Iterable) or isinstance(prompt, (bytes, Mapping)):
        raise ConfigurationError("A prompt is a string or a sequence of content blocks.")
    blocks = tuple(prompt)
    if not all(isinstance(block, PROMPT_BLOCKS) for block in blocks):
        raise ConfigurationError("A prompt may hold only text, resource links, images, audio and resources.")
    if not any(not isinstance(block, TextBlock) or block.text for block in blocks):
        raise ConfigurationError("A prompt must not be empty.")
    return blocks
