"""Many children side by side in one service: none harms or delays another."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    SubagentResult,
    SubagentRun,
    SubagentService,
    SubagentStartError,
    SubagentTeardownError,
)
from tests.conftest import children
from tests.run.stage import Stage
from tests.run.waiting import resumed

ASK = {"permission": {"tool_call": {"toolCallId": "c", "title": "t", "kind": "edit"}}}

GOOD, BAD_OF_EACH_KIND = 70, 5  # together, with the six kinds below, a hundred

#: What children do beside the good ones. Those that hang or flood do so until they are aborted.
NEIGHBOURS: dict[str, dict[str, Any]] = {
    "crashes": {"turns": [[{"text": "x"}, {"signal": "SEGV"}]]},
    "hangs": {"turns": [[{"text": "x"}, {"sleep": 300}]], "on_cancel": "ignore", "on_eof": {"ignore": True}},
    "floods": {"turns": [[{"text": {"size": 4000, "forever": True}}]], "on_cancel": "ignore"},
    "floods stderr": {"turns": [[{"stderr": {"text": "e" * 100, "repeat": 200_000}}, {"sleep": 300}]]},
    "leaves at once": {"start": [{"exit": 1}]},
    "makes noise": {"start": [{"raw": {"text": "hello\n", "repeat": 500}}]},
}


def register(subagents: SubagentService, stage: Stage, name: str, scenario: Any, **settings: Any) -> None:
    """A provider of this name; what many say at once is not written down."""
    values = stage.config(scenario, logged=False, **settings)
    subagents.register(AcpProvider(AcpConfig(**{**values, "name": name})))


class Spawned(trio.abc.Instrument):
    """The names of the tasks that were spawned."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.names.append(task.name)


async def test_a_run_takes_seven_tasks(stage: Stage) -> None:
    """Each more would cost a child two kilobytes and some fifty microseconds.

    The seventh lets a goodbye be cut short; an agent that takes none needs six.
    """
    spawned = Spawned()
    async with stage.service() as subagents:
        register(subagents, stage, "good", {"turns": [[{"text": "x"}]]})
        await subagents.run("good", stage.request())  # the watchdog is started with it
        trio.lowlevel.add_instrument(spawned)
        await subagents.run("good", stage.request())
        trio.lowlevel.remove_instrument(spawned)
    assert len(spawned.names) <= 7, spawned.names


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


class Choir:
    """Children that take their turns all together; how long each one takes is measured."""

    def __init__(self, runs: list[SubagentRun]) -> None:
        self._runs = runs

    async def sing(self) -> list[float]:
        """One turn of each; the seconds that each took, from the prompt to its result."""
        seconds: list[float] = []

        async def take_a_turn(run: SubagentRun) -> None:
            began = trio.current_time()
            async with await resumed(run, "again") as turn:
                result = await turn.result()
            seconds.append(trio.current_time() - began)
            assert (result.stop_reason, result.text) == ("completed", "again")

        async with trio.open_nursery() as nursery:
            for run in self._runs:
                nursery.start_soon(take_a_turn, run)
        return seconds


async def test_of_a_hundred_children_those_that_crash_hang_or_flood_neither_fail_nor_delay_the_others(
    stage: Stage,
) -> None:
    outcomes: dict[str, list[str]] = {name: [] for name in NEIGHBOURS}
    begun, abort, runs = [0], trio.Event(), list[SubagentRun]()

    def note_begun(_: object) -> None:
        begun[0] += 1

    async def misbehave(subagents: SubagentService, name: str) -> None:
        try:
            result = await subagents.run(name, stage.request(abort=abort), on_ready=note_begun)
            outcomes[name].append(result.failure.category if result.failure else str(result.stop_reason))
        except (SubagentStartError, SubagentTeardownError) as exc:
            note_begun(exc)
            outcomes[name].append(exc.failure.category)

    async def stay(subagents: SubagentService) -> None:
        runs.append(await subagents.start("good", stage.request("again")))
        await runs[-1].result()

    async with stage.service(bound_seconds=200.0) as subagents:
        register(subagents, stage, "good", {"turns": [[ASK, {"text": "${prompt}"}]]})
        for name, scenario in NEIGHBOURS.items():
            register(subagents, stage, name, scenario)
        async with trio.open_nursery() as nursery:
            for _ in range(GOOD):
                nursery.start_soon(stay, subagents)
        choir = Choir(runs)
        alone = [seconds for _ in range(3) for seconds in await choir.sing()]
        async with trio.open_nursery() as nursery:
            for name in NEIGHBOURS:
                for _ in range(BAD_OF_EACH_KIND):
                    nursery.start_soon(misbehave, subagents, name)
            beside = await choir.sing()
            while begun[0] < len(NEIGHBOURS) * BAD_OF_EACH_KIND:
                beside += await choir.sing()
            for _ in range(3):  # now each of them crashes, hangs or floods
                beside += await choir.sing()
            abort.set()
    assert len(runs) + len(NEIGHBOURS) * BAD_OF_EACH_KIND == 100
    # They share the machine's processors with the floods; but none waits for any of those that do not end.
    assert median(beside) < 5 * median(alone) + 1.0
    assert max(beside) < 5 * max(alone) + 5.0
    assert outcomes == {
        "crashes": ["process-exit"] * BAD_OF_EACH_KIND,
        "hangs": ["aborted"] * BAD_OF_EACH_KIND,
        "floods": ["aborted"] * BAD_OF_EACH_KIND,
        "floods stderr": ["aborted"] * BAD_OF_EACH_KIND,
        "leaves at once": ["process-exit"] * BAD_OF_EACH_KIND,
        "makes noise": ["protocol"] * BAD_OF_EACH_KIND,
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
