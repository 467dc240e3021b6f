"""Waiting for what another process does, and small things around runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio

from acp_subagent import SubagentRun, SupportsResume


async def until_exists(path: Path) -> None:
    """Wait until another process has made this file."""
    while not path.exists():  # noqa: ASYNC110, ASYNC240  nothing announces it
        await trio.sleep(0.005)


async def resumed(run: SubagentRun, prompt: str = "more", **more: Any) -> SubagentRun:
    """Another turn in the session of `run`."""
    assert isinstance(run, SupportsResume)
    return await run.resume(prompt, **more)


def frames(log: Path, *, sender: str) -> list[dict[str, Any]]:
    """What one side said, in order."""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    return [entry["frame"] for entry in entries if entry["from"] == sender and "frame" in entry]


def methods(log: Path) -> list[str]:
    """What we asked for and told, in order."""
    return [frame["method"] for frame in frames(log, sender="client") if "method" in frame]


def answers(log: Path) -> list[Any]:
    """What we answered to the agent's requests, in order."""
    said = [frame for frame in frames(log, sender="client") if "method" not in frame]
    return [frame.get("result", frame.get("error")) for frame in said]
