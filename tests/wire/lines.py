"""A connection over in-memory streams whose tasks run, its far end, and a back-pressure to open and close."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
import trio.testing

from acp_subagent.wire.connection import BackPressure, Connection, Tap, WireLimits
from tests.wire.recording import Recording

UPDATE = b'{"jsonrpc":"2.0","method":"update","params":{"n":%d}}\n'
REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"ask","params":{}}\n'


@dataclass
class Gate:
    """A back-pressure that the test opens and closes."""

    opened: trio.Event = field(default_factory=trio.Event)
    waits: int = 0

    @property
    def ready(self) -> bool:
        return self.opened.is_set()

    async def wait(self) -> None:
        self.waits += 1
        await self.opened.wait()


@dataclass
class Line:
    """A connection whose tasks run, and the far end of its streams."""

    connection: Connection
    recording: Recording
    far: trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]
    nursery: trio.Nursery

    async def says(self, data: bytes) -> None:
        """The far end sends, and everything that follows from it happens."""
        await self.far.send_all(data)
        await trio.testing.wait_all_tasks_blocked()

    async def heard_by_far(self) -> list[dict[str, object]]:
        await trio.testing.wait_all_tasks_blocked()
        return [json.loads(line) for line in (await self.far.receive_some()).splitlines()]

    def numbers(self) -> list[object]:
        """The numbers of the updates that came."""
        return [params["n"] for _, _, params in self.recording.heard if isinstance(params, dict)]


@asynccontextmanager
async def line(
    limits: WireLimits = WireLimits(),  # noqa: B008 - frozen
    *,
    tap: Tap | None = None,
    before_read: BackPressure | None = None,
) -> AsyncIterator[Line]:
    near, far = trio.testing.memory_stream_pair()
    recording = Recording()
    connection = Connection(
        near.receive_stream, near.send_stream, recording, limits, tap=tap, before_read=before_read
    )
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.read)
            nursery.start_soon(connection.write)
            yield Line(connection, recording, far, nursery)
            connection.close_writer()
            connection.stop()
