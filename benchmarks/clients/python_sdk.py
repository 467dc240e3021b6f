"""The official Python SDK (`agent-client-protocol`), used as its own documentation does."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AgentMessageChunk, AllowedOutcome, RequestPermissionResponse, TextContentBlock
from work import (
    LONGEST_TEXT_BYTES,
    Stopwatch,
    conversation,
    median,
    perform,
    resident_bytes,
)


class Client:
    """Collects the text, allows everything."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def on_connect(self, conn: object) -> None:
        pass

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContentBlock):
            self.parts.append(update.content.text)

    async def request_permission(self, session_id, tool_call, options, **_):
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )


class Conversation:
    """One child in one session."""

    def __init__(self, client: Client, connection, session_id: str, process) -> None:
        self._client, self._connection, self._session_id = client, connection, session_id
        self.process = process

    async def turn(self) -> str:
        self._client.parts.clear()
        await self._connection.prompt(session_id=self._session_id, prompt=[text_block("go")])
        return "".join(self._client.parts)


@asynccontextmanager
async def opened(agent: list[str]) -> AsyncIterator[Conversation]:
    client = Client()
    # Its reader refuses a line above the limit it is given; stderr is left as it is by default.
    async with spawn_agent_process(client, *agent, transport_kwargs={"limit": LONGEST_TEXT_BYTES}) as (
        connection,
        process,
    ):
        await connection.initialize(protocol_version=PROTOCOL_VERSION)
        session = await connection.new_session(cwd=os.sep, mcp_servers=[])
        yield Conversation(client, connection, session.session_id, process)


async def converse(agent: list[str]) -> str:
    async with opened(agent) as child:
        return await child.turn()


async def stream(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    async with opened(agent) as child:
        watch = Stopwatch()
        text = await child.turn()
        return conversation(watch.read(), text)


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
    held: list[asyncio.Task[None]] = []
    processes = []

    async def hold(ready: asyncio.Event) -> None:
        async with opened(agent) as child:
            processes.append(child.process)
            ready.set()
            await child.turn()

    async def open_up_to(count: int) -> int:
        while len(held) < count:
            ready = asyncio.Event()
            held.append(asyncio.create_task(hold(ready)))
            await ready.wait()
        await asyncio.sleep(0.2)
        return resident_bytes(collect=True)

    few = await open_up_to(numbers["few"])
    many = await open_up_to(numbers["many"])
    for process in processes:
        process.kill()
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
