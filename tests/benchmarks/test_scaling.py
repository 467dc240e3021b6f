"""Costs do not grow with what came before, counted in calls of this package's own functions, not in time."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType

import trio

import acp_subagent
from acp_subagent import (
    AcpConfig,
    AcpProvider,
    Parent,
    SubagentRequest,
    SubagentService,
    SupportsResume,
    open_subagents,
)
from benchmarks.provision import made_agent

PACKAGE = str(Path(acp_subagent.__file__).parent)
AGENT = made_agent(sys.executable).command
REQUEST = SubagentRequest(prompt="go", parent=Parent(cwd="/"))
BOUND_SECONDS = 60.0


class Calls:
    """How many functions of the package were called."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.count += 1


@contextmanager
def counted() -> Iterator[Calls]:
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@asynccontextmanager
async def service(*agent: str) -> AsyncIterator[SubagentService]:
    with trio.fail_after(BOUND_SECONDS):
        async with open_subagents(reaper=False) as subagents:
            config = AcpConfig(
                name="agent", command=AGENT[0], args=[*AGENT[1:], *agent], settle_grace_seconds=0.0001
            )
            subagents.register(AcpProvider(config))
            yield subagents


async def calls_of_a_turn(updates: int) -> int:
    async with service("chunks", str(updates), "180") as subagents:
        async with await subagents.start("agent", REQUEST) as run:
            with counted() as calls:
                result = await run.result()
    assert result.counters.updates == updates
    return calls.count


async def test_a_late_update_of_a_turn_costs_as_many_calls_as_an_early_one() -> None:
    few, many = await calls_of_a_turn(2000), await calls_of_a_turn(20_000)
    assert many / 20_000 < 1.25 * few / 2000


async def test_an_update_costs_a_handful_of_calls() -> None:
    assert await calls_of_a_turn(20_000) / 20_000 < 6


async def test_a_late_turn_of_a_session_costs_as_many_calls_as_an_early_one_and_keeps_nothing() -> None:
    calls_of: list[int] = []
    kept: list[int] = []
    async with service("chunks", "1", "180") as subagents:
        async with await subagents.start("agent", REQUEST) as run:
            assert isinstance(run, SupportsResume)
            await run.result()
            tracemalloc.start()
            try:
                for _ in range(5):
                    with counted() as calls:
                        for _ in range(20):
                            async with await run.resume("go") as follow_up:
                                await follow_up.result()
                    calls_of.append(calls.count)
                    gc.collect()
                    kept.append(tracemalloc.get_traced_memory()[0])
            finally:
                tracemalloc.stop()
    assert calls_of[-1] < 1.25 * calls_of[0]
    # A turn may leave a few counters behind, no record.
    assert kept[-1] - kept[1] < 60 * 1024


async def test_a_run_costs_as_many_calls_among_many_other_processes() -> None:
    async with service("chunks", "1", "180") as subagents:
        await subagents.run("agent", REQUEST)
        alone = await calls_of_runs(subagents)
        with bystanders(150):
            among_others = await calls_of_runs(subagents)
    assert among_others < 1.25 * alone


async def calls_of_runs(subagents: SubagentService) -> int:
    with counted() as calls:
        for _ in range(5):
            await subagents.run("agent", REQUEST)
    return calls.count


@contextmanager
def bystanders(count: int) -> Iterator[None]:
    with subprocess.Popen(
        [*AGENT, "bystanders", str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        process.communicate(timeout=30)
