"""This project, through its public API, with everything on that a user has on."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio
from work import (
    LONGEST_TEXT_BYTES,
    Stopwatch,
    conversation,
    forget_peak,
    median,
    peak_bytes,
    perform,
    resident_bytes,
)

from acp_subagent import AcpConfig, AcpProvider, Parent, SubagentRequest, SupportsResume, open_subagents

if TYPE_CHECKING:
    from acp_subagent import SubagentResult, SubagentRun, SubagentService, Subscription

Work = Callable[["SubagentService", SubagentRequest, dict[str, int]], Awaitable[dict[str, object]]]

#: what a peer that keeps everything keeps too; where memory is the figure, the default bounds it
KEEP_ALL = {"max_output_bytes": LONGEST_TEXT_BYTES}


def serve(work: Work, **settings: object) -> Callable[[dict[str, int], list[str]], dict[str, object]]:
    """The work, done in a service of its own."""

    async def main(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
        async with open_subagents() as subagents:
            config = AcpConfig(name="agent", command=agent[0], args=agent[1:], permission="allow", **settings)
            subagents.register(AcpProvider(config))
            return await work(subagents, SubagentRequest(prompt="go", parent=Parent(cwd="/")), numbers)

    return lambda numbers, agent: trio.run(main, numbers, agent)


def whole(result: SubagentResult) -> str:
    """The text of a turn that must have gone well."""
    if result.stop_reason != "completed" or result.counters.output_dropped_bytes:
        sys.exit(f"the turn did not go well: {result.diagnostic or result.counters}")
    return result.text


async def stream(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    async with await subagents.start("agent", request) as run:
        watch = Stopwatch()
        text = whole(await run.result())
        return conversation(watch.read(), text)


async def subscribe(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    """The same with one subscriber that reads every event."""
    from acp_subagent import TextChunk  # noqa: PLC0415  the start-up of the others is measured too

    async with await subagents.start("agent", request) as run:
        watch = Stopwatch()
        seen = 0
        async for event in run.events():
            if type(event) is TextChunk:
                seen += len(event.text)
        text = whole(await run.result())
        if seen != len(text):
            sys.exit(f"the subscriber saw {seen} of {len(text)} characters")
        return conversation(watch.read(), text)


async def ask(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    result = await subagents.run("agent", request)
    return {"p50_seconds": int(whole(result)) / 1e9}


async def first_byte(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    result = await subagents.run("agent", request)
    return {"characters": len(whole(result))}


async def runs(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    seconds = []
    await subagents.run("agent", request)  # the watchdog's start is paid once per service
    for _ in range(numbers["count"]):
        began = time.perf_counter()
        result = await subagents.run("agent", request)
        seconds.append(time.perf_counter() - began)
        if result.teardown is None or result.teardown.survivors or result.exit_status is None:
            sys.exit("a run ended without the proof that its tree is dead")
    return {"p50_seconds": median(seconds)}


async def crowd(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    await subagents.run("agent", request)
    left = numbers["count"]

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            whole(await subagents.run("agent", request))

    watch = Stopwatch()
    async with trio.open_nursery() as nursery:
        for _ in range(numbers["at_a_time"]):
            nursery.start_soon(worker)
    return {**watch.read()}


async def children(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    opened: list[SubagentRun] = []

    async def open_up_to(count: int) -> int:
        while len(opened) < count:
            opened.append(await subagents.start("agent", request))
        await trio.sleep(0.2)
        return resident_bytes(collect=True)

    few = await open_up_to(numbers["few"])
    many = await open_up_to(numbers["many"])
    return {"bytes_per_child": (many - few) / (numbers["many"] - numbers["few"])}


async def memory(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    """The memory of one turn, above what was there before it and what is kept of its text.

    `reads_per_second` is how fast a subscriber reads, for `seconds`, before it leaves; 0: there is none.
    """
    samples = [0]
    settled: list[SubagentResult] = []

    async def look_now_and_then() -> None:
        while not settled:
            samples.append(resident_bytes())
            await trio.sleep(0.02)

    async with await subagents.start("agent", request) as run:
        run.when_settled(settled.append)
        before = resident_bytes(collect=True)
        forget_peak()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look_now_and_then)
            if numbers.get("reads_per_second"):
                await read_slowly(run.events(), numbers["reads_per_second"], numbers["seconds"])
            result = await run.result()
            nursery.cancel_scope.cancel()
        peak, held = peak_bytes(), resident_bytes(collect=True)
        kept = len(result.text)
        return {
            "peak_bytes": peak - before - kept,
            "streaming_bytes": max(samples) - before - kept,
            "held_bytes": held - before - kept,
            "kept_bytes": kept,
        }


async def read_slowly(events: Subscription, reads_per_second: int, seconds: int) -> None:
    async with events:
        for _ in range(reads_per_second * seconds):
            await anext(events)
            await trio.sleep(1 / reads_per_second)


async def turns(
    subagents: SubagentService, request: SubagentRequest, numbers: dict[str, int]
) -> dict[str, object]:
    """What a turn costs among the last tenth of many on one session; with `early`, among the first tenth."""
    costs = []
    async with await subagents.start("agent", request) as run:
        assert isinstance(run, SupportsResume)
        await run.result()
        for _ in range(numbers["count"]):
            watch = Stopwatch()
            async with await run.resume("go") as follow_up:
                whole(await follow_up.result())
            costs.append(watch.read()["cpu_seconds"])
    tenth = max(1, len(costs) // 10)
    return {"late_seconds": median(costs[:tenth] if numbers.get("early") else costs[-tenth:])}


if __name__ == "__main__":
    perform(
        {
            "stream": serve(stream, **KEEP_ALL),
            "subscribe": serve(subscribe, **KEEP_ALL),
            "ask": serve(ask),
            "runs": serve(runs),
            "first_byte": serve(first_byte),
            "crowd": serve(crowd),
            "children": serve(children),
            "memory": serve(memory),
            "turns": serve(turns, settle_grace_seconds=0.0001),
        }
    )
