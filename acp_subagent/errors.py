"""Every exception class of the project, named by who is to blame.

Three kinds, told apart by their root: `SubagentUsageError` means that the caller asked for something that
cannot be (nothing was spawned); `SubagentRunError` means that a child, its host machine or its clean-up
failed; `SubagentAbortedError` means that the caller changed its mind. No text of a child process, and none
of a foreign exception, ever gets into one of these: their words are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Names of types only; errors.py imports no other room when it runs.
    from acp_subagent.seam.activity import TeardownReport
    from acp_subagent.seam.result import Failure, SubagentResult


class SubagentError(Exception):
    """Root of every exception that this project raises on purpose."""


class SubagentUsageError(SubagentError):
    """The caller asked for something that cannot be; nothing was spawned, change the call."""


class ConfigurationError(SubagentUsageError):
    """A provider's configuration or a request is unusable.

    Its text is a fixed sentence of ours. `reason` is the closed reason word when there is one
    (`cwd-not-found`, ...), else None.
    """

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class UnknownProviderError(SubagentUsageError):
    """No provider is registered under this name; `register` one first."""


class DuplicateProviderError(SubagentUsageError):
    """A provider of this name is registered already; unregister it first or choose another name."""


class UnsupportedCapabilityError(SubagentUsageError):
    """The request needs a capability that the provider or the agent does not have.

    Never ignored silently: drop the field, or choose another provider. `capability` names it. When the
    agent itself refuses (prompt content it does not take), it was spawned to be asked, and has been reaped.
    """

    def __init__(self, capability: str) -> None:
        super().__init__(f"capability not supported: {capability}")
        self.capability = capability


class TurnInProgressError(SubagentUsageError):
    """A turn is running in this session; await its result, then try again. Nothing was sent."""


class SessionEndedError(SubagentUsageError):
    """The child is gone or can no longer be used; start a new run. Nothing was sent."""


class ServiceClosedError(SubagentUsageError):
    """The block of `open_subagents()` has been left; nothing can be started in it any more."""


class SubagentAbortedError(SubagentError):
    """The request's `abort` was set before the run was ready; everything spawned was cleaned up."""

    def __init__(self) -> None:
        super().__init__("The subagent was aborted before it was ready.")


class SubagentRunError(SubagentError):
    """Something outside the caller's control failed; `failure` has the facts."""

    def __init__(self, message: str, *, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


class SubagentStartError(SubagentRunError):
    """The run never got ready; what had been spawned was ended.

    The text is the diagnostic line. `failure` is the host's local detail; `teardown` is the second error when
    the clean-up failed too, else None (then the tree is known to be gone, or was never spawned).
    """

    def __init__(
        self, message: str, *, failure: Failure, teardown: SubagentTeardownError | None = None
    ) -> None:
        super().__init__(message, failure=failure)
        self.teardown = teardown


class SubagentTeardownError(SubagentRunError):
    """The child's process tree could not be ended completely, or its end could not be observed.

    `report` says what was found; `result` is the settled result of the run, None when there was none.
    """

    def __init__(
        self,
        message: str,
        *,
        failure: Failure,
        report: TeardownReport | None,
        result: SubagentResult | None = None,
    ) -> None:
        super().__init__(message, failure=failure)
        self.report = report
        self.result = result


class IllegalTransitionError(SubagentError):
    """A state machine got an event that its state has no row for; a bug of ours, nothing has changed."""


class SpawnError(SubagentError):
    """The child could not be started.

    `reason` is the closed word of what prevented it ('' when there is no word for it); `cause` is what the
    system said, for the host alone: its text can quote paths and arguments.
    """

    def __init__(self, reason: str, *, cause: Exception | None = None) -> None:
        super().__init__(f"the command cannot be started ({reason})" if reason else "no child can be started")
        self.reason = reason
        self.cause = cause
