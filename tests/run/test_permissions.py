"""The policy `ask` with real children; frame by frame it is tested in memory."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from acp_subagent import Deadlines, PermissionRequest
from tests.run.stage import Stage
from tests.run.waiting import answers

CANCELLED = {"outcome": {"outcome": "cancelled"}}


def asking(*calls: str, wait: bool = True) -> list[dict[str, Any]]:
    """Requests for permission to edit, one for each call."""
    return [{"permission": {"tool_call": {"toolCallId": c, "kind": "edit"}, "wait": wait}} for c in calls]


def chosen(option_id: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


async def test_the_host_decides_on_several_at_once(stage: Stage) -> None:
    both = trio.Event()
    seen: list[str] = []

    async def handler(request: PermissionRequest) -> str:
        seen.append(request.call.id)
        if len(seen) == 2:
            both.set()
        await both.wait()
        return "allow" if request.call.id == "a" else "deny"

    turn = [*asking("a", "b", wait=False), {"wait_requests": True}, {"text": "done"}]
    async with stage.service({"turns": [turn]}, permission="ask", permission_handler=handler) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.text == "done"
    decisions = {record.tool_call_id: record.decision for record in result.permissions}
    assert decisions == {"a": "allowed", "b": "denied"}
    assert sorted(map(str, answers(stage.logs[0][0]))) == sorted(
        map(str, [chosen("allow-once"), chosen("reject-once")])
    )


async def test_a_handler_that_overruns_its_deadline_means_deny(stage: Stage) -> None:
    async def handler(request: object) -> str:
        await trio.sleep_forever()
        return "allow"

    turn = [*asking("a"), {"text": "went on"}]
    async with stage.service({"turns": [turn]}, permission="ask", permission_handler=handler) as subagents:
        request = stage.request(deadlines=Deadlines(permission_seconds=0.2))
        result = await subagents.run("fake", request)
    assert result.text == "went on"
    assert answers(stage.logs[0][0]) == [chosen("reject-once")]


@pytest.mark.parametrize("deed", ["cancel", "dispose"])
async def test_a_handler_may_end_its_own_run(deed: str, stage: Stage) -> None:
    started, runs = trio.Event(), list[Any]()

    async def handler(request: object) -> str:
        await started.wait()
        if deed == "cancel":
            runs[0].cancel()
        else:
            await runs[0].dispose()
        return "allow"

    turn = [*asking("a"), {"sleep": 20}]
    async with stage.service({"turns": [turn]}, permission="ask", permission_handler=handler) as subagents:
        runs.append(await subagents.start("fake", stage.request()))
        started.set()
        result = await runs[0].result()
        assert (await runs[0].dispose()).clean
    assert result.stop_reason == "aborted"
    if deed == "dispose":
        assert answers(stage.logs[0][0]) == [CANCELLED]
