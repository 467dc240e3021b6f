"""The service: a registry of providers, the capability check, and the lifecycle of runs.

Owns the nursery that every run lives in, and closes it: when the block of `open_subagents()` is left, every
run has been disposed. Exceptions come out plain, never wrapped in an ExceptionGroup. How a child is run is
the provider's business.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import trio

from acp_subagent.errors import (
    ConfigurationError,
    DuplicateProviderError,
    ServiceClosedError,
    SubagentAbortedError,
    UnknownProviderError,
    UnsupportedCapabilityError,
)
from acp_subagent.seam.cancellation import Cancellation
from acp_subagent.seam.capabilities import check_capabilities
from acp_subagent.seam.leaving import foremost
from acp_subagent.seam.request import Parent, SessionInfo, SessionRef, SubagentRequest, check_seconds
from acp_subagent.seam.run import (
    SharedResources,
    StartContext,
    SubagentProvider,
    SubagentRun,
    SupportsStoredSessions,
)

if TYPE_CHECKING:
    from acp_subagent.seam.lifecycle import LifecycleEvent, Observer
    from acp_subagent.seam.result import Failure, SubagentResult

_log = logging.getLogger("acp_subagent.seam")

Told = TypeVar("Told")


class Registration:
    """The handle of a registered provider."""

    def __init__(self, service: SubagentService, provider: SubagentProvider) -> None:
        self._service = service
        self.provider = provider

    def unregister(self) -> None:
        """Take the provider out: no new starts; runs that were accepted go on. Idempotent."""
        self._service._forget(self.provider)


class SubagentService:
    """Starts subagents by name. Made by `open_subagents()`."""

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        on_failure: Callable[[Failure], None] | None,
        reaper: bool,
        max_concurrent_runs: int | None,
        hurry_seconds: float | None,
    ) -> None:
        self._nursery = nursery
        self._on_failure = on_failure
        self._reaper = reaper
        self._hurry_seconds = hurry_seconds
        self._limiter = None if max_concurrent_runs is None else trio.CapacityLimiter(max_concurrent_runs)
        self._id = secrets.token_hex(8)
        self._run_numbers = count(1)
        self._providers: dict[str, SubagentProvider] = {}
        self._observers: list[Observer] = []
        self._shared = SharedResources()
        self._hurry = trio.Event()
        self._closing = trio.Event()
        self._cancellation = Cancellation()
        self._ended = trio.Event()
        self._leaving: BaseException | None = None  # what a callback of the host raised to leave the program

    # -- the registry

    def register(self, provider: SubagentProvider) -> Registration:
        """Make a provider known under its name.

        Raises `DuplicateProviderError` when the name is taken.
        """
        if provider.name in self._providers:
            raise DuplicateProviderError("A provider of this name is registered already.")
        self._providers[provider.name] = provider
        return Registration(self, provider)

    def providers(self) -> tuple[SubagentProvider, ...]:
        """Every registered provider, in order of registration."""
        return tuple(self._providers.values())

    def _forget(self, provider: SubagentProvider) -> None:
        if self._providers.get(provider.name) is provider:
            del self._providers[provider.name]

    # -- lifecycle events

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer`, a plain function that must not block, with each `RunStarted` and `RunEnded`.

        What it raises is contained. Returns a function that ends the observation.
        """
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop

    def _emit(self, event: LifecycleEvent) -> None:
        for observer in list(self._observers):
            self._tell("an observer", observer, event)

    def _report(self, failure: Failure) -> None:
        _log.info("%s", failure.diagnostic.replace("\n", " "))
        if self._on_failure is not None:
            self._tell("on_failure", self._on_failure, failure)

    def _tell(self, whom: str, callback: Callable[[Told], None], what: Told) -> None:
        """Call a callback of the host; what it raises must not harm a run.

        One that wants to leave the program ends the block of the service, in order.
        """
        try:
            callback(what)
        except Exception as exc:  # noqa: BLE001  contained, see above
            _log.warning("%s raised %s", whom, type(exc).__name__)
        except BaseException as exc:  # noqa: BLE001  raised again where the block ends
            self._leaving = self._leaving or exc
            self._nursery.cancel_scope.cancel()

    def _announce(self, provider: SubagentProvider, run: SubagentRun) -> None:
        # Start-up time: imported when there is a run, and by then its agent has answered.
        from acp_subagent.seam.lifecycle import RunEnded, RunStarted, log_settled  # noqa: PLC0415

        local = bool(getattr(provider, "local", False))
        run_id = f"{self._id}-{next(self._run_numbers)}"
        _log.info("run %s started", run.id)
        self._emit(RunStarted(run_id, provider.name, run.id, local))

        def ended(result: SubagentResult) -> None:
            log_settled(run.id, result)
            self._emit(RunEnded(run_id, provider.name, run.id, local, result.stop_reason, result.output))

        run.when_settled(ended)

    # -- runs

    async def start(self, name: str, request: SubagentRequest) -> SubagentRun:
        """Start a subagent and return its run once it is ready; the caller disposes it.

        Raises `UnknownProviderError`, `UnsupportedCapabilityError`, `ConfigurationError` before anything is
        spawned, and `SubagentStartError` or `SubagentAbortedError` after whatever was spawned has been ended.
        """
        return await self._start(name, request, one_shot=False)

    async def run(
        self,
        name: str,
        request: SubagentRequest,
        *,
        on_ready: Callable[[SubagentRun], None] | None = None,
    ) -> SubagentResult:
        """Start a subagent, wait for its result, and end its process tree.

        `on_ready` is called with the run once it is ready, a plain function: the place to subscribe to its
        events. The result comes after the end of the tree and has `teardown` and `exit_status`. Raises what
        `start` raises, and `SubagentTeardownError` (with the result as `.result`) when something survived.
        """
        async with await self._start(name, request, one_shot=True) as run:
            if on_ready is not None:
                on_ready(run)
            return await run.result()

    def hurry(self) -> None:
        """Skip every grace from now on: whatever is being ended, or will be, is killed at once."""
        self._hurry.set()

    async def _start(self, name: str, request: SubagentRequest, *, one_shot: bool) -> SubagentRun:
        provider = self._provider(name)
        check_capabilities(request, provider.capabilities)
        if request.abort is not None and request.abort.is_set():
            raise SubagentAbortedError
        run = await provider.start(request, self._context(provider, one_shot=one_shot))
        # No checkpoint from here on: a cancellation could otherwise lose a ready run.
        self._announce(provider, run)
        return run

    # -- sessions that agents have kept

    async def list_sessions(self, name: str, parent: Parent) -> tuple[SessionInfo, ...]:
        """The sessions that the agent has kept for the working directory, the provider's or the parent's.

        A short-lived agent is started to be asked, and ended. Raises what `start` raises, and
        `UnsupportedCapabilityError` also when the agent keeps no list; `SubagentTeardownError` when
        something of it survived.
        """
        provider = self._keeper(name)
        return await provider.list_sessions(parent, self._context(provider, one_shot=True))

    async def delete_session(self, ref: SessionRef) -> None:
        """Let the agent forget a session; one that it does not know is no mistake.

        Works and raises as `list_sessions` does. A session that is in use is not to be deleted.
        """
        provider = self._keeper(ref.provider)
        await provider.delete_session(ref, self._context(provider, one_shot=True))

    # -- small things

    def _provider(self, name: str) -> SubagentProvider:
        if self._closing.is_set():
            raise ServiceClosedError("The block of open_subagents() has been left.")
        provider = self._providers.get(name)
        if provider is None:
            raise UnknownProviderError("No provider is registered under this name.")
        return provider

    def _keeper(self, name: str) -> SupportsStoredSessions:
        provider = self._provider(name)
        if not isinstance(provider, SupportsStoredSessions):
            raise UnsupportedCapabilityError("sessions")
        return provider

    def _context(self, provider: SubagentProvider, *, one_shot: bool) -> StartContext:
        return StartContext(
            nursery=self._nursery,
            service_id=self._id,
            one_shot=one_shot,
            reaper=self._reaper,
            limiter=self._limiter,
            hurry_seconds=self._hurry_seconds,
            hurry=self._hurry,
            closing=self._closing,
            cancellation=self._cancellation,
            report=self._report,
            announce=lambda run: self._announce(provider, run),
            shared=self._shared,
        )

    @trio.lowlevel.enable_ki_protection
    def _close(self) -> None:
        """Nothing starts any more, and every run comes to its end; the nursery waits for them."""
        self._closing.set()
        self._nursery.cancel_scope.cancel()

    @trio.lowlevel.enable_ki_protection
    async def _heed_cancellation(self) -> None:
        """Beside the nursery of the runs: a cancellation from outside begins the time left to hurry."""
        with suppress(trio.Cancelled):
            await trio.sleep_forever()
        if self._hurry_seconds is not None and not self._ended.is_set():
            ends_at = trio.current_time() + self._hurry_seconds
            with trio.CancelScope(deadline=ends_at, shield=True):
                await self._ended.wait()
                return
            self._hurry.set()

    @trio.lowlevel.enable_ki_protection
    async def _release(self) -> None:
        with trio.CancelScope(shield=True):
            await self._shared.aclose()


@asynccontextmanager
async def open_subagents(
    *,
    on_failure: Callable[[Failure], None] | None = None,
    reaper: bool = True,
    max_concurrent_runs: int | None = None,
    hurry_seconds: float | None = None,
) -> AsyncIterator[SubagentService]:
    """Open the service; at the end of the block every run that is left is disposed.

    `on_failure` is called with each `Failure`, once; a plain function that must not block. `reaper` keeps a
    small watchdog process that ends the children's trees when this program dies without warning.
    `max_concurrent_runs` limits how many children there are at a time (waiting counts in the startup
    deadline). `hurry_seconds` bounds the teardown after a cancellation from outside; unset, the graces do.

    The body's exception comes out as it is. Raises `ConfigurationError` for impossible arguments.
    """
    if max_concurrent_runs is not None and (
        isinstance(max_concurrent_runs, bool)
        or not isinstance(max_concurrent_runs, int)
        or max_concurrent_runs < 1
    ):
        raise ConfigurationError("max_concurrent_runs must be an integer of at least 1.")
    if hurry_seconds is not None:
        check_seconds("hurry_seconds", hurry_seconds)
    error: BaseException | None = None
    try:
        async with trio.open_nursery() as beside:
            try:
                async with trio.open_nursery() as nursery:
                    service = SubagentService(
                        nursery,
                        on_failure=on_failure,
                        reaper=reaper,
                        max_concurrent_runs=max_concurrent_runs,
                        hurry_seconds=hurry_seconds,
                    )
                    beside.start_soon(service._heed_cancellation)
                    nursery.start_soon(service._cancellation.wait)
                    try:
                        yield service
                    except BaseException as exc:  # noqa: BLE001  raised again below, outside the nurseries
                        error = exc
                    service._close()
            finally:
                service._ended.set()
            error = service._leaving or error
            beside.cancel_scope.cancel()
    except BaseExceptionGroup as group:  # a task of a provider raised, which only a handler of the host may
        # The body was cancelled for that, or had raised before; what leaves the program comes before that.
        error = foremost(error, group)
    finally:
        try:
            # In a task of its own: an interrupt from the keyboard comes to whatever the first one waits for.
            async with trio.open_nursery() as last:
                last.start_soon(service._release)
        except BaseExceptionGroup as group:
            error = foremost(error, group)
    if error is not None:
        try:
            raise error
        finally:
            del error  # no cycle of exception and frame
    await trio.lowlevel.checkpoint_if_cancelled()
