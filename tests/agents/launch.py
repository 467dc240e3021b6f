"""Launching a scene by the public API or by the command line, and seeing what of it is alive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from acp_subagent import AcpConfig, AcpProvider, Parent, PermissionPolicy, SubagentRequest
from tests.agents.scenes import Scene
from tests.support.marks import marked

MARK_VARIABLE = "ACP_AGENTS_TEST_MARK"

#: For one run from its launch to the end of its tree; a machine with much else to do needs some of it.
RUN_BOUND_SECONDS = 100

#: An agent that is not here yet is brought while its first test waits; then the bound above holds.
PROVISION_TIMEOUT_SECONDS = 1800


class Launch:
    """One test's folder for agents to work in, and a mark in the environment of all that is started there."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.mark = uuid.uuid4().hex
        (workspace / "home").mkdir(parents=True)

    def provider(self, scene: Scene, permission: PermissionPolicy = PermissionPolicy.REJECT) -> AcpProvider:
        """The provider ``real`` of the scene's agent."""
        command, *arguments = scene.command
        env = {MARK_VARIABLE: self.mark, **scene.env}
        return AcpProvider(
            AcpConfig(name="real", command=command, args=tuple(arguments), env=env, permission=permission)
        )

    def request(self, scene: Scene) -> SubagentRequest:
        """The scene's prompt, to be worked on in the test's folder."""
        return SubagentRequest(prompt=scene.prompt, parent=Parent(cwd=str(self.workspace)))

    @asynccontextmanager
    async def command_line(self, scene: Scene, *options: str) -> AsyncIterator[CommandLine]:
        """``python -m acp_subagent run`` with the scene's prompt and command; dead when the block is left.

        What the agent needs and the deny-list holds back is passed as a user would, with ``--pass-env``.
        """
        environment = {**os.environ, MARK_VARIABLE: self.mark}
        arguments = ["--cwd", str(self.workspace), *options]
        for name, value in scene.env.items():
            if "KEY" in name:
                environment[name] = value
                arguments += ["--pass-env", name]
            else:
                arguments += ["--env", f"{name}={value}"]
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "acp_subagent", "run", *arguments, scene.prompt, "--", *scene.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=Path(__file__).parents[2],
        )
        try:
            async with trio.open_nursery() as nursery:
                running = CommandLine(process)
                nursery.start_soon(running.read_stderr)
                yield running
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                process.kill()
                await process.wait()
                await running.close()

    def alive(self) -> list[str]:
        """The command lines of the processes alive that carry the mark; this one does not carry it."""
        return list(self.processes().values())

    def processes(self) -> dict[int, str]:
        """The same by their numbers."""
        found = {}
        for pid in marked(f"{MARK_VARIABLE}={self.mark}"):
            with suppress(OSError):  # it is gone
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                found[pid] = line.replace(b"\0", b" ").decode()
        return found


async def first_of(wanted: Callable[[], Awaitable[object]], end: Callable[[], Awaitable[object]]) -> bool:
    """Wait for either; True when what was wanted came, False when the end came before it."""
    came = False

    async def watch() -> None:
        await end()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await wanted()
        came = True
        nursery.cancel_scope.cancel()
    return came


class CommandLine:
    """The command line, running."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.errors = b""
        self._told = trio.Event()

    async def read_stderr(self) -> None:
        """Keep what is said on stderr."""
        async for data in self.stderr:
            self.errors += data
        self._told.set()

    async def first_words(self) -> None:
        """Wait for something on stdout."""
        await self.stdout.receive_some()

    async def outcome(self) -> tuple[int, str]:
        """Wait for the end; the exit code, and what is on stdout from here on."""
        output = b""
        async for data in self.stdout:
            output += data
        await self._told.wait()
        return await self.process.wait(), output.decode()

    async def json_outcome(self) -> tuple[int, dict[str, Any]]:
        """The same when the output is one JSON object."""
        code, output = await self.outcome()
        assert output, f"no object on stdout; exit code {code}: {self.errors.decode()}"
        result: dict[str, Any] = json.loads(output)
        return code, result

    async def close(self) -> None:
        """Close our ends of its pipes."""
        await self.stdout.aclose()
        await self.stderr.aclose()
