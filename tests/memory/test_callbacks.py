"""What plain functions of the host do while they are called: it comes too late for what they are told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import Failure, RunEnded, RunStarted, Snapshot, SubagentStartError
from tests.memory.agent import Agent, Scene, text

DEEDS = ["cancel", "abort", "scope", "subscribe", "hurry", "unregister"]


class Host:
    """A host whose callbacks interfere with the run that they are told of."""

    def __init__(self, scene: Scene, deed: str) -> None:
        self.scene = scene
        self.deed = deed
        self.runs: list[Any] = []
        self.told: list[Any] = []
        self.subscriptions: list[Any] = []
        self.abort, self.scope = trio.Event(), trio.CancelScope()
        self.service: Any = None

    def interfere(self) -> None:
        """Do the deed."""
        if self.deed == "cancel":
            self.runs[0].cancel()
        elif self.deed == "abort":
            self.abort.set()
        elif self.deed == "scope":
            self.scope.cancel()
        elif self.deed == "subscribe":
            self.subscriptions.append(self.runs[0].events(stderr=True))
        elif self.deed == "hurry":
            self.service.hurry()
        elif self.deed == "unregister":
            self.scene.registration.unregister()

    def on_failure(self, failure: Failure) -> None:
        """Interfere whenever something has failed."""
        self.told.append(failure)
        if self.runs:
            self.interfere()

    def on_ended(self, event: object) -> None:
        """Interfere whenever a run has ended."""
        self.told.append(event)
        if isinstance(event, RunEnded):
            self.interfere()

    async def lead(self, service: Any, *, one_shot: bool) -> None:
        """One run, in a scope that a callback may cancel."""
        self.service = service
        with self.scope:
            request = self.scene.request(abort=self.abort)
            if one_shot:
                await service.run("memory", request, on_ready=self.runs.append)
            else:
                async with await service.start("memory", request) as run:
                    self.runs.append(run)
                    await run.result()


@pytest.mark.parametrize("one_shot", [True, False])
@pytest.mark.parametrize("deed", DEEDS)
async def test_a_run_whose_failure_is_told_keeps_it_whatever_is_done_then(
    deed: str, one_shot: bool, tmp_path: Path
) -> None:
    async def dies(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()
        await agent.send(text("so far"))
        agent.exit(3)

    host = Host(Scene(tmp_path, dies), deed)
    async with host.scene.service(on_failure=host.on_failure) as service:
        await host.lead(service, one_shot=one_shot)
        result = await host.runs[0].result()
    assert (result.stop_reason, result.text) == ("error", "so far")
    assert result.failure.category == "process-exit"
    assert host.told == [result.failure]
    assert host.scene.agent.ended_at is not None
    for subscription in host.subscriptions:
        first, *_ = [event async for event in subscription]
        assert isinstance(first, Snapshot)
        assert first.messages == result.messages


@pytest.mark.parametrize("one_shot", [True, False])
@pytest.mark.parametrize("deed", DEEDS)
async def test_a_run_whose_end_is_told_has_ended_so_whatever_is_done_then(
    deed: str, one_shot: bool, tmp_path: Path
) -> None:
    async def answers(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(text("all of it"))
        await agent.stop(prompt)

    host = Host(Scene(tmp_path, answers), deed)
    async with host.scene.service() as service:
        service.observe(host.on_ended)
        await host.lead(service, one_shot=one_shot)
        result = await host.runs[0].result()
    assert (result.stop_reason, result.text) == ("completed", "all of it")
    assert [type(event) for event in host.told] == [RunStarted, RunEnded]
    assert host.scene.failures == []
    for subscription in host.subscriptions:
        (only,) = [event async for event in subscription]
        assert isinstance(only, Snapshot)
        assert only.messages == result.messages


@pytest.mark.parametrize("deed", ["abort", "hurry"])
async def test_a_start_whose_failure_is_told_raises_it_whatever_is_done_then(
    deed: str, tmp_path: Path
) -> None:
    async def leaves(agent: Agent) -> None:
        agent.exit(1)

    host = Host(Scene(tmp_path, leaves), deed)

    def on_failure(failure: Failure) -> None:
        host.told.append(failure)
        host.interfere()

    async with host.scene.service(on_failure=on_failure) as service:
        with pytest.raises(SubagentStartError) as caught:
            await host.lead(service, one_shot=False)
    assert caught.value.failure.category == "process-exit"
    assert host.told == [caught.value.failure]
