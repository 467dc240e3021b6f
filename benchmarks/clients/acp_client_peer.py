"""PyPI's `acp-client`, used as its own documentation does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from acp_client import Agent
from work import Stopwatch, conversation, median, perform, resident_bytes


async def allow(request: dict) -> str:
    return request["options"][0]["optionId"]


def made(agent: list[str]) -> Agent:
    return Agent(agent, Path("/"), permission=allow)


async def stop(agent: Agent) -> None:
    """End the child. It returns when the child is gone, as the others do."""
    reading = agent.reading
    await agent.stop()
    if reading is not None:
        await reading


async def converse(agent: list[str]) -> str:
    client = made(agent)
    text = await client.ask("go")
    await stop(client)
    return text


async def stream(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    client = made(agent)
    await client.start()
    watch = Stopwatch()
    text = await client.ask("go")
    measured = watch.read()
    await stop(client)
    return conversation(measured, text)


async def ask(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    return {"p50_seconds": int(await converse(agent)) / 1e9}


async def first_byte(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    return {"characters": len(await converse(agent))}


async def runs(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    seconds = []
    await converse(agent)
    for _ in range(numbers["count"]):
        began = time.perf_counter()
        await converse(agent)
        seconds.append(time.perf_counter() - began)
    return {"p50_seconds": median(seconds)}


async def crowd(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    await converse(agent)
    left = numbers["count"]

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await converse(agent)

    watch = Stopwatch()
    await asyncio.gather(*(worker() for _ in range(numbers["at_a_time"])))
    return {**watch.read()}


async def children(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    clients: list[Agent] = []
    held: list[asyncio.Task[str]] = []

    async def open_up_to(count: int) -> int:
        while len(clients) < count:
            clients.append(made(agent))
            await clients[-1].start()
            held.append(asyncio.create_task(clients[-1].ask("go")))
        await asyncio.sleep(0.2)
        return resident_bytes(collect=True)

    few = await open_up_to(numbers["few"])
    many = await open_up_to(numbers["many"])
    for client in clients:
        await stop(client)
    await asyncio.gather(*held, return_exceptions=True)
    return {"bytes_per_child": (many - few) / (numbers["many"] - numbers["few"])}


Work = Callable[[dict[str, int], list[str]], Awaitable[dict[str, object]]]


def run(work: Work) -> Callable[[dict[str, int], list[str]], dict[str, object]]:
    async def main(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
        return await work(numbers, agent)

    return lambda numbers, agent: asyncio.run(main(numbers, agent))


if __name__ == "__main__":
    works = {
        "stream": stream,
        "ask": ask,
        "first_byte": first_byte,
        "runs": runs,
        "crowd": crowd,
        "children": children,
    }
    perform({name: run(work) for name, work in works.items()})
