"""The service over a provider of its own making: registry, capability check, lifecycle, containment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import pytest
import trio

from acp_subagent import (
    ConfigurationError,
    Deadlines,
    DuplicateProviderError,
    Parent,
    RunEnded,
    RunStarted,
    ServiceClosedError,
    SessionRef,
    StartContext,
    SubagentAbortedError,
    SubagentCapabilities,
    SubagentRequest,
    SubagentResult,
    SubagentStopReason,
    TextBlock,
    UnknownProviderError,
    UnsupportedCapabilityError,
    open_subagents,
)

DONE = SubagentResult(stop_reason=SubagentStopReason.COMPLETED, output=(TextBlock("done"),))


class Run:
    """A run that settles when it is told to."""

    session = None

    def __init__(self) -> None:
        self.id = f"run-{id(self)}"
        self.disposed = 0
        self._callbacks: list[Callable[[SubagentResult], None]] = []

    async def result(self) -> SubagentResult:
        self.settle()
        return DONE

    def settle(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(DONE)

    def when_settled(self, callback: Callable[[SubagentResult], None]) -> None:
        self._callbacks.append(callback)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.disposed += 1


class Provider:
    """Starts such runs, and remembers what it was given."""

    inherits_parent_context = False

    def __init__(self, name: str = "p", **capabilities: Any) -> None:
        self.name = name
        self.capabilities = SubagentCapabilities(**capabilities)
        self.runs: list[Run] = []
        self.contexts: list[StartContext] = []

    async def start(self, request: SubagentRequest, context: StartContext) -> Any:
        self.contexts.append(context)
        self.runs.append(Run())
        return self.runs[-1]


def divide_by_zero(run: object) -> None:
    raise ZeroDivisionError


def request(**fields: Any) -> SubagentRequest:
    return SubagentRequest(prompt="do it", **fields)


async def test_a_name_is_registered_once_and_can_be_taken_out() -> None:
    async with open_subagents() as subagents:
        first = Provider()
        registration = subagents.register(first)
        with pytest.raises(DuplicateProviderError):
            subagents.register(Provider())
        assert subagents.providers() == (first,)
        run = await subagents.start("p", request())
        registration.unregister()
        registration.unregister()
        assert subagents.providers() == ()
        with pytest.raises(UnknownProviderError):
            await subagents.start("p", request())
        assert (await run.result()) is DONE  # accepted runs go on
        second = Provider()
        subagents.register(second)
        registration.unregister()  # of the first: the second one stays
        assert subagents.providers() == (second,)


SET: dict[str, Any] = {
    "output_schema": {"type": "object"},
    "max_depth": 0,
    "tool_filter": ["read"],
    "persona": "p",
    "agent_options": {},
    "session": SessionRef("p", "/", "t"),
    "allow_new_session": True,
}
CAPABILITIES = {
    "max_depth": "depth_limit",
    "session": "sessions",
    "allow_new_session": "sessions",
}


@pytest.mark.parametrize("field", SET)
async def test_a_field_that_the_provider_cannot_honour_is_refused_before_the_start(field: str) -> None:
    capability = CAPABILITIES.get(field, field)
    without, able = Provider("without"), Provider("able", **{capability: True})
    async with open_subagents() as subagents:
        subagents.register(without)
        subagents.register(able)
        with pytest.raises(UnsupportedCapabilityError) as caught:
            await subagents.start("without", request(**{field: SET[field]}))
        await subagents.start("able", request(**{field: SET[field]}))
    assert caught.value.capability == capability
    assert (len(without.runs), len(able.runs)) == (0, 1)


@pytest.mark.parametrize(
    "name", ["startup_seconds", "turn_seconds", "idle_seconds", "tool_idle_seconds", "permission_seconds"]
)
async def test_a_deadline_that_the_provider_has_no_limit_for_is_refused(name: str) -> None:
    async with open_subagents() as subagents:
        subagents.register(Provider("without"))
        subagents.register(Provider("able", deadlines=frozenset({name})))
        wished = request(deadlines=Deadlines(**{name: 1}))
        with pytest.raises(UnsupportedCapabilityError) as caught:
            await subagents.start("without", wished)
        await subagents.start("able", wished)
    assert caught.value.capability == f"deadlines.{name}"


@pytest.mark.parametrize(
    "fields",
    [
        {"max_depth": -1},
        {"max_depth": True},
        {"max_depth": 1.0},
        {"output_schema": {}},
        {"output_schema": {"type": "array"}},
    ],
)
async def test_what_no_provider_could_honour_is_refused(fields: dict[str, Any]) -> None:
    async with open_subagents() as subagents:
        subagents.register(Provider(depth_limit=True, output_schema=True))
        with pytest.raises(ConfigurationError):
            await subagents.start("p", request(**fields))


async def test_sessions_are_listed_only_where_the_provider_keeps_them() -> None:
    async with open_subagents() as subagents:
        subagents.register(Provider(sessions=True))
        with pytest.raises(UnsupportedCapabilityError):
            await subagents.list_sessions("p", Parent())
        with pytest.raises(UnsupportedCapabilityError):
            await subagents.delete_session(SessionRef("p", "/", "t"))


async def test_the_lifecycle_pair_and_what_observers_may_do() -> None:
    seen: list[Any] = []
    other: list[Any] = []

    def raises(event: object) -> None:
        raise RuntimeError("SECRET")

    async with open_subagents() as subagents:
        provider = Provider()
        subagents.register(provider)
        subagents.observe(raises)
        stop = subagents.observe(seen.append)
        subagents.observe(other.append)
        run = await subagents.start("p", request())
        assert [type(event) for event in seen] == [RunStarted]
        stop()
        stop()
        await run.result()
        await run.result()
    assert len(seen) == 1
    started, ended = other
    assert isinstance(ended, RunEnded)
    assert (ended.run_id, ended.id, ended.stop_reason) == (started.run_id, run.id, "completed")
    assert ended.output == (TextBlock("done"),)
    assert started.run_id != run.id


async def test_run_starts_waits_and_disposes() -> None:
    ready: list[Any] = []
    async with open_subagents() as subagents:
        provider = Provider()
        subagents.register(provider)
        assert await subagents.run("p", request(), on_ready=ready.append) is DONE
        assert ready == provider.runs
        with pytest.raises(ZeroDivisionError):
            await subagents.run("p", request(), on_ready=divide_by_zero)
        assert [run.disposed for run in provider.runs] == [1, 1]
        assert [context.one_shot for context in provider.contexts] == [True, True]


async def test_an_abort_that_is_set_already_reaches_no_provider() -> None:
    abort = trio.Event()
    abort.set()
    async with open_subagents() as subagents:
        provider = Provider()
        subagents.register(provider)
        with pytest.raises(SubagentAbortedError):
            await subagents.start("p", request(abort=abort))
    assert provider.runs == []


async def test_nothing_starts_after_the_block() -> None:
    async with open_subagents() as subagents:
        subagents.register(Provider())
    with pytest.raises(ServiceClosedError):
        await subagents.start("p", request())
    with pytest.raises(ServiceClosedError):
        await subagents.list_sessions("p", Parent())


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_concurrent_runs": 0},
        {"max_concurrent_runs": True},
        {"max_concurrent_runs": 1.5},
        {"hurry_seconds": 0},
        {"hurry_seconds": float("inf")},
        {"hurry_seconds": True},
    ],
)
async def test_impossible_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        async with open_subagents(**arguments):
            pass


async def test_a_task_of_a_provider_that_raises_comes_out_alone() -> None:
    async def fails() -> None:
        raise ValueError("of a provider")

    with pytest.raises(ValueError, match="of a provider"):
        async with open_subagents() as subagents:
            subagents._nursery.start_soon(fails)
            await trio.sleep_forever()


async def test_what_runs_share_is_made_once_and_closed_the_newest_first() -> None:
    closed: list[str] = []

    class Resource:
        def __init__(self, name: str) -> None:
            self.name = name

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()
            closed.append(self.name)

    with trio.CancelScope() as scope:
        async with open_subagents() as subagents:
            provider = Provider()
            subagents.register(provider)
            await subagents.start("p", request())
            shared = provider.contexts[0].shared
            first = shared.get("a", lambda: Resource("first"))
            assert shared.get("a", lambda: Resource("never")) is first
            shared.get("b", lambda: Resource("second"))
            scope.cancel()
    assert closed == ["second", "first"]
