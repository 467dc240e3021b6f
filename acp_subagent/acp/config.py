"""Configuration of an ACP provider.

Owns the settings that only an agent with this protocol has; those of every child, and what is said when
one of them cannot be used, are `supervised.config`'s.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from acp_subagent.acp.permissions import PermissionHandler, PermissionPolicy
from acp_subagent.errors import ConfigurationError
from acp_subagent.supervised.config import ChildConfig, Count, Seconds


class AcpConfig(ChildConfig):
    """How one ACP agent is launched and supervised.

    Raises `ConfigurationError` for unknown fields and unusable values. Limits are finite and greater than
    0; only the five `*_timeout_seconds` may be None, and then the caller's own cancel scope is the owner of
    that wait.
    """

    #: who decides when the agent asks for permission
    permission: PermissionPolicy = PermissionPolicy.REJECT
    #: the async function that decides, for the policy `ask`
    permission_handler: PermissionHandler | None = Field(default=None, repr=False)

    idle_timeout_seconds: Seconds | None = 900.0  #: silence of the agent during a turn
    tool_idle_timeout_seconds: Seconds | None = 3600.0  #: the same while a tool call is in progress
    permission_timeout_seconds: Seconds | None = 600.0  #: one answer of the permission handler
    cancel_grace_seconds: Seconds = 5.0  #: for the agent's answer after `session/cancel`
    close_grace_seconds: Seconds = 1.0  #: for the answer to `session/close`
    max_early_updates: Count = 1000  #: updates kept before the session is known
    max_open_requests: Count = 256  #: permission requests that wait for the handler at a time

    def __init__(self, **values: Any) -> None:
        # Said here once more for type checkers: what is given is validated, a list does for a tuple.
        super().__init__(**values)

    def check(self) -> None:
        """Check what depends on other settings or on the machine; raises `ConfigurationError`."""
        if (self.permission is PermissionPolicy.ASK) != (self.permission_handler is not None):
            raise ConfigurationError("The policy `ask` and a permission_handler belong together.")
        if self.permission is PermissionPolicy.RULES:
            raise ConfigurationError("The policy `rules` is not available; use reject, allow or ask.")
        super().check()
