"""The startup deadline at its real length, on a virtual clock: every stage of a start that it covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import Deadlines, Parent, SessionRef, SubagentService, SubagentStartError
from tests.memory.agent import Agent, Scene, Script, text
from tests.memory.timeouts import said


async def silent(agent: Agent) -> None:
    await agent.stay()


async def initialized(agent: Agent) -> None:
    request = await agent.expect("initialize")
    await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})


async def slow_everywhere(agent: Agent) -> None:
    await trio.sleep(70)
    request = await agent.expect("initialize")
    await agent.send({"id": request["id"], "result": {"protocolVersion": 1}})
    request = await agent.expect("session/new")
    await trio.sleep(70)
    await agent.send({"id": request["id"], "result": {"sessionId": "late"}})


async def chatty(agent: Agent) -> None:
    """Frames are no progress of a start."""
    while True:
        await agent.send(text("starting ..."))
        await trio.sleep(1)


@pytest.mark.parametrize(
    ("script", "stage"),
    [
        (silent, "initialize"),
        (initialized, "new-session"),
        (slow_everywhere, "new-session"),
        (chatty, "initialize"),
    ],
)
async def test_the_startup_deadline_covers_the_whole_start(script: Any, stage: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, script)
    async with scene.service() as subagents:
        began = trio.current_time()
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("memory", scene.request())
        assert trio.current_time() - began == pytest.approx(120)
    assert str(caught.value) == said("startup-deadline", stage)
    assert scene.failures == [caught.value.failure]
    assert scene.agent.ended_at is not None


LOADS: dict[str, Any] = {"loadSession": True}
RESUMES: dict[str, Any] = {"sessionCapabilities": {"resume": {}}}
KEEPS: dict[str, Any] = {"sessionCapabilities": {"list": {}, "delete": {}}}


def answering(capabilities: dict[str, Any], *answers: dict[str, Any]) -> Script:
    """An agent with these capabilities that answers so much, a minute late, and then nothing more."""

    async def script(agent: Agent) -> None:
        request = await agent.expect("initialize")
        await trio.sleep(60)
        result = {"protocolVersion": 1, "agentCapabilities": capabilities}
        await agent.send({"id": request["id"], "result": result})
        for answer in answers:
            request = await agent.receive()
            await trio.sleep(30)
            await agent.send({"id": request["id"], **answer})

    return script


async def continues(subagents: SubagentService, scene: Scene) -> None:
    await subagents.start("memory", scene.request(session=kept(scene)))


async def continues_or_begins(subagents: SubagentService, scene: Scene) -> None:
    await subagents.start("memory", scene.request(session=kept(scene), allow_new_session=True))


async def lists(subagents: SubagentService, scene: Scene) -> None:
    await subagents.list_sessions("memory", Parent(cwd=str(scene.folder)))


async def deletes(subagents: SubagentService, scene: Scene) -> None:
    await subagents.delete_session(kept(scene))


def kept(scene: Scene) -> SessionRef:
    return SessionRef("memory", str(scene.folder), "kept")


NO = {"error": {"code": -32002, "message": "no"}}
PAGE = {"result": {"sessions": [], "nextCursor": "2"}}


@pytest.mark.parametrize(
    ("doing", "capabilities", "answers", "last"),
    [
        (continues, RESUMES, [], "session/resume"),
        (continues, LOADS, [], "session/load"),
        (continues_or_begins, RESUMES, [], "session/resume"),
        (continues_or_begins, LOADS, [NO], "session/new"),
        (continues_or_begins, RESUMES, [{"result": 5}], "session/new"),
        (continues_or_begins, {}, [], "session/new"),
        (lists, KEEPS, [], "session/list"),
        (lists, KEEPS, [PAGE], "session/list"),
        (deletes, KEEPS, [], "session/delete"),
    ],
)
async def test_one_startup_deadline_covers_whatever_is_asked_of_a_session(
    doing: Any, capabilities: dict[str, Any], answers: list[dict[str, Any]], last: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, answering(capabilities, *answers))
    async with scene.service() as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await doing(subagents, scene)
        assert trio.current_time() == pytest.approx(120)  # not: since the latest request
        assert scene.agent.exited.is_set()
    assert str(caught.value) == said("startup-deadline", "new-session")
    assert caught.value.failure.deadline == "startup-deadline"
    assert scene.failures == [caught.value.failure]
    asked = [frame["method"] for frame in scene.agent.received]
    assert asked[-1] == last
    assert len(asked) == 2 + len(answers)


@pytest.mark.parametrize("doing", [lists, deletes])
@pytest.mark.parametrize(
    ("answer", "said_of_it"),
    [
        ({"error": {"code": -32603, "message": "SECRET"}}, "category: remote-error; rpc code: -32603"),
        ({"result": [5]}, "category: protocol; reason: malformed-answer"),
        ({"error": "no object"}, "category: protocol; reason: malformed-answer"),
    ],
    ids=["error", "no object", "no error object"],
)
async def test_what_is_asked_of_kept_sessions_says_why_it_failed(
    doing: Any, answer: dict[str, Any], said_of_it: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, answering(KEEPS, answer))
    async with scene.service() as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await doing(subagents, scene)
        assert trio.current_time() == pytest.approx(90)
    assert str(caught.value) == f"Subagent failure (provider: ACP; stage: new-session; {said_of_it})"
    assert scene.failures == [caught.value.failure]


@pytest.mark.parametrize("result", [{}, None, {"_meta": {}}])
async def test_every_way_to_say_yes_deletes_a_session(result: object, tmp_path: Path) -> None:
    scene = Scene(tmp_path, answering(KEEPS, {"result": result}))
    async with scene.service() as subagents:
        await deletes(subagents, scene)
    assert scene.failures == []


async def test_the_startup_deadline_covers_a_slow_spawn(tmp_path: Path) -> None:
    scene = Scene(tmp_path, silent)
    scene.host.spawn_seconds = 500
    async with scene.service() as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("memory", scene.request())
    assert str(caught.value) == said("startup-deadline", "initialize")
    assert scene.host.agents == []


async def test_the_startup_deadline_covers_the_wait_for_a_place(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.prompted()

    scene = Scene(tmp_path, script)
    async with scene.service(max_concurrent_runs=1) as subagents:
        async with await subagents.start("memory", scene.request()):
            began = trio.current_time()
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("memory", scene.request(deadlines=Deadlines(startup_seconds=3)))
            assert trio.current_time() - began == pytest.approx(3)
    assert str(caught.value) == said("startup-deadline", "initialize")
    assert len(scene.host.agents) == 1


async def test_a_request_has_its_own_startup_deadline(tmp_path: Path) -> None:
    scene = Scene(tmp_path, silent, startup_timeout_seconds=None)
    async with scene.service() as subagents:
        began = trio.current_time()
        with pytest.raises(SubagentStartError):
            await subagents.start("memory", scene.request(deadlines=Deadlines(startup_seconds=7)))
        assert trio.current_time() - began == pytest.approx(7)


async def test_without_a_deadline_the_callers_scope_is_the_owner_of_the_wait(tmp_path: Path) -> None:
    none: dict[str, Any] = dict.fromkeys(
        [f"{name}_timeout_seconds" for name in ("startup", "turn", "idle", "tool_idle", "permission")]
    )
    scene = Scene(tmp_path, silent, **none)
    async with scene.service() as subagents:
        with trio.move_on_after(100_000) as scope:
            await subagents.start("memory", scene.request())
        assert scope.cancelled_caught
    assert scene.failures == []


async def test_a_place_is_given_back_only_when_the_ladder_has_ended(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        agent.ladder_seconds = 16.0
        await agent.shake_hands()
        await agent.stop(await agent.prompted())

    scene = Scene(tmp_path, script)
    async with scene.service(max_concurrent_runs=1) as subagents:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(subagents.run, "memory", scene.request())
    first, second = scene.host.agents
    assert first.ended_at is not None
    assert second.ended_at is not None
    assert second.ended_at - first.ended_at >= 16.0
