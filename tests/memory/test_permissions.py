"""The policy `ask`: handlers of the host, called side by side, bounded in time and number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    ConfigurationError,
    Deadlines,
    PermissionDecided,
    PermissionRequest,
    PermissionRequested,
)
from tests.memory.agent import ALLOWED, CANCELLED, DENIED, OPTIONS, Agent, Scene, permission


async def asked(
    folder: Path, handler: Any, *, times: int = 1, **settings: Any
) -> tuple[list[Any], Any, list[Any]]:
    """What the agent was answered, the result, and the events, when it asks so many times at once."""
    answers: list[Any] = [None] * times

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(*[permission(n, f"call-{n}", kind="edit") for n in range(times)])
        for _ in range(times):
            frame = await agent.receive()
            answers[frame["id"]] = frame.get("result", frame.get("error"))
        await agent.stop(prompt)

    scene = Scene(folder, script, permission="ask", permission_handler=handler, **settings)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            events = [event async for event in run.events()]
            return answers, await run.result(), events


class Contrary:
    """What raises when it is compared."""

    __hash__ = None  # type: ignore[assignment]  # unhashable on purpose

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __str__(self) -> str:
        return "what raises when it is compared"


@pytest.mark.parametrize(
    ("wish", "answer"),
    [
        ("allow", ALLOWED),
        ("deny", DENIED),
        ("yes", ALLOWED),
        ("no", DENIED),
        (None, DENIED),
        (True, DENIED),
        ("not offered", DENIED),
        ({"wish": "allow"}, DENIED),
        (Contrary(), DENIED),
    ],
    ids=str,
)
async def test_what_a_handler_returns_becomes_one_of_the_offered_options(
    wish: Any, answer: Any, tmp_path: Path
) -> None:
    seen: list[PermissionRequest] = []

    async def handler(request: PermissionRequest) -> object:
        seen.append(request)
        return wish

    answers, result, events = await asked(tmp_path, handler)
    assert answers == [answer]
    assert seen[0].call.kind == "edit"
    assert [option.id for option in seen[0].options] == ["yes", "no"]
    (record,) = result.permissions
    assert record.policy == "ask"
    assert record.decision == ("allowed" if answer is ALLOWED else "denied")
    told = [event for event in events if isinstance(event, (PermissionRequested, PermissionDecided))]
    assert [type(event) for event in told] == [PermissionRequested, PermissionDecided]


async def test_an_option_that_was_offered_may_be_returned_itself(tmp_path: Path) -> None:
    async def handler(request: PermissionRequest) -> object:
        return request.options[0]

    answers, _, _ = await asked(tmp_path, handler)
    assert answers == [ALLOWED]


async def test_a_handler_that_raises_means_deny(tmp_path: Path) -> None:
    async def handler(request: object) -> object:
        raise RuntimeError("SECRET")

    answers, result, _ = await asked(tmp_path, handler)
    assert answers == [DENIED]
    assert result.stop_reason == "completed"


@pytest.mark.parametrize("manner", ["slow", "cannot be interrupted"])
async def test_a_handler_that_is_late_means_deny(manner: str, tmp_path: Path) -> None:
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        began = trio.current_time()
        await agent.send(permission(0))
        answers.append(await agent.answer_to(0))
        answers.append(trio.current_time() - began)
        await agent.stop(prompt)

    async def handler(request: object) -> str:
        with trio.CancelScope(shield=manner != "slow"):
            await trio.sleep(3000)
        return "allow"

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        result = await subagents.run("memory", scene.request())
    assert answers == [DENIED, pytest.approx(600)]
    assert [record.decision for record in result.permissions] == ["denied"]
    assert result.stop_reason == "completed"


async def test_a_request_has_its_own_permission_deadline(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission(0))
        await agent.answer_to(0)
        await agent.stop(prompt)

    async def handler(request: object) -> None:
        await trio.sleep_forever()

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        request = scene.request(deadlines=Deadlines(permission_seconds=4))
        result = await subagents.run("memory", request)
    assert result.timings.turn == pytest.approx(4)
    assert OPTIONS[1]["optionId"] == result.permissions[0].option_id


async def test_handlers_run_side_by_side(tmp_path: Path) -> None:
    running, most = 0, 0

    async def handler(request: object) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(10)
        running -= 1
        return "allow"

    answers, result, _ = await asked(tmp_path, handler, times=20)
    assert answers == [ALLOWED] * 20
    assert most == 20
    assert result.timings.turn == pytest.approx(10)


async def test_one_more_open_request_than_the_limit_is_refused(tmp_path: Path) -> None:
    async def handler(request: object) -> str:
        await trio.sleep(10)
        return "allow"

    answers, result, _ = await asked(tmp_path, handler, times=4, max_open_requests=3)
    assert answers == [ALLOWED] * 3 + [{"code": -32603, "message": "too many open requests"}]
    assert len(result.permissions) == 3


async def test_the_decision_is_told_at_once_also_when_the_agent_says_nothing_more(tmp_path: Path) -> None:
    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission(0))
        await agent.answer_to(0)
        await trio.sleep(100)
        await agent.stop(prompt)

    async def handler(request: object) -> str:
        await trio.sleep(5)
        return "allow"

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            async for event in run.events():
                if isinstance(event, PermissionDecided):
                    assert trio.current_time() == pytest.approx(5)
                    break


@pytest.mark.parametrize("deed", ["cancel", "dispose"])
async def test_a_handler_may_cancel_or_dispose_its_own_run(deed: str, tmp_path: Path) -> None:
    runs: list[Any] = []
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.send(permission(0))
        answers.append(await agent.answer_to(0))
        await agent.stop(prompt, "cancelled")

    async def handler(request: object) -> str:
        if deed == "cancel":
            runs[0].cancel()
            await trio.sleep(1)
        else:
            await runs[0].dispose()
        return "allow"

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        runs.append(await subagents.start("memory", scene.request()))
        result = await runs[0].result()
        assert (await runs[0].dispose()).clean
    assert answers == [CANCELLED]
    assert result.stop_reason == "aborted"
    assert [record.decision for record in result.permissions] == ["cancelled"]


async def test_nobody_is_asked_outside_a_turn(tmp_path: Path) -> None:
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stop(await agent.prompted())
        await trio.sleep(1)
        await agent.send(permission("between"))
        answers.append(await agent.answer_to("between"))

    asked = []

    async def handler(request: object) -> str:
        asked.append(request)
        return "allow"

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            await run.result()
            await trio.sleep(2)
    assert asked == []
    assert answers == [DENIED]


async def test_nobody_is_asked_once_the_turn_is_answered(tmp_path: Path) -> None:
    """In the moment for what comes right behind the answer: stream and result tell the same decisions."""
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        await agent.stop(await agent.prompted())
        await trio.sleep(1)
        await agent.send(permission("behind"))
        answers.append(await agent.answer_to("behind"))

    asked = []

    async def handler(request: object) -> None:
        asked.append(request)
        await trio.sleep_forever()

    scene = Scene(tmp_path, script, permission="ask", permission_handler=handler, settle_grace_seconds=2.0)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            events = [event async for event in run.events()]
            result = await run.result()
            assert trio.current_time() == pytest.approx(2)
    assert asked == []
    assert answers == [DENIED]
    assert [record.decision for record in result.permissions] == ["denied"]
    told = [event.record for event in events if isinstance(event, PermissionDecided)]
    assert tuple(told) == result.permissions


@pytest.mark.parametrize("policy", ["allow", "reject", "ask"])
async def test_nothing_is_allowed_after_a_cancelled_turn_until_the_next(policy: str, tmp_path: Path) -> None:
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        await agent.shake_hands()
        prompt = await agent.prompted()
        await agent.expect("session/cancel")
        await agent.stop(prompt, "cancelled")
        await trio.sleep(1)
        await agent.send(permission("after"))
        answers.append(await agent.answer_to("after"))
        prompt = await agent.prompted()
        await agent.send(permission("next"))
        answers.append(await agent.answer_to("next"))
        await agent.stop(prompt)

    async def handler(request: object) -> str:
        return "allow"

    settings = {"permission_handler": handler} if policy == "ask" else {}
    scene = Scene(tmp_path, script, permission=policy, **settings)
    async with scene.service() as subagents:
        async with await subagents.start("memory", scene.request()) as run:
            await trio.sleep(1)
            run.cancel()
            await run.result()
            await trio.sleep(2)
            async with await run.resume("more") as more:  # type: ignore[attr-defined]  # an ACP run has it
                assert (await more.result()).stop_reason == "completed"
    assert answers == [CANCELLED, DENIED if policy == "reject" else ALLOWED]


def test_ask_and_a_handler_belong_together(tmp_path: Path) -> None:
    async def handler(request: object) -> str:
        return "allow"

    async def script(agent: Agent) -> None:
        await agent.stay()

    for settings in ({"permission": "ask"}, {"permission": "allow", "permission_handler": handler}):
        with pytest.raises(ConfigurationError):
            Scene(tmp_path, script, **settings)
