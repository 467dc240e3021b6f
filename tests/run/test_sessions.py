"""Sessions that outlive a child: continued, lost, replaced, listed, deleted."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from acp_subagent import (
    Deadlines,
    Parent,
    SessionInfo,
    SessionRef,
    SubagentAbortedError,
    SubagentStartError,
    SupportsResume,
    SupportsStoredSessions,
    TextChunk,
    ToolCallChanged,
    TurnInProgressError,
    UnknownProviderError,
    UnsupportedCapabilityError,
)
from tests.run.stage import Stage
from tests.run.waiting import frames, let_pass, methods

LOADS = {"loadSession": True, "promptCapabilities": {}, "sessionCapabilities": {}}
RESUMES = {"loadSession": True, "promptCapabilities": {}, "sessionCapabilities": {"resume": {}}}
KEEPS = {"loadSession": False, "sessionCapabilities": {"list": {}, "delete": {}}}

#: What the session has come to before.
HISTORY = [
    {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "long ago"}},
    {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "old",
        "content": {"type": "text", "text": "OLD ANSWER"},
    },
    {"sessionUpdate": "tool_call", "toolCallId": "old-call", "title": "t", "status": "in_progress"},
    {"sessionUpdate": "plan", "entries": [{"content": "OLD", "priority": "low", "status": "pending"}]},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2},
    {"sessionUpdate": "current_mode_update", "currentModeId": "ask"},
]


def ref(stage: Stage, **changed: str) -> SessionRef:
    return SessionRef(**{"provider": "fake", "cwd": str(stage.folder), "token": "kept-1", **changed})


def sent(stage: Stage, index: int = -1) -> list[str]:
    """The methods that the agent was asked for, in order."""
    return methods(stage.logs[index][0])


def asked(stage: Stage, method: str) -> list[dict[str, Any]]:
    """The params of each request of this method."""
    return [
        frame["params"]
        for frame in frames(stage.logs[-1][0], sender="client")
        if frame.get("method") == method
    ]


@pytest.mark.parametrize(
    ("capabilities", "method"), [(LOADS, "session/load"), (RESUMES, "session/resume")], ids=["load", "resume"]
)
async def test_a_session_is_continued_by_what_the_agent_has(
    capabilities: dict[str, Any], method: str, stage: Stage
) -> None:
    scenario = {"capabilities": capabilities, "turns": [[{"echo": "session"}]]}
    async with stage.service(scenario) as subagents:
        result = await subagents.run("fake", stage.request(session=ref(stage)))
    assert json.loads(result.text) == "kept-1"
    assert result.session == ref(stage)
    assert not result.context_lost
    assert sent(stage)[:3] == ["initialize", method, "session/prompt"]


@pytest.mark.parametrize("capabilities", [LOADS, RESUMES], ids=["load", "resume against the rules"])
async def test_replayed_history_is_nothing_of_this_turn(capabilities: dict[str, Any], stage: Stage) -> None:
    replay = [{"update": update} for update in HISTORY]
    ask = {"permission": {"tool_call": {"toolCallId": "old-call", "title": "t", "kind": "edit"}}}
    scenario: dict[str, Any] = {
        "capabilities": capabilities,
        "turns": [[{"update": HISTORY[1]}, {"text": "new"}]],
    }
    for key in ("session_load", "session_resume"):
        scenario[key] = {"before_answer": [*replay, ask], "result": {}}
    async with stage.service(scenario, permission="allow", max_early_updates=2) as subagents:
        async with await subagents.start("fake", stage.request(session=ref(stage))) as run:
            events = [event async for event in run.events()]
            result = await run.result()
    assert result.text == "new"
    assert len(result.messages) == 1
    assert result.tool_calls == ()
    assert result.plan == ()
    assert result.permissions == ()
    assert result.usage.used_tokens is None
    assert (result.counters.updates, result.counters.late_updates) == (2, 1)
    assert result.counters.early_updates_dropped == 0
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["new"]
    assert not any(isinstance(event, ToolCallChanged) for event in events)
    assert [type(event).__name__ for event in events][:2] == ["StageChanged", "ModeChanged"]


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({"error": {"code": -32002, "message": "CANARY"}}, "; rpc code: -32002"),
        ({"result": []}, ""),
        (None, ""),
    ],
    ids=["refused", "malformed", "not advertised"],
)
async def test_a_session_that_cannot_be_had_is_lost(answer: Any, fields: str, stage: Stage) -> None:
    scenario = {"session_load": answer, "capabilities": LOADS} if answer else {}
    async with stage.service(scenario, faulty=True) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request(session=ref(stage)))
        assert str(caught.value) == (
            f"Subagent failure (provider: ACP; stage: new-session; category: session-lost{fields})"
        )
        assert not caught.value.failure.retryable
        result = await subagents.run("fake", stage.request(session=ref(stage), allow_new_session=True))
    assert result.stop_reason == "completed"
    assert result.context_lost
    assert result.session is not None
    assert result.session.token == "session-1"


@pytest.mark.parametrize("changed", [{"provider": "other"}, {"cwd": "/"}], ids=["provider", "cwd"])
async def test_a_session_of_somebody_else_is_refused_before_the_spawn(
    changed: dict[str, str], stage: Stage
) -> None:
    async with stage.service({"capabilities": LOADS}) as subagents:
        request = stage.request(session=ref(stage, **changed), allow_new_session=True)
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", request)
    assert str(caught.value) == "Subagent failure (provider: ACP; stage: initialize; category: configuration)"
    assert not stage.logs[0][0].exists()


async def test_continuing_a_session_counts_in_the_startup_deadline(stage: Stage, clock: MockClock) -> None:
    scenario = {"capabilities": LOADS, "session_load": {"no_answer": True}}
    async with stage.service(scenario) as subagents, trio.open_nursery() as nursery:
        nursery.start_soon(partial(let_pass, clock, 10, stage.logs[0][0], heard="session/load"))
        request = stage.request(session=ref(stage), deadlines=Deadlines(startup_seconds=10))
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", request)
    assert caught.value.failure.deadline == "startup-deadline"
    assert caught.value.failure.stage == "new-session"


async def test_a_continued_session_can_be_resumed_and_continued_again(stage: Stage) -> None:
    async with stage.service({"capabilities": LOADS, "turns": [[{"text": "x"}]]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            first = await run.result()
            assert isinstance(run, SupportsResume)
            async with await run.resume("more") as more:
                assert (await more.result()).session == first.session
        assert first.session is not None
        again = SessionRef.from_json(json.loads(json.dumps(first.session.to_json())))
        result = await subagents.run("fake", stage.request(session=again))
    assert result.session == first.session


# -- the sessions that an agent has kept


def entry(stage: Stage, name: str, **more: Any) -> dict[str, Any]:
    return {"sessionId": name, "cwd": str(stage.folder), **more}


async def test_a_session_has_one_turn_at_a_time_whichever_child_it_runs_in(stage: Stage) -> None:
    scenario = {"capabilities": RESUMES, "turns": [[{"text": "x"}, {"wait_cancel": True}], [{"text": "y"}]]}
    async with stage.service(scenario) as subagents:
        async with await subagents.start("fake", stage.request(session=ref(stage))) as run:
            with pytest.raises(TurnInProgressError):
                await subagents.start("fake", stage.request(session=ref(stage)))
            assert sent(stage).count("initialize") == 1  # one log of both: nobody else was spawned
            async for event in run.events():
                if isinstance(event, TextChunk):
                    run.cancel()
            await run.result()
            stage.logs.clear()  # from here on two children write to one log
            async with await subagents.start("fake", stage.request(session=ref(stage))) as second:
                assert isinstance(run, SupportsResume)
                with pytest.raises(TurnInProgressError):
                    await run.resume("and I?")
                second.cancel()
                await second.result()
                async with await run.resume("now") as third:
                    assert (await third.result()).text == "y"


async def test_a_failed_start_gives_its_session_back(stage: Stage) -> None:
    scenario = {"capabilities": RESUMES, "session_resume": {"error": {"code": -32603, "message": "no"}}}
    async with stage.service(scenario) as subagents:
        for _ in range(2):
            with pytest.raises(SubagentStartError):
                await subagents.start("fake", stage.request(session=ref(stage)))
    stage.logs.clear()  # two conversations in one log


async def test_the_kept_sessions_are_listed_page_by_page(stage: Stage) -> None:
    pages = [
        {"sessions": [entry(stage, "a", title="A", updatedAt="2026-11-30T00:00:00Z")], "nextCursor": "2"},
        {"sessions": [entry(stage, "b", title=None)]},
    ]
    scenario = {"capabilities": KEEPS, "session_list": [{"result": page} for page in pages]}
    async with stage.service(scenario) as subagents:
        found = await subagents.list_sessions("fake", Parent(cwd=str(stage.folder)))
    assert found == (
        SessionInfo(ref=ref(stage, token="a"), title="A", updated_at="2026-11-30T00:00:00Z"),
        SessionInfo(ref=ref(stage, token="b")),
    )
    assert sent(stage) == ["initialize", "session/list", "session/list"]
    cwd = str(stage.folder)
    assert asked(stage, "session/list") == [{"cwd": cwd}, {"cwd": cwd, "cursor": "2"}]
    assert stage.failures == []
    assert "2026" not in repr(found)
    assert "'a'" not in repr(found)


async def test_what_is_no_session_in_a_list_is_left_out(stage: Stage) -> None:
    junk = [5, {"sessionId": 1, "cwd": "/"}, {"sessionId": "x"}, entry(stage, "a", title=7)]
    scenario = {"capabilities": KEEPS, "session_list": {"result": {"sessions": junk}}}
    async with stage.service(scenario, faulty=True) as subagents:
        found = await subagents.list_sessions("fake", Parent(cwd=str(stage.folder)))
    assert found == (SessionInfo(ref=ref(stage, token="a")),)


async def test_a_session_is_deleted(stage: Stage) -> None:
    async with stage.service({"capabilities": KEEPS}) as subagents:
        assert isinstance(subagents.providers()[0], SupportsStoredSessions)
        await subagents.delete_session(ref(stage))
        with pytest.raises(UnknownProviderError):
            await subagents.delete_session(ref(stage, provider="nobody"))
        with pytest.raises(SubagentStartError, match="configuration"):
            await subagents.delete_session(ref(stage, cwd="/"))
    assert sent(stage) == ["initialize", "session/delete"]
    assert asked(stage, "session/delete") == [{"sessionId": "kept-1"}]


async def test_an_agent_that_keeps_no_list_says_so_and_is_reaped(stage: Stage) -> None:
    async with stage.service({}) as subagents:
        with pytest.raises(UnsupportedCapabilityError, match="session/list"):
            await subagents.list_sessions("fake", Parent(cwd=str(stage.folder)))
        with pytest.raises(UnsupportedCapabilityError, match="session/delete"):
            await subagents.delete_session(ref(stage))
    assert sent(stage) == ["initialize"] * 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": {"code": -32603, "message": "CANARY"}}, "category: remote-error; rpc code: -32603"),
        ({"result": {"sessions": 5}}, "category: protocol; reason: malformed-answer"),
        ({"no_answer": True}, "category: timeout; reason: startup-deadline"),
        ({"before_answer": [{"exit": 4}]}, "category: process-exit; exit code: 4"),
    ],
    ids=["error", "malformed", "silent", "dead"],
)
async def test_a_list_that_cannot_be_had_says_why(answer: Any, said: str, stage: Stage) -> None:
    scenario = {"capabilities": KEEPS, "session_list": answer}
    patience_seconds = 2.0 if "no_answer" in answer else 30.0
    async with stage.service(scenario, faulty=True, startup_timeout_seconds=patience_seconds) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.list_sessions("fake", Parent(cwd=str(stage.folder)))
    assert said in str(caught.value)
    assert "CANARY" not in str(caught.value)
    assert stage.failures == [caught.value.failure]


async def test_a_cancelled_list_ends_its_child(stage: Stage) -> None:
    async with stage.service({"capabilities": KEEPS, "session_list": {"no_answer": True}}) as subagents:
        with trio.move_on_after(0.5) as scope:
            await subagents.list_sessions("fake", Parent(cwd=str(stage.folder)))
        assert scope.cancelled_caught
    assert stage.failures == []


async def test_an_abort_while_a_session_is_loaded_sends_no_prompt(stage: Stage) -> None:
    abort, asked = trio.Event(), stage.folder / "asked"
    scenario = {
        "capabilities": LOADS,
        "session_load": {"before_answer": [{"touch_file": str(asked)}], "no_answer": True},
    }
    async with stage.service(scenario) as subagents:

        async def abort_when_asked() -> None:
            while not asked.exists():  # noqa: ASYNC110  the file is written by another process
                await trio.sleep(0.01)
            abort.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(abort_when_asked)
            with pytest.raises(SubagentAbortedError):
                await subagents.start("fake", stage.request(session=ref(stage), abort=abort))
    assert sent(stage) == ["initialize", "session/load"]
