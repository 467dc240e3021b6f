"""A chain of turns from the first to the last, with everything that was seen of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acp_subagent import SubagentResult
from tests.memory.agent import Scene, Script


async def played(
    folder: Path, script: Script, *, prompts: int = 1, **settings: Any
) -> tuple[list[SubagentResult], list[Any], Scene]:
    """The results of so many turns, with the events of all of them."""
    scene = Scene(folder, script, **settings)
    results, events = [], []
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as first:
            run: Any = first
            for number in range(prompts):
                if number:
                    run = await first.resume("more")  # type: ignore[attr-defined]  # an ACP run has it
                events += [event async for event in run.events()]
                results.append(await run.result())
    return results, events, scene
