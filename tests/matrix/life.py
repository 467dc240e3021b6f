"""Proof of life and death by the kernel: a socket that every process of a cell holds.

It closes when its owner dies, and not before: nobody has to be asked, and nothing is waited for by time. Who
has closed every descriptor holds none; of such a one a pidfd tells.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import trio


class LifeSocket:
    """A Unix socket to which the processes of one cell connect; counts who is alive."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "life")
        self.met = 0  #: connections that there ever were
        self.alive = 0  #: connections that are still open
        self._changed = trio.Event()

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept connections; to be started in a nursery that is cancelled at the end."""
        listener = trio.socket.socket(trio.socket.AF_UNIX)
        with listener:
            await listener.bind(self.path)
            listener.listen(64)
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    connection, _ = await listener.accept()
                    nursery.start_soon(self._hold, trio.SocketStream(connection))

    async def _hold(self, stream: trio.SocketStream) -> None:
        async with stream:
            said = await stream.receive_some()
            if not said:
                return  # it died before it was in place
            self.met += 1
            self.alive += 1
            self._change()
            kind, _, pid = said.decode().partition(" ")
            await (_death_of(int(pid)) if kind == "closed" else _end_of(stream))
            self.alive -= 1
            self._change()

    async def met_all(self, number: int) -> None:
        """Wait until so many have connected."""
        while self.met < number:
            await self._next_change()

    async def all_dead(self) -> None:
        """Wait until nobody is left."""
        while self.alive:
            await self._next_change()

    async def _next_change(self) -> None:
        await self._changed.wait()

    def _change(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()


async def _end_of(stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        while await stream.receive_some():
            continue


async def _death_of(pid: int) -> None:
    """Wait for the death of a process that was in place a moment ago: its number is no other's yet."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)
