"""Nothing leaks in the host: 500 runs of mixed outcomes, then the books are compared."""

from __future__ import annotations

import gc
import os
import random
import threading
from typing import Any

import psutil
import pytest
import trio
import trio.testing

from acp_subagent import SubagentError, SubagentService
from tests.conftest import children
from tests.run.stage import Stage

WARM_UP, RUNS, AT_ONCE = 50, 500, 8
MEBIBYTE = 1024 * 1024

#: One agent for all: what it does is in the prompt's place, the scenario.
SCENARIOS: dict[str, dict[str, Any]] = {
    "answers": {"turns": [[{"text": "yes"}]]},
    "exits": {"turns": [[{"text": "x"}, {"exit": 3}]]},
    "dies": {"turns": [[{"signal": "KILL"}]]},
    "refuses": {"session_new": {"error": {"code": -32603, "message": "no"}}},
    "never spoke": {
        "start": [{"raw": {"text": "hello\n", "repeat": 200}}],
        "initialize": {"no_answer": True},
    },
    "errs": {"turns": [[{"error": {"code": -32603, "message": "no"}}]]},
    "leaves a daemon": {"turns": [[{"child": "double-fork"}, {"text": "x"}]]},
    "waits": {"turns": [[{"text": "x"}, {"wait_cancel": True}]]},
    "is not there": {},
}


async def books() -> dict[str, int]:
    """What a host can leak, counted when everything has come to rest."""
    await trio.testing.wait_all_tasks_blocked(0.1)
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        # Idle worker threads are trio's to keep, and leave after ten seconds.
        "threads": sum(not thread.name.startswith("Trio thread") for thread in threading.enumerate()),
        "children": len(children()),
        "tasks": trio.lowlevel.current_statistics().tasks_living,
    }


async def one_run(subagents: SubagentService, name: str, stage: Stage) -> None:
    """Run one agent; its failures are what is asked for here."""
    try:
        if name != "waits":
            await subagents.run(name, stage.request())
            return
        async with await subagents.start(name, stage.request()) as run:
            run.cancel()
            await run.result()
    except SubagentError:
        return


async def many_runs(subagents: SubagentService, names: list[str], stage: Stage) -> None:
    """Run them all, some at a time."""
    limiter = trio.CapacityLimiter(AT_ONCE)

    async def one(name: str) -> None:
        async with limiter:
            await one_run(subagents, name, stage)

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(one, name)


@pytest.mark.timeout(300)
async def test_five_hundred_runs_leave_the_books_as_they_were(stage: Stage) -> None:
    chance = random.Random(7)
    async with stage.service(bound_seconds=280.0) as subagents:
        for name, scenario in SCENARIOS.items():
            missing = {"command": str(stage.folder / "missing")} if name == "is not there" else {}
            subagents.register(stage.provider(scenario, faulty=True, name=name, **missing))
        names = [chance.choice(list(SCENARIOS)) for _ in range(WARM_UP + RUNS)]
        await many_runs(subagents, names[:WARM_UP], stage)
        before, half = await books(), WARM_UP + RUNS // 2
        await many_runs(subagents, names[WARM_UP:half], stage)
        memory_at_half = psutil.Process().memory_info().rss
        await many_runs(subagents, names[half:], stage)
        after, memory = await books(), psutil.Process().memory_info().rss
    stage.logs.clear()  # one log of many conversations at once cannot be judged
    assert after == before
    assert memory - memory_at_half < 2 * MEBIBYTE
