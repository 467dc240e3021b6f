"""Proof of life and death by the kernel: a socket that every process of a cell holds.

It closes when its owner dies, and not before: nobody has to be asked, and nothing is waited for by time.
"""

from __future__ import annotations

import os
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
            if not await stream.receive_some():
                return  # it died before it was in place
            self.met += 1
            self.alive += 1
            self._change()
            try:
                while await stream.receive_some():
                    continue
            except trio.BrokenResourceError:
                self.alive -= 1
            else:
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


def marked(mark: str) -> list[int]:
    """The living processes with this entry in their environment (zombies are dead)."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                state = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue  # gone meanwhile
            if state not in "ZX" and mark.encode() in environment.split(b"\0"):
                found.append(int(entry))
    return found
