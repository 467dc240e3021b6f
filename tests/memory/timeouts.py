"""A run that is to pass a deadline, and what is said of it."""

from __future__ import annotations

from typing import Any

import trio

from tests.memory.agent import Scene


def said(reason: str, stage: str = "prompt") -> str:
    return f"Subagent failure (provider: ACP; stage: {stage}; category: timeout; reason: {reason})"


async def expired(scene: Scene, **request: Any) -> tuple[Any, float]:
    """The result of a run that is to pass a deadline, and the seconds from the ready run to it."""
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request(**request)) as run:
            began = trio.current_time()
            result = await run.result()
            seconds = trio.current_time() - began
    assert result.stop_reason == "error"
    assert result.failure is not None
    assert result.failure.category == "timeout"
    assert result.failure.deadline == result.failure.reason
    assert scene.failures == [result.failure]
    cancels = [frame for frame in scene.agent.received if frame.get("method") == "session/cancel"]
    assert len(cancels) == 1
    return result, seconds
