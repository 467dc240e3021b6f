"""What every provider of child processes can be configured with: one validated, frozen record to build on.

Owns the names, the defaults and the limits of the settings that hold whatever the child speaks, and the
checks that need nothing but the configuration. Whatever is wrong is a `ConfigurationError` in our words when
the record is made; values are never repeated in it (an environment or a command line can hold secrets), and
the `repr` shows none. What only one provider knows of is added by its own subclass.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from acp_subagent.errors import ConfigurationError
from acp_subagent.process.launch import WorkingDirectoryFault, working_directory_fault

MEBIBYTE = 1024 * 1024

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, strict=True)]

#: What is said about a working directory that cannot be used.
CWD_SENTENCES: Mapping[str, str] = {
    WorkingDirectoryFault.MISSING: "No working directory was given.",
    WorkingDirectoryFault.RELATIVE: "The working directory is not an absolute path.",
    WorkingDirectoryFault.NOT_FOUND: "The working directory does not exist.",
    WorkingDirectoryFault.NOT_DIRECTORY: "The working directory is not a directory.",
    WorkingDirectoryFault.NOT_ENTERABLE: "The working directory may not be entered.",
}


class ChildConfig(BaseModel):
    """How a child is launched and supervised.

    Raises `ConfigurationError` for unknown fields and unusable values. Limits are finite and greater than
    0; only the `*_timeout_seconds` may be None, and then the caller's own cancel scope is the owner of that
    wait.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        defer_build=True,
        arbitrary_types_allowed=True,
    )

    name: Annotated[str, Field(min_length=1)]  #: the name under which the provider is registered
    command: str = Field(repr=False)  #: the child's program: a path, or a name on the child's PATH
    args: tuple[str, ...] = Field(default=(), repr=False)  #: its arguments
    #: the working directory; made absolute once (symlinks kept). None: the parent's
    cwd: str | None = Field(default=None, repr=False)
    env: dict[str, str] = Field(default_factory=dict, repr=False)  #: set for the child, after the deny-list
    pass_env: tuple[str, ...] = ()  #: names that the deny-list lets through

    startup_timeout_seconds: Seconds | None = 120.0  #: from the call of `start` to the ready run
    turn_timeout_seconds: Seconds | None = None  #: from a prompt to its answer
    settle_grace_seconds: Seconds = 0.05  #: for what comes right behind the end of a turn
    eof_grace_seconds: Seconds = 10.0  #: for the tree to end after its stdin was closed
    term_grace_seconds: Seconds = 3.0  #: for the tree to end after SIGTERM
    kill_grace_seconds: Seconds = 2.0  #: for the tree to be gone after the kill
    exit_observation_seconds: Seconds = 3.0  #: for the exit to be seen after the stream ended
    max_frame_bytes: Count = 64 * MEBIBYTE  #: one line from the child
    max_noise_lines: Count = 100  #: lines that are no message, before the first one that is
    max_output_bytes: Count = 16 * MEBIBYTE  #: what is kept of the agent's messages; the oldest goes
    max_unsent_bytes: Count = 64 * MEBIBYTE  #: what the child has not read yet, when one frame more is sent
    event_buffer_events: Count = 4096  #: events that a subscription may be behind
    subscriber_stall_seconds: Seconds = 30.0  #: how long a subscription may hold up the reader
    stderr_tail_bytes: Count = 64 * 1024  #: what is kept of the child's stderr
    #: A file to which every frame of both sides is appended, see `wire.log`; made with mode 0600. It holds
    #: prompts, answers, file contents and every secret that the two sides tell each other. None: no log
    wire_log: str | None = Field(default=None, min_length=1, repr=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as exc:
            message = self._explain(exc)
        else:
            return
        # Outside the block: the foreign exception is no context of ours.
        raise ConfigurationError(message)

    def __setattr__(self, name: str, value: object) -> None:
        # pydantic would say the same, and quote the value.
        raise ConfigurationError("A configuration is frozen; make another one.")

    @field_validator("cwd", "wire_log", mode="before")
    @classmethod
    def _absolute(cls, value: object) -> object:
        if isinstance(value, (str, os.PathLike)):
            text = os.fspath(value)
            return os.path.abspath(text) if isinstance(text, str) and text else text
        return value

    def check(self) -> None:
        """Check what depends on other settings or on the machine; raises `ConfigurationError`."""
        if self.cwd is not None:
            fault = working_directory_fault(self.cwd)
            if fault is not None:
                raise ConfigurationError(f"{CWD_SENTENCES[fault]} ({fault})", reason=str(fault))

    @classmethod
    def _explain(cls, error: ValidationError) -> str:
        """What is wrong, field by field, without any value."""
        lines = []
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            field = item["loc"][0] if item["loc"] else ""
            known = field in cls.model_fields
            if item["type"] == "extra_forbidden":
                lines.append(f"it has a field that does not exist; see the documentation of {cls.__name__}")
            elif known and item["type"] == "value_error":
                lines.append(f"{field}: it cannot be used")  # the words are those of a foreign exception
            elif known:
                lines.append(f"{field}: {item['msg']}")
            else:
                lines.append(item["msg"])
        return f"{cls.__name__}: " + "; ".join(lines)
