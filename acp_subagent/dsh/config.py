"""Configuration of a DSH SDK provider.

Owns the settings that only this runtime has; those of every child, and what is said when one of them cannot
be used, are `supervised.config`'s.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from acp_subagent.supervised.config import ChildConfig, Count, Seconds

#: the largest integer that the runtime can tell apart from its neighbours
MAX_SAFE_INTEGER = 2**53 - 1

_Word = Annotated[str, Field(min_length=1)]


class DshConfig(ChildConfig):
    """How a DeepSeek Harness runtime is launched and supervised.

    Raises `ConfigurationError` for unknown fields and unusable values. The runtime wants `DSH_HOME`, and its
    key, in `env` or named in `pass_env`: the host's own `DSH_*` variables and everything that looks like a
    secret do not reach it otherwise.
    """

    name: _Word = "dsh-sdk"  #: the name under which the provider is registered
    command: str = Field(default="dsh", repr=False)  #: the runtime: a path, or a name on the child's PATH
    args: tuple[str, ...] = Field(default=("--profile", "sdk"), repr=False)  #: its arguments
    provider: _Word = "deepseek-official"  #: whose model the runtime asks
    model: _Word = "deepseek-v4-flash"  #: which model
    max_tokens: Annotated[Count, Field(le=MAX_SAFE_INTEGER)] | None = None  #: of one answer of the model
    reasoning_effort: _Word | None = None  #: a word of the model's adapter; None: the model's default
    #: From the prompt to the end of its activity. The runtime is silent while its model thinks, so that this
    #: limit alone ends a run that has come to a standstill.
    turn_timeout_seconds: Seconds | None = 3600.0
    shutdown_grace_seconds: Seconds = 1.0  #: for the answer to `shutdown`

    def __init__(self, **values: Any) -> None:
        # Said here once more for type checkers: what is given is validated, a list does for a tuple.
        super().__init__(**values)
