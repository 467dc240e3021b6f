"""Providers that play their part in this process, for tests that need no child.

A player's agent is an async function, its `part`: it says things and returns how the turn ended. Each run
that was started and not disposed is counted, so that a test can see whether anything was left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from types import TracebackType
from typing import Any, Self

import trio

from acp_subagent import (
    Failure,
    Parent,
    Snapshot,
    SubagentAbortedError,
    SubagentCapabilities,
    SubagentRequest,
    SubagentResult,
    SubagentService,
    SubagentStartError,
    SubagentTeardownError,
    Subscription,
    TeardownReport,
    TextBlock,
    TextChunk,
    Usage,
    open_subagents,
)
from acp_subagent.seam.feed import EventFeed
from acp_subagent.seam.run import StartContext

NOTHING_ENDED = TeardownReport(rungs={}, processes_found=0, survivors=0, exit_status=None)
SURVIVORS = "Subagent failure (provider: PLAYER; stage: teardown; category: survivors)"
START_LINE = "Subagent failure (provider: PLAYER; stage: initialize; category: process-exit; exit code: 3)"
TURN_LINE = "Subagent failure (provider: PLAYER; stage: process; category: process-exit; exit code: 3)"

PARENT = Parent(cwd="/")
CALL = {"description": "a task", "prompt": "do it"}


def teardown_failed() -> SubagentTeardownError:
    failure = Failure(diagnostic=SURVIVORS, stage="teardown", category="survivors")
    return SubagentTeardownError(SURVIVORS, failure=failure, report=None)


def start_failed(teardown: SubagentTeardownError | None = None) -> SubagentStartError:
    failure = Failure(diagnostic=START_LINE, stage="initialize", category="process-exit")
    text = START_LINE if teardown is None else f"{START_LINE}\n{teardown}"
    return SubagentStartError(text, failure=failure, teardown=teardown)


class PlayedRun:
    """A run whose agent is a function."""

    def __init__(self, number: int, part: Part, player: Player, request: SubagentRequest) -> None:
        self.id = f"played-{number}"
        self.session = None
        self.request = request
        self.said: list[str] = []
        self._part = part
        self._player = player
        self._scope = trio.CancelScope()
        self._settled = trio.Event()
        self._result: SubagentResult | None = None
        self._callbacks: list[Callable[[SubagentResult], None]] = []
        self._feed = EventFeed(buffer_events=100, stall_seconds=1.0, snapshot=self._snapshot)
        self._disposed = False

    def say(self, text: str, *, new_message: bool = False) -> None:
        """Say a piece of the answer."""
        if new_message or not self.said:
            self.said.append("")
        self.said[-1] += text
        self._feed.put(TextChunk(text))
        self._feed.flush()

    def ended(self, stop_reason: str, diagnostic: str | None = None) -> SubagentResult:
        """A result of this run with what was said last."""
        output = (TextBlock(self.said[-1]),) if self.said else ()
        return SubagentResult(stop_reason=stop_reason, diagnostic=diagnostic, output=output)

    async def live(self) -> None:
        """Play the part to its end."""
        result: SubagentResult | None = None
        try:
            async with trio.open_nursery() as nursery:
                if self.request.abort is not None:
                    nursery.start_soon(self._heed_abort, self.request.abort)
                with self._scope:
                    result = await self._part(self)
                nursery.cancel_scope.cancel()
        finally:
            self._result = result or self.ended("aborted")
            self._feed.close()
            self._settled.set()
            for callback in self._callbacks:
                callback(self._result)

    async def _heed_abort(self, abort: trio.Event) -> None:
        await abort.wait()
        if not self._player.deaf:
            self.cancel()

    async def result(self) -> SubagentResult:
        await self._settled.wait()
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        self._scope.cancel()

    async def dispose(self) -> TeardownReport:
        self.cancel()
        with trio.CancelScope(shield=True):
            await self._settled.wait()
            for _ in range(3):  # the end of an agent takes its time, too
                await trio.lowlevel.checkpoint()
        if not self._disposed:
            self._disposed = True
            self._player.open_runs -= 1
        if self._player.teardown is not None:
            self._player.teardown.result = self._result
            raise self._player.teardown
        return NOTHING_ENDED

    def events(self, *, stderr: bool = False) -> Subscription:
        return self._feed.subscribe(stderr=stderr)

    def when_settled(self, callback: Callable[[SubagentResult], None]) -> None:
        self._callbacks.append(callback)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            await self.dispose()
        else:
            with suppress(SubagentTeardownError):
                await self.dispose()

    def _snapshot(self) -> Snapshot:
        messages = tuple((TextBlock(text),) for text in self.said)
        return Snapshot(stage="prompt", messages=messages, tool_calls=(), plan=(), usage=Usage())


Part = Callable[[PlayedRun], Awaitable[SubagentResult]]


class Player:
    """A provider of such runs.

    `start` is awaited before a run is ready and may raise; `teardown` is what every disposal raises; a `deaf`
    player's runs do not heed their abort.
    """

    def __init__(
        self,
        part: Part,
        *,
        name: str = "player",
        start: Callable[[], Awaitable[None]] | None = None,
        teardown: SubagentTeardownError | None = None,
        deaf: bool = False,
        inherits_parent_context: bool = False,
        **capabilities: Any,
    ) -> None:
        self.name = name
        self.capabilities = SubagentCapabilities(**capabilities)
        self.inherits_parent_context = inherits_parent_context
        self.teardown = teardown
        self.deaf = deaf
        self.open_runs = 0  #: started, and not disposed
        self.started = 0  #: starts that were tried
        self.requests: list[SubagentRequest] = []
        self._part = part
        self._start = start
        self._numbers = count(1)

    async def start(self, request: SubagentRequest, context: StartContext) -> PlayedRun:
        self.started += 1
        self.requests.append(request)
        await self._get_ready(request)
        run = PlayedRun(next(self._numbers), self._part, self, request)
        self.open_runs += 1
        context.nursery.start_soon(run.live)
        return run

    async def _get_ready(self, request: SubagentRequest) -> None:
        """Wait for `start`, or for the abort, whichever comes first."""
        if self._start is None:
            return
        try:
            async with trio.open_nursery() as nursery:
                if request.abort is not None:
                    nursery.start_soon(self._give_up, request.abort, nursery.cancel_scope)
                await self._start()
                nursery.cancel_scope.cancel()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        if request.abort is not None and request.abort.is_set():
            raise SubagentAbortedError

    @staticmethod
    async def _give_up(abort: trio.Event, scope: trio.CancelScope) -> None:
        await abort.wait()
        scope.cancel()


# -- parts


async def answers(run: PlayedRun) -> SubagentResult:
    """Say yes, and be done."""
    await trio.lowlevel.checkpoint()
    run.say("yes")
    return run.ended("completed")


async def waits(run: PlayedRun) -> SubagentResult:
    """Say something, and never be done."""
    run.say("so far")
    await trio.sleep_forever()
    raise AssertionError


def ends(stop_reason: str, diagnostic: str | None = None, *, saying: str = "") -> Part:
    """A part that says something and ends so."""

    async def part(run: PlayedRun) -> SubagentResult:
        await trio.lowlevel.checkpoint()
        if saying:
            run.say(saying)
        return run.ended(stop_reason, diagnostic)

    return part


async def never() -> None:
    """A start that takes for ever."""
    await trio.sleep_forever()


def raises(error: Exception) -> Callable[[], Awaitable[None]]:
    """A start that raises."""

    async def start() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    return start


# -- the stage


@asynccontextmanager
async def service_of(*players: Player, bound_seconds: float = 10) -> AsyncIterator[SubagentService]:
    """A service with these players; nothing may be left of their runs."""
    with trio.fail_after(bound_seconds):
        async with open_subagents(reaper=False) as subagents:
            for player in players:
                subagents.register(player)
            yield subagents
            assert [player.open_runs for player in players] == [0] * len(players)
