"""Waiting for what another process does, and small things around runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio
from trio.testing import MockClock

from acp_subagent import SubagentRun, SupportsResume
from tests.run.rows import PASSING_SECONDS, Row


async def until_exists(path: Path) -> None:
    """Wait until another process has made this file."""
    while not path.exists():  # noqa: ASYNC110, ASYNC240  nothing announces it
        await trio.sleep(0.005)


async def resumed(run: SubagentRun, prompt: str = "more", **more: Any) -> SubagentRun:
    """Another turn in the session of `run`."""
    assert isinstance(run, SupportsResume)
    return await run.resume(prompt, **more)


def frames(log: Path, *, sender: str) -> list[dict[str, Any]]:
    """What one side said, in order; also while more is being written down."""
    whole, _, _ = log.read_text().rpartition("\n")
    entries = [json.loads(line) for line in whole.splitlines()]
    return [entry["frame"] for entry in entries if entry["from"] == sender and "frame" in entry]


async def let_pass(clock: MockClock, seconds: float, *logs: Path, heard: str) -> None:
    """Let time pass once each agent has heard this of us: a request by its method, an answer by its id."""
    for log in logs:
        await until_exists(log)
        while not any(  # noqa: ASYNC110  nothing announces it
            heard in (frame.get("method"), frame.get("id")) for frame in frames(log, sender="client")
        ):
            await trio.sleep(0.005)
    clock.jump(seconds)


@asynccontextmanager
async def passing(clock: MockClock, row: Row, *logs: Path) -> AsyncIterator[None]:
    """Meanwhile time passes at once, when each agent of the row has come to where it must."""
    async with trio.open_nursery() as nursery:
        if row.time_passes_at is not None:
            heard = row.time_passes_at
            nursery.start_soon(partial(let_pass, clock, PASSING_SECONDS, *logs, heard=heard))
        yield
        nursery.cancel_scope.cancel()


def methods(log: Path) -> list[str]:
    """What we asked for and told, in order."""
    return [frame["method"] for frame in frames(log, sender="client") if "method" in frame]


def answers(log: Path) -> list[Any]:
    """What we answered to the agent's requests, in order."""
    said = [frame for frame in frames(log, sender="client") if "method" not in frame]
    return [frame.get("result", frame.get("error")) for frame in said]
