"""What ends a stream of events agrees with the result: every way to end, seen early, late and afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    Deadlines,
    Event,
    PermissionDecided,
    PlanChanged,
    RunEnded,
    RunStarted,
    Snapshot,
    StageChanged,
    SubagentAbortedError,
    SubagentResult,
    SubagentRun,
    SubagentService,
    TextBlock,
    TextChunk,
    ToolCallChanged,
)
from tests.memory.agent import Agent, Scene, permission, text, update

CALL = {"toolCallId": "call", "title": "t"}
PLAN = [{"content": "look", "priority": "low", "status": "pending"}]
UNTIL_LATE_SECONDS = 1.0  # the late subscription comes in the middle of the turn
SPOKEN_SECONDS = 2.0  # by then everything was said but the end

AgentDeed = Callable[[Agent, int], Awaitable[None]]


def answers(**answer: Any) -> AgentDeed:
    async def deed(agent: Agent, prompt: int) -> None:
        await agent.send({"id": prompt, **answer})

    return deed


def stops(reason: object) -> AgentDeed:
    return answers(result={"stopReason": reason})


async def exits(agent: Agent, prompt: int) -> None:
    agent.exit(3)


async def hangs_up(agent: Agent, prompt: int) -> None:
    agent.close_stdout()


async def says_too_much(agent: Agent, prompt: int) -> None:
    await agent.raw(b"x" * 10_000)


async def obeys(agent: Agent, prompt: int) -> None:
    await agent.expect("session/cancel")
    await agent.stop(prompt, "end_turn")


async def ignores(agent: Agent, prompt: int) -> None:
    await agent.stay()


async def works_on_a_tool_call(agent: Agent, prompt: int) -> None:
    await agent.send(update("tool_call_update", toolCallId="call", status="in_progress"))
    await agent.stay()


@dataclass(frozen=True)
class Ending:
    """One way to end: what agent and host do once everything was said, and what it is then."""

    agent: AgentDeed
    stop_reason: str
    category: str | None = None
    host: str = "waits"  #: what the host does; see `conduct` and `interfere`
    request: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def by_deadline(**seconds: float) -> dict[str, Any]:
    return {"deadlines": Deadlines(**seconds)}


ENDINGS = {
    "completed": Ending(stops("end_turn"), "completed"),
    "max tokens": Ending(stops("max_tokens"), "max-tokens"),
    "refusal": Ending(stops("refusal"), "refusal"),
    "cancelled by the agent": Ending(stops("cancelled"), "aborted"),
    "too many requests": Ending(stops("max_turn_requests"), "error", "remote-limit"),
    "a word to come": Ending(stops("of_a_kind_to_come"), "error", "unknown"),
    "no word": Ending(stops(5), "error", "protocol"),
    "an error": Ending(answers(error={"code": -32603, "message": "no"}), "error", "remote-error"),
    "a login": Ending(answers(error={"code": -32000, "message": "no"}), "error", "auth-required"),
    "exit": Ending(exits, "error", "process-exit"),
    "hung up": Ending(hangs_up, "error", "transport"),
    "too large": Ending(says_too_much, "error", "protocol", settings={"max_frame_bytes": 5_000}),
    "cancel": Ending(obeys, "aborted", host="cancels"),
    "cancel, ignored": Ending(ignores, "aborted", host="cancels"),
    "abort": Ending(obeys, "aborted", host="aborts"),
    "dispose": Ending(obeys, "aborted", host="disposes"),
    "dispose, ignored": Ending(ignores, "aborted", host="disposes"),
    "scope": Ending(obeys, "aborted", host="cancels its scope"),
    "scope, ignored": Ending(ignores, "aborted", host="cancels its scope"),
    "service": Ending(obeys, "aborted", host="closes the service"),
    "service, ignored": Ending(ignores, "aborted", host="closes the service"),
    "turn deadline": Ending(obeys, "error", "timeout", request=by_deadline(turn_seconds=3)),
    "turn deadline, ignored": Ending(ignores, "error", "timeout", request=by_deadline(turn_seconds=3)),
    "idle deadline": Ending(obeys, "error", "timeout", request=by_deadline(idle_seconds=3)),
    "tool idle deadline": Ending(
        works_on_a_tool_call, "error", "timeout", request=by_deadline(tool_idle_seconds=3)
    ),
}


class Told:
    """What was told of one run, by every way that there is. Its streams are read in `nursery`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.runs: list[SubagentRun] = []
        self.lifecycle: list[Any] = []
        self.settled: list[SubagentResult] = []
        self.early: list[Event] = []
        self.late: list[Event] = []

    def ready(self, run: SubagentRun) -> None:
        """Subscribe as soon as there is a run."""
        self.runs.append(run)
        run.when_settled(self.settled.append)
        self.follow(self.early)

    def follow(self, into: list[Event]) -> None:
        """Read one stream to its end; the result is there at that moment."""
        run = self.runs[0]
        subscription = run.events()

        async def read() -> None:
            async for event in subscription:
                into.append(event)
            assert len(self.settled) == 1
            ended_at = trio.current_time()
            assert await run.result() is self.settled[0]
            assert trio.current_time() == ended_at

        self._nursery.start_soon(read)


async def lead(subagents: SubagentService, scene: Scene, told: Told, manner: str, request: Any) -> None:
    """Start a run in one of the two manners, and stay with it."""
    if manner == "run":
        await subagents.run("memory", request, on_ready=told.ready)
    else:
        run = await subagents.start("memory", request)
        told.ready(run)
        async with run:
            await run.result()


def speaking(ending: Ending) -> Callable[[Agent], Awaitable[None]]:
    """An agent that says a little of everything, and then ends the turn in this way."""

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(text("one ", "m"), update("tool_call", **CALL), permission("p"))
        await trio.sleep(SPOKEN_SECONDS)
        await agent.send(text("two", "m"), update("plan", entries=PLAN), text("three", "n"))
        await ending.agent(agent, prompt)

    return script


@pytest.mark.parametrize("manner", ["start", "run"])
@pytest.mark.parametrize("name", ENDINGS)
async def test_the_end_of_a_stream_agrees_with_the_result(name: str, manner: str, tmp_path: Path) -> None:
    ending = ENDINGS[name]
    scene, abort, scope = (
        Scene(tmp_path, speaking(ending), **ending.settings),
        trio.Event(),
        trio.CancelScope(),
    )
    request = scene.request(abort=abort, **ending.request)
    async with trio.open_nursery() as nursery:
        told = Told(nursery)
        async with scene.service() as subagents:
            subagents.observe(told.lifecycle.append)

            async def run_to_the_end() -> None:
                with scope:
                    await lead(subagents, scene, told, manner, request)

            nursery.start_soon(run_to_the_end)
            await trio.sleep(UNTIL_LATE_SECONDS)
            told.follow(told.late)
            await trio.sleep(2 * SPOKEN_SECONDS - UNTIL_LATE_SECONDS)
            if ending.host == "cancels":
                told.runs[0].cancel()
            elif ending.host == "aborts":
                abort.set()
            elif ending.host == "disposes":
                await told.runs[0].dispose()
            elif ending.host == "cancels its scope":
                scope.cancel()
            if ending.host != "closes the service":
                await told.runs[0].result()
    (result,) = told.settled
    assert (result.stop_reason, result.failure and result.failure.category) == (
        ending.stop_reason,
        ending.category,
    )
    assert scene.failures == ([] if result.failure is None else [result.failure])
    assert_they_agree(told, result)
    assert await rest_of(told.runs[0]) == [told_by_a_snapshot(result, told.late[0])]


def assert_they_agree(told: Told, result: SubagentResult) -> None:
    """Both streams and the lifecycle say what the result says, once and in order."""
    whole = [block.text for message in result.messages for block in message if isinstance(block, TextBlock)]
    assert "".join(whole) == "one twothree"
    chunks = [event.text for event in told.early if isinstance(event, TextChunk)]
    assert chunks == ["one ", "two", "three"]
    snapshot, *others = told.late
    assert isinstance(snapshot, Snapshot)
    assert snapshot.messages == ((TextBlock("one "),),)
    assert others == told.early[-len(others) :]
    for stream in (told.early, others):
        assert not any(isinstance(event, Snapshot) for event in stream)
        assert tuple([event for event in stream if isinstance(event, PlanChanged)][-1].entries) == result.plan
    decided = tuple(event.record for event in told.early if isinstance(event, PermissionDecided))
    assert decided == result.permissions
    calls = [event.call for event in told.early if isinstance(event, ToolCallChanged)]
    assert [call.id for call in result.tool_calls] == [calls[0].id] == ["call"]
    started, ended = told.lifecycle
    assert isinstance(started, RunStarted)
    assert isinstance(ended, RunEnded)
    assert (ended.stop_reason, ended.output) == (result.stop_reason, result.output)
    stages = [event.stage for event in told.early if isinstance(event, StageChanged)]
    assert stages == (["prompt"] if result.teardown is None else ["prompt", "teardown"])


def told_by_a_snapshot(result: SubagentResult, seen: Event) -> Snapshot:
    """What a subscription that comes after the end is told: what the result says."""
    assert isinstance(seen, Snapshot)
    return Snapshot(
        stage="teardown",
        messages=result.messages,
        tool_calls=result.tool_calls,
        plan=result.plan,
        usage=result.usage,
        permissions=result.permissions,
        session=seen.session,
    )


async def rest_of(run: SubagentRun) -> list[Event]:
    return [event async for event in run.events()]


@pytest.mark.parametrize("how", ["cancel", "dispose", "abort", "scope", "service"])
async def test_a_run_that_ends_before_its_prompt_has_streams_that_end_too(how: str, tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stay()

    scene, abort, scope = Scene(tmp_path, script), trio.Event(), trio.CancelScope()
    async with trio.open_nursery() as nursery:
        told = Told(nursery)
        async with scene.service() as subagents:
            with scope:
                run = await subagents.start("memory", scene.request(abort=abort))
                told.ready(run)
                if how == "cancel":
                    run.cancel()
                elif how == "dispose":
                    await run.dispose()
                elif how == "abort":
                    abort.set()
                elif how == "scope":
                    scope.cancel()
                    async with run:
                        pass
                if how != "service":
                    await run.result()
    (result,) = told.settled
    assert result.stop_reason == "aborted"
    assert result.messages == ()
    assert not any(isinstance(event, TextChunk) for event in told.early)
    assert "session/prompt" not in [frame.get("method") for frame in scene.agent.received]
    (after,) = await rest_of(told.runs[0])
    assert isinstance(after, Snapshot)


async def test_a_start_that_was_aborted_has_nothing_to_be_told_of(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.stay()

    scene, abort, ready = Scene(tmp_path, script), trio.Event(), list[SubagentRun]()
    async with scene.service() as subagents, trio.open_nursery() as nursery:
        subagents.observe(scene.failures.append)  # type: ignore[arg-type]  # nothing is to come at all

        async def set_it() -> None:
            await trio.sleep(1)
            abort.set()

        nursery.start_soon(set_it)
        with pytest.raises(SubagentAbortedError):
            await subagents.run("memory", scene.request(abort=abort), on_ready=ready.append)
    assert (ready, scene.failures) == ([], [])
