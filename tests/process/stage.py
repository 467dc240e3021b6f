"""The stage for tests with real children: spawning actors, calling the roll, and proofs of life and death.

Life and death are told by the kernel alone: every actor that calls in is known by the credentials of its
socket, and watched through a pidfd, which becomes readable when the process is dead, a zombie included.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from acp_subagent.process.child import Child
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec
from acp_subagent.process.procfs import COOKIE

ACTOR = Path(__file__).with_name("actor.py")


class Roll:
    """Who has called in, and whether they live."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pids: list[int] = []
        self._pidfds: list[int] = []
        self._lines: list[trio.SocketStream] = []
        self._listener = trio.socket.socket(trio.socket.AF_UNIX)

    async def open(self) -> None:
        await self._listener.bind(self.path)
        self._listener.listen(1000)

    async def wait_for(self, count: int, *, within_seconds: float = 20) -> None:
        """Wait until `count` processes have called in altogether."""
        with trio.fail_after(within_seconds):
            while len(self.pids) < count:
                line, _ = await self._listener.accept()
                credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                pid = struct.unpack("3i", credentials)[0]
                self._pidfds.append(os.pidfd_open(pid))
                self._lines.append(trio.SocketStream(line))
                self.pids.append(pid)

    @property
    def living(self) -> list[int]:
        """The pids of those that called in and are not dead."""
        return [
            pid
            for pid, pidfd in zip(self.pids, self._pidfds, strict=True)
            if not select.select([pidfd], [], [], 0)[0]
        ]

    async def wait_until_dead(self, *, within_seconds: float = 20) -> None:
        with trio.fail_after(within_seconds):
            for pidfd in self._pidfds:
                await trio.lowlevel.wait_readable(pidfd)

    def close(self) -> None:
        """Let go of everything, and kill whoever a failed test has left behind."""
        for pidfd in self._pidfds:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        for line in self._lines:
            line.socket.close()
        self._listener.close()


class Stage:
    """One process host, one roll, and short graces."""

    def __init__(self, host: ProcessHost, service_id: str, nursery: trio.Nursery, directory: Path) -> None:
        self.host = host
        self.service_id = service_id
        self.nursery = nursery
        self.directory = directory
        self.roll = Roll(str(directory / "roll"))
        self.children: list[Child] = []

    def spec(
        self, *steps: Any, eof: float = 5, term: float = 5, kill: float = 5, **changes: Any
    ) -> LaunchSpec:
        """An actor that takes these steps; the graces are bounds that no passing test waits for."""
        return launch(
            sys.executable,
            *("-I", "-S", str(ACTOR), self.roll.path, json.dumps(steps)),
            eof_grace_seconds=eof,
            term_grace_seconds=term,
            kill_grace_seconds=kill,
            **changes,
        )

    async def spawn(
        self, *steps: Any, on_stderr: Callable[[bytes], None] | None = None, **changes: Any
    ) -> Child:
        return await self.start(self.spec(*steps, **changes), on_stderr=on_stderr)

    async def start(self, spec: LaunchSpec, *, on_stderr: Callable[[bytes], None] | None = None) -> Child:
        child = await self.host.spawn(spec, self.nursery, on_stderr=on_stderr)
        self.children.append(child)
        return child

    def kill_survivors(self) -> None:
        """End what a test has let survive on purpose."""
        for pid in self.carriers():
            os.kill(pid, signal.SIGKILL)

    def carriers(self) -> list[int]:
        return carriers(self.service_id)


def launch(command: str, *args: str, **changes: Any) -> LaunchSpec:
    """A launch specification in which everything has a value."""
    values: dict[str, Any] = {
        "command": command,
        "args": args,
        "cwd": "/",
        "environment": {"PATH": "/usr/bin:/bin"},
        "eof_grace_seconds": 5.0,
        "term_grace_seconds": 5.0,
        "kill_grace_seconds": 5.0,
        "exit_observation_seconds": 3.0,
        "stderr_tail_bytes": 65536,
    }
    return LaunchSpec(**{**values, **changes})


async def until(condition: Callable[[], bool], *, within_seconds: float = 20) -> None:
    """Wait for something of which nobody tells us."""
    with trio.fail_after(within_seconds):
        while not condition():  # noqa: ASYNC110  (the kernel sets no event for it)
            await trio.sleep(0.01)


@contextmanager
def stranger(roll: Roll) -> Iterator[int]:
    """A process in a session of its own that has nothing to do with any tree; its pid."""
    program = [sys.executable, "-I", "-S", str(ACTOR), roll.path, '["call", "until_eof"]']
    with subprocess.Popen(program, stdin=subprocess.PIPE, start_new_session=True, env={}) as process:
        yield process.pid


def carriers(service_id: str) -> list[int]:
    """The pids of all living processes with a service's cookie, looked up without the code under test."""
    mark = f"/{service_id}.".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            marked = any(v.startswith(COOKIE.encode() + b"=") and mark in v for v in variables)
            if marked and state not in b"ZX":
                found.append(int(entry.name))
    return found


def our_children() -> set[int]:
    """The pids of all children of this process, zombies included."""
    children: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        try:
            children.update(map(int, (thread / "children").read_text().split()))
        except FileNotFoundError:
            continue
    return children


def open_descriptors() -> set[str]:
    """The numbers of all open descriptors of this process."""
    return set(os.listdir("/proc/self/fd"))
