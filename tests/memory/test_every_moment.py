"""A run is interrupted at every single moment and from every place: nothing hangs, is lost, or told twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    EventsLagged,
    PermissionDecided,
    RunEnded,
    RunStarted,
    ServiceClosedError,
    SessionEndedError,
    SubagentAbortedError,
    SubagentResult,
    TextBlock,
    TextChunk,
)
from tests.memory.agent import Agent, Scene, permission, text

SAID = ["a", "b", "c", "d"]
MOMENTS = 150  # more ticks of the scheduler than a start and a turn take


async def talkative(agent: Agent) -> None:
    """Answers every turn, cancelled or not, with a pause after each frame."""
    agent.ladder_seconds = 1
    await agent.shake_hands(sessionCapabilities={"close": {}})
    turn = 0
    while True:
        prompt = await agent.prompted()
        turn += 1
        for said in SAID:
            await agent.send(text(said, f"m{turn}"))
            await trio.lowlevel.checkpoint()
            if said == "b":
                await agent.send(permission(f"p{turn}", f"call{turn}"))
        await agent.stop(prompt)


class Watched:
    """A scene with everything that was told of its runs, and what can be done to it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.scene = Scene(folder, talkative, permission="ask", permission_handler=self._decide, **settings)
        self.runs: list[Any] = []
        self.begun = [trio.Event(), trio.Event(), trio.Event()]  # by how many runs there are
        self.begun[0].set()
        self.settled: list[list[SubagentResult]] = []
        self.streams: list[list[Any]] = []
        self.lifecycle: list[Any] = []
        self.abort, self.leave = trio.Event(), trio.Event()
        self.scope, self.around = trio.CancelScope(), trio.CancelScope()
        self.in_handler: Callable[[], Awaitable[None]] | None = None
        self.in_loop: Callable[[int], Awaitable[None]] | None = None
        self.outcomes: list[str] = []

    async def _decide(self, request: object) -> str:
        if self.in_handler is not None:
            await self.in_handler()
        await trio.lowlevel.checkpoint()
        return "allow"

    def _follow(self, nursery: trio.Nursery, run: Any) -> None:
        events, settled = list[Any](), list[SubagentResult]()
        self.runs.append(run)
        self.begun[len(self.runs)].set()
        self.streams.append(events)
        self.settled.append(settled)
        run.when_settled(settled.append)
        subscription = run.events()

        async def read() -> None:
            async for event in subscription:
                events.append(event)
                if self.in_loop is not None:
                    await self.in_loop(len(events))
            assert settled

        nursery.start_soon(read)

    async def conduct(
        self, interfere: Callable[[], Awaitable[None]] | None = None, *, manner: str = "start"
    ) -> None:
        """Lead two turns, or one run, to the end, with whatever comes in between."""
        async with trio.open_nursery() as nursery:
            with self.around:
                async with self.scene.service() as subagents:
                    subagents.observe(self.lifecycle.append)

                    async def lead() -> None:
                        with self.scope:
                            try:
                                await self._lead(subagents, nursery, manner)
                            except (SubagentAbortedError, SessionEndedError, ServiceClosedError) as exc:
                                self.outcomes.append(type(exc).__name__)
                        self.leave.set()

                    nursery.start_soon(lead)
                    if interfere is not None:
                        nursery.start_soon(interfere)
                    await self.leave.wait()
            self.scope.cancel()

    async def _lead(self, subagents: Any, nursery: trio.Nursery, manner: str) -> None:
        request = self.scene.request(abort=self.abort)
        if manner == "run":
            await subagents.run("memory", request, on_ready=lambda run: self._follow(nursery, run))
            return
        async with await subagents.start("memory", request) as run:
            self._follow(nursery, run)
            await run.result()
            async with await run.resume("more", abort=self.abort) as second:
                self._follow(nursery, second)
                await second.result()

    async def do(self, deed: str) -> None:
        """Interrupt it; whether there is something to interrupt or not."""
        if deed == "abort":
            self.abort.set()
        elif deed == "scope":
            self.scope.cancel()
        elif deed == "around":
            self.around.cancel()
        elif deed == "leave":
            self.leave.set()
        elif not self.runs:
            return
        elif deed == "cancel":
            self.runs[-1].cancel()
        elif deed == "dispose":
            await self.runs[0].dispose()
        elif deed == "dispose the latest":
            await self.runs[-1].dispose()

    def check(self) -> None:
        """What holds whatever was interrupted when."""
        for run, settled, events in zip(self.runs, self.settled, self.streams, strict=True):
            (result,) = settled
            assert result.stop_reason in {"completed", "aborted"}
            kept = [block.text for part in result.messages for block in part if isinstance(block, TextBlock)]
            chunks = [event.text for event in events if isinstance(event, TextChunk)]
            assert "".join(chunks) == "".join(kept)
            assert chunks == SAID[: len(chunks)]
            assert result.stop_reason == "aborted" or chunks == SAID
            decided = tuple(event.record for event in events if isinstance(event, PermissionDecided))
            assert decided == result.permissions
            assert not any(isinstance(event, EventsLagged) for event in events)
            told = [event for event in self.lifecycle if event.id == run.id]
            assert [type(event) for event in told] == [RunStarted, RunEnded]
            assert told[1].stop_reason == result.stop_reason
        assert len(self.lifecycle) == 2 * len(self.runs)
        assert self.scene.failures == []
        for agent in self.scene.host.agents:
            assert agent.exited.is_set()
            answered = Counter(frame["id"] for frame in agent.received if "method" not in frame)
            assert set(answered.values()) <= {1}


DEEDS = ["cancel", "abort", "dispose", "dispose the latest", "scope", "around", "leave"]


@pytest.mark.parametrize(("manner", "beginning"), [("run", 0), ("start", 0), ("start", 2)])
@pytest.mark.parametrize("deed", DEEDS)
async def test_a_run_is_interrupted_at_every_moment(
    deed: str, manner: str, beginning: int, tmp_path: Path
) -> None:
    """Counted from the call of `start`, or from the second turn, until there is nothing to interrupt."""
    stop_reasons: list[str] = []
    for moment in range(MOMENTS):
        watched = Watched(tmp_path)

        async def interfere(moment: int = moment, watched: Watched = watched) -> None:
            await watched.begun[beginning].wait()
            for _ in range(moment):
                await trio.lowlevel.checkpoint()
            await watched.do(deed)

        await watched.conduct(interfere, manner=manner)
        watched.check()
        # `aborted` sorts first: one aborted turn is enough to call the moment so.
        stop_reasons.append(min((str(one[0].stop_reason) for one in watched.settled), default="none"))
        if "aborted" in stop_reasons and stop_reasons[-3:] == ["completed"] * 3:
            break
    else:
        pytest.fail("the end was not reached, or nothing was interrupted")


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_run_is_interrupted_from_its_own_permission_handler(deed: str, tmp_path: Path) -> None:
    for manner in ("start", "run"):
        watched = Watched(tmp_path)

        async def do_it(watched: Watched = watched) -> None:
            await watched.do(deed)

        watched.in_handler = do_it
        await watched.conduct(manner=manner)
        watched.check()
        assert watched.settled[0][0].stop_reason == "aborted"


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_run_is_interrupted_inside_the_loop_over_its_events(deed: str, tmp_path: Path) -> None:
    for manner in ("start", "run"):
        for number in range(1, 9):
            watched = Watched(tmp_path)

            async def do_it(at: int, watched: Watched = watched, number: int = number) -> None:
                if at == number:
                    await watched.do(deed)

            watched.in_loop = do_it
            await watched.conduct(manner=manner)
            watched.check()
