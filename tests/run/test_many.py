"""Many children side by side in one service: none harms or delays another."""

from __future__ import annotations

import json
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    SubagentResult,
    SubagentService,
    SubagentStartError,
    SubagentTeardownError,
)
from tests.conftest import children
from tests.run.stage import Stage

ASK = {"permission": {"tool_call": {"toolCallId": "c", "title": "t", "kind": "edit"}}}

#: What a hundred children do beside the good ones.
NEIGHBOURS: dict[str, dict[str, Any]] = {
    "crashes": {"turns": [[{"text": "x"}, {"signal": "SEGV"}]]},
    "hangs": {"turns": [[{"text": "x"}, {"sleep": 60}]], "on_cancel": "ignore", "on_eof": {"ignore": True}},
    "floods": {"turns": [[{"text": {"size": 4000, "forever": True}}]], "on_cancel": "ignore"},
    "floods stderr": {"turns": [[{"stderr": {"text": "e" * 100, "repeat": 200_000}}, {"sleep": 60}]]},
    "leaves at once": {"start": [{"exit": 1}]},
    "makes noise": {"start": [{"raw": {"text": "hello\n", "repeat": 500}}]},
}


def register(subagents: SubagentService, stage: Stage, name: str, scenario: Any, **settings: Any) -> None:
    """A provider of this name; what many say at once is not written down."""
    values = stage.config(scenario, logged=False, **settings)
    subagents.register(AcpProvider(AcpConfig(**{**values, "name": name})))


async def test_a_hundred_children_in_one_service(stage: Stage) -> None:
    results: dict[str, list[SubagentResult]] = {}
    scenario = {"turns": [[{"thought": "hm"}, ASK, {"text": "${prompt}"}]]}

    async def one(subagents: SubagentService, number: int) -> None:
        result = await subagents.run("good", stage.request(f"task {number}"))
        results.setdefault(f"task {number}", []).append(result)

    async with stage.service(bound_seconds=100.0) as subagents:
        register(subagents, stage, "good", scenario)
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(one, subagents, number)
    assert len(results) == 100
    for prompt, (result,) in results.items():
        assert (result.stop_reason, result.text) == ("completed", prompt)
        assert result.teardown is not None
        assert result.teardown.clean
    assert stage.failures == []


async def test_a_crash_a_hang_or_a_flood_harms_no_sibling(stage: Stage) -> None:
    good: list[SubagentResult] = []
    outcomes: dict[str, str] = {}

    async def bad(subagents: SubagentService, name: str) -> None:
        try:
            result = await subagents.run(name, stage.request())
            outcomes[name] = result.failure.category if result.failure else str(result.stop_reason)
        except (SubagentStartError, SubagentTeardownError) as exc:
            outcomes[name] = exc.failure.category

    async with stage.service() as subagents:
        register(subagents, stage, "good", {"turns": [[ASK, {"text": "fine"}]]})
        for name, scenario in NEIGHBOURS.items():
            register(subagents, stage, name, scenario, turn_timeout_seconds=4.0)
        async with trio.open_nursery() as nursery:
            for name in NEIGHBOURS:
                nursery.start_soon(bad, subagents, name)
            for _ in range(10):
                good.append(await subagents.run("good", stage.request()))
    assert [(result.stop_reason, result.text) for result in good] == [("completed", "fine")] * 10
    assert outcomes == {
        "crashes": "process-exit",
        "hangs": "timeout",
        "floods": "timeout",
        "floods stderr": "timeout",
        "leaves at once": "process-exit",
        "makes noise": "protocol",
    }


async def test_no_more_children_than_allowed_and_the_first_to_wait_is_the_first_to_start(
    stage: Stage,
) -> None:
    order: list[int] = []
    most = 0
    before = children()
    scenario = {"turns": [[{"sleep": 0.05}, {"echo": "pid"}]]}

    async def one(subagents: SubagentService, number: int) -> None:
        nonlocal most

        def ready(run: object) -> None:
            nonlocal most
            order.append(number)
            most = max(most, len(children() - before))

        result = await subagents.run("one", stage.request(), on_ready=ready)
        assert isinstance(json.loads(result.text), int)

    async with stage.service(service={"max_concurrent_runs": 1, "reaper": False}) as subagents:
        register(subagents, stage, "one", scenario)
        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(one, subagents, number)
                await wait_all_tasks_blocked(0.01)
    assert most == 1
    assert order == list(range(6))


async def test_waiting_for_a_place_can_be_cancelled_and_leaves_the_queue(stage: Stage) -> None:
    abort = trio.Event()
    async with stage.service(service={"max_concurrent_runs": 1}) as subagents:
        register(subagents, stage, "one", {"turns": [[{"text": "x"}]]})
        async with await subagents.start("one", stage.request()) as run:
            await run.result()
            with trio.move_on_after(0.1) as scope:
                await subagents.start("one", stage.request())
            assert scope.cancelled_caught
        result = await subagents.run("one", stage.request(abort=abort))
    assert result.stop_reason == "completed"
    assert stage.failures == []
