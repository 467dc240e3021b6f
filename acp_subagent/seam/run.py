"""What a run is to its caller, and what a provider is to the service.

Owns the protocols on both sides of the seam and the context that a provider starts a run in. Optional
features of a run are optional methods, narrowed with a runtime-checkable protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

import trio

if TYPE_CHECKING:
    from acp_subagent.seam.activity import TeardownReport
    from acp_subagent.seam.cancellation import Cancellation
    from acp_subagent.seam.content import ContentBlock
    from acp_subagent.seam.feed import Subscription
    from acp_subagent.seam.request import (
        Parent,
        SessionInfo,
        SessionRef,
        SubagentCapabilities,
        SubagentRequest,
    )
    from acp_subagent.seam.result import Failure, SubagentResult

T = TypeVar("T", bound="SharedResource")


class SubagentRun(Protocol):
    """One task given to a subagent; ready when `start` returns it.

    An async context manager: the end of its block disposes it. A block whose body raised keeps the body's
    exception; a teardown error is then added to it as a note.
    """

    @property
    def id(self) -> str:
        """The run's own id, unique in this process."""

    @property
    def session(self) -> SessionRef | None:
        """Where the session can be found again, if the provider has sessions."""

    async def result(self) -> SubagentResult:
        """Wait for the outcome. Any number of tasks may wait; a settled result never changes.

        Never raises for anything that the child did.
        """

    def cancel(self) -> None:
        """End the turn: the result settles `aborted`. Harmless when it has settled."""

    async def dispose(self) -> TeardownReport:
        """End the run and release what it owns; idempotent, and not cut short by a cancellation.

        Raises `SubagentTeardownError` when processes survived or their end could not be observed.
        """

    def events(self, *, stderr: bool = False) -> Subscription:
        """Subscribe to what happens; with `stderr`, also to the lines that the child writes there."""

    def when_settled(self, callback: Callable[[SubagentResult], None]) -> None:
        """Call `callback`, a plain function, once with the result, at once if it has settled."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class SupportsResume(Protocol):
    """A run whose session can take another prompt."""

    async def resume(
        self, prompt: str | Iterable[ContentBlock], *, abort: trio.Event | None = None
    ) -> SubagentRun:
        """Start another turn in the same session; the new run borrows the child.

        Raises `TurnInProgressError` while a turn runs, `SessionEndedError` when the child is gone or cannot
        be used any more, `UnsupportedCapabilityError` for content that the agent does not take, and
        `SubagentAbortedError` when `abort` is set already; nothing has been sent then.
        """


class SharedResource(Protocol):
    """Something that the runs of one service share; closed when the service has closed."""

    async def aclose(self) -> None:
        """Release it; every run has ended before."""


@dataclass(slots=True, kw_only=True, repr=False)
class StartContext:
    """What the service gives to a provider with each start."""

    nursery: trio.Nursery  #: the service's nursery; a run's tasks live below it
    service_id: str  #: random, unique per service
    one_shot: bool  #: the result is to settle only after the child has gone (`service.run`)
    reaper: bool  #: whether child trees are to be ended when the host dies
    limiter: trio.CapacityLimiter | None  #: counts children, when their number is limited
    hurry_seconds: float | None  #: cuts the graces short after a cancellation from outside
    hurry: trio.Event  #: set when every grace is to be skipped
    closing: trio.Event  #: set when the service closes in order
    cancellation: Cancellation  #: of `nursery`, when the service closes or is cancelled from outside
    report: Callable[[Failure], None]  #: tells the host about one failure; never raises
    announce: Callable[[SubagentRun], None]  #: emits the lifecycle pair of a run that is about to be returned
    shared: SharedResources = field()  #: what the runs of this service have in common


class SharedResources:
    """Things that live as long as the service, made by whoever needs one first."""

    def __init__(self) -> None:
        self._resources: dict[object, SharedResource] = {}

    def get(self, key: object, make: Callable[[], T]) -> T:
        """The resource of this key, made with `make` if there is none yet."""
        if key not in self._resources:
            self._resources[key] = make()
        return self._resources[key]  # type: ignore[return-value]  # made for this key

    async def aclose(self) -> None:
        """Close them all, the newest first."""
        while self._resources:
            _, resource = self._resources.popitem()
            await resource.aclose()


class SubagentProvider(Protocol):
    """A kind of subagent that can be started by name."""

    @property
    def name(self) -> str:
        """The name under which it is registered."""

    @property
    def capabilities(self) -> SubagentCapabilities:
        """Which optional fields of a request it honours; constant."""

    @property
    def inherits_parent_context(self) -> bool:
        """Whether the child already sees what the parent has seen (a fork), so that prompts can be short."""

    async def start(self, request: SubagentRequest, context: StartContext) -> SubagentRun:
        """Bring a run to the point where its prompt can be sent.

        Raises `SubagentStartError`, `SubagentAbortedError`, `UnsupportedCapabilityError` or
        `ConfigurationError`; whatever was spawned has then been ended.
        """


@runtime_checkable
class SupportsStoredSessions(SubagentProvider, Protocol):
    """A provider whose agents keep sessions that can be listed and deleted."""

    async def list_sessions(self, parent: Parent, context: StartContext) -> tuple[SessionInfo, ...]:
        """The sessions that the agent has kept for the working directory that a run would have.

        Raises what `start` raises, and `SubagentTeardownError` when what was started could not be ended.
        """

    async def delete_session(self, ref: SessionRef, context: StartContext) -> None:
        """Let the agent forget a session. Raises what `list_sessions` raises."""
