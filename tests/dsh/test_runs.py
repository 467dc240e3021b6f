"""One run over the scripted runtime: what is said on the wire, how it is cancelled, and how it is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from acp_subagent import (
    ConfigurationError,
    Deadlines,
    DshConfig,
    DshProvider,
    ImageBlock,
    Parent,
    ResourceLinkBlock,
    SessionRef,
    SubagentAbortedError,
    SubagentRequest,
    SubagentRun,
    SubagentTeardownError,
    SupportsResume,
    SupportsStoredSessions,
    TextBlock,
    TextChunk,
    UnsupportedCapabilityError,
)
from acp_subagent.process import tree
from tests.conftest import children
from tests.dsh.fake_runtime import RECEIPT
from tests.dsh.rows import IDLE, line, turn
from tests.dsh.stage import DshStage

WORKING = turn({"text": "so far"}, {"wait": True})


async def until_it_speaks(run: SubagentRun) -> None:
    async for event in run.events():
        if isinstance(event, TextChunk):
            return


async def test_a_whole_run_says_three_things_and_ends_with_the_last_message(dsh_stage: DshStage) -> None:
    script = turn({"text": "first"}, {"text": "last"}, {"end": "completed"}, IDLE)
    settings: dict[str, Any] = {"model": "m", "provider": "p", "max_tokens": 5, "reasoning_effort": "high"}
    async with dsh_stage.service(script, **settings) as subagents:
        result = await subagents.run("fake", dsh_stage.request("do it"))
    assert (result.stop_reason, result.text, result.session) == ("completed", "last", None)
    assert len(result.messages) == 2
    assert result.teardown is not None
    assert (result.teardown.survivors, result.teardown.exit_status) == (0, result.exit_status)
    assert result.exit_status is not None
    assert result.exit_status.code == 0
    initialize, prompt, shutdown = dsh_stage.received()
    assert initialize["params"] == {
        "cwd": str(dsh_stage.folder),
        "provider": "p",
        "model": "m",
        "maxTokens": 5,
        "reasoningEffort": "high",
    }
    assert prompt["method"] == "session/prompt"
    assert prompt["params"]["contentBlocks"] == [{"type": "text", "text": "do it"}]
    assert shutdown["method"] == "shutdown"


async def test_what_was_not_asked_for_is_left_to_the_runtime(dsh_stage: DshStage) -> None:
    async with dsh_stage.service({}) as subagents:
        await subagents.run("fake", dsh_stage.request())
    assert set(dsh_stage.received()[0]["params"]) == {"cwd", "provider", "model"}


async def test_two_runs_never_share_a_session(dsh_stage: DshStage) -> None:
    async with dsh_stage.service({}) as subagents:
        for _ in range(2):
            await subagents.run("fake", dsh_stage.request())
    sessions = {
        frame["params"]["sessionId"] for frame in dsh_stage.received() if frame["method"] == "session/prompt"
    }
    assert len(sessions) == 2


async def test_an_activity_that_is_over_before_its_receipt_was_answered_is_complete(
    dsh_stage: DshStage,
) -> None:
    script = {"prompt": [*RECEIPT[:-1], {"text": "quick"}, {"end": "completed"}, IDLE, {"answer": True}]}
    async with dsh_stage.service(script) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    assert (result.stop_reason, result.text) == ("completed", "quick")


async def test_a_descendant_takes_the_place_of_nothing(dsh_stage: DshStage) -> None:
    said = {"message": {"content": [{"type": "text", "text": "the child's"}]}}
    script = turn(
        {"notify": ["subagent.started", {"parentSessionId": "$session", "childSessionId": "child"}]},
        {"text": "ours"},
        {"event": ["child", {"type": "assistant/message", "data": said}]},
        {"event": ["child", {"type": "turn/end", "data": {"reason": {"kind": "error"}}}]},
        {"status": ["child", "idle"]},
        {"notify": ["subagent.finished", {"childSessionId": "child", "stopReason": "error"}]},
        {"end": "completed"},
        IDLE,
    )
    async with dsh_stage.service(script) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    assert (result.stop_reason, result.text, len(result.messages)) == ("completed", "ours", 1)


async def test_a_request_of_the_runtime_is_declined(dsh_stage: DshStage) -> None:
    script = turn({"request": ["approval/ask", {}]}, {"sleep": 0.1}, {"end": "completed"}, IDLE)
    async with dsh_stage.service(script) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    assert result.stop_reason == "completed"
    [answer] = [frame for frame in dsh_stage.received() if "error" in frame]
    assert (answer["id"], answer["error"]["code"]) == ("r", -32601)


# -- cancelling: nothing on the wire stops a turn


async def by_cancel(run: SubagentRun, abort: trio.Event) -> None:
    run.cancel()


async def by_abort(run: SubagentRun, abort: trio.Event) -> None:
    abort.set()


async def by_dispose(run: SubagentRun, abort: trio.Event) -> None:
    await run.dispose()


@pytest.mark.parametrize("how", [by_cancel, by_abort, by_dispose])
async def test_a_cancelled_turn_settles_at_once_with_what_it_had_said_and_the_runtime_is_shut_down(
    how: Callable[[SubagentRun, trio.Event], Awaitable[None]], dsh_stage: DshStage
) -> None:
    abort = trio.Event()
    async with dsh_stage.service(WORKING) as subagents:
        async with await subagents.start("fake", dsh_stage.request(abort=abort)) as run:
            await until_it_speaks(run)
            await how(run, abort)
            result = await run.result()
            report = await run.dispose()
    assert (result.stop_reason, result.text, result.diagnostic) == ("aborted", "so far", None)
    assert result.failure is None
    assert dsh_stage.failures == []
    assert [frame["method"] for frame in dsh_stage.received()] == ["initialize", "session/prompt", "shutdown"]
    assert (report.survivors, report.exit_status and report.exit_status.code) == (0, 0)


async def test_a_cancelled_turn_does_not_wait_for_the_runtime(dsh_stage: DshStage) -> None:
    script = {**WORKING, "shutdown": [], "ignore_eof": True, "ignore_term": True}
    graces: dict[str, Any] = {
        "shutdown_grace_seconds": 0.5,
        "eof_grace_seconds": 0.5,
        "term_grace_seconds": 0.5,
    }
    before = children()
    async with dsh_stage.service(script, service={"reaper": False}, **graces) as subagents:
        async with await subagents.start("fake", dsh_stage.request()) as run:
            await until_it_speaks(run)
            run.cancel()
            result = await run.result()
            left = children() - before
            report = await run.dispose()
    assert result.stop_reason == "aborted"
    assert len(left) == 1, "the runtime was still there"
    assert [str(rung) for rung in report.rungs] == ["eof", "term", "kill", "reap"]


async def test_a_deadline_ends_a_turn_the_same_way(dsh_stage: DshStage, clock: MockClock) -> None:
    async with dsh_stage.service(WORKING) as subagents:
        request = dsh_stage.request(deadlines=Deadlines(turn_seconds=10))
        async with await subagents.start("fake", request) as run:
            await until_it_speaks(run)
            clock.jump(10)
            result = await run.result()
            await run.dispose()
    assert result.diagnostic == line("stage: session-run; category: timeout; reason: turn-deadline")
    assert result.text == "so far"
    assert dsh_stage.received()[-1]["method"] == "shutdown"


async def test_an_abort_before_the_handshake_was_answered_sends_no_prompt(dsh_stage: DshStage) -> None:
    abort = trio.Event()
    async with dsh_stage.service({"initialize": []}) as subagents, trio.open_nursery() as nursery:

        async def abort_once_it_runs() -> None:
            while not dsh_stage.received():  # noqa: ASYNC110  another process writes the log
                await trio.sleep(0.01)
            abort.set()

        nursery.start_soon(abort_once_it_runs)
        with pytest.raises(SubagentAbortedError):
            await subagents.start("fake", dsh_stage.request(abort=abort))
    assert [frame["method"] for frame in dsh_stage.received()] == ["initialize"]


async def test_an_abort_that_was_set_already_spawns_nothing(dsh_stage: DshStage) -> None:
    abort = trio.Event()
    abort.set()
    async with dsh_stage.service({}) as subagents:
        with pytest.raises(SubagentAbortedError):
            await subagents.start("fake", dsh_stage.request(abort=abort))
    assert dsh_stage.entries() == []


async def test_a_scope_that_is_cancelled_takes_the_runtime_with_it(dsh_stage: DshStage) -> None:
    async with dsh_stage.service(turn({"spawn": True}, {"text": "so far"}, {"wait": True})) as subagents:
        with trio.CancelScope() as scope:
            async with await subagents.start("fake", dsh_stage.request()) as run:
                await until_it_speaks(run)
                scope.cancel()
                await trio.sleep_forever()
        assert (await run.result()).stop_reason == "aborted"
        report = await run.dispose()
    assert (report.survivors, report.processes_found) == (0, 2)


@pytest.mark.parametrize("shutdown", [[], [{"error": {"code": -32603, "message": "no"}}], [{"raw": "x\n"}]])
async def test_a_shutdown_that_fails_is_followed_by_the_ladder_and_by_no_diagnostic(
    shutdown: list[dict[str, Any]], dsh_stage: DshStage
) -> None:
    async with dsh_stage.service({"shutdown": shutdown}, shutdown_grace_seconds=0.3) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    assert (result.stop_reason, result.diagnostic) == ("completed", None)
    assert result.teardown is not None
    assert result.teardown.clean
    assert dsh_stage.failures == []


async def test_survivors_are_told_with_the_words_of_this_provider(
    dsh_stage: DshStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tree.kill

    def kill_and_raise(*arguments: Any) -> None:
        original(*arguments)
        raise RuntimeError

    monkeypatch.setattr(tree, "kill", kill_and_raise)
    script = {"shutdown": [], "ignore_eof": True, "ignore_term": True}
    graces: dict[str, Any] = {
        "shutdown_grace_seconds": 0.1,
        "eof_grace_seconds": 0.1,
        "term_grace_seconds": 0.1,
    }
    async with dsh_stage.service(script, **graces) as subagents:
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", dsh_stage.request())
    assert str(caught.value).startswith("Subagent failure (provider: DSH SDK; stage: shutdown; category: ")
    assert caught.value.result is not None
    assert caught.value.result.stop_reason == "completed"


# -- what it cannot do


async def test_a_run_cannot_be_resumed(dsh_stage: DshStage) -> None:
    async with dsh_stage.service({}) as subagents:
        async with await subagents.start("fake", dsh_stage.request()) as run:
            assert not isinstance(run, SupportsResume)
            await run.result()
    assert not isinstance(dsh_stage.provider({}), SupportsStoredSessions)


@pytest.mark.parametrize(
    "fields",
    [
        {"output_schema": {"type": "object"}},
        {"max_depth": 1},
        {"tool_filter": ["bash"]},
        {"persona": "a pirate"},
        {"agent_options": {"model": "m"}},
        {"session": SessionRef("fake", "/", "token")},
        {"deadlines": Deadlines(idle_seconds=1)},
        {"deadlines": Deadlines(tool_idle_seconds=1)},
        {"deadlines": Deadlines(permission_seconds=1)},
        {"prompt": [TextBlock("look:"), ImageBlock("", "image/png")]},
        {"prompt": [ResourceLinkBlock("file:///x", "x")]},
    ],
)
async def test_what_it_does_not_support_is_refused_before_anything_is_spawned(
    fields: dict[str, Any], dsh_stage: DshStage
) -> None:
    async with dsh_stage.service({}) as subagents:
        request = SubagentRequest(**{"prompt": "x", "parent": Parent(cwd=str(dsh_stage.folder)), **fields})
        with pytest.raises(UnsupportedCapabilityError):
            await subagents.start("fake", request)
    assert dsh_stage.entries() == []


def test_it_inherits_nothing_and_has_its_own_name() -> None:
    provider = DshProvider(DshConfig())
    assert (provider.name, provider.inherits_parent_context) == ("dsh-sdk", False)
    assert repr(provider) == "<DshProvider>"


# -- how it is launched


async def test_the_environment_is_scrubbed_and_what_is_set_comes_after(
    dsh_stage: DshStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DSH_HOME", "DSH_PROFILE", "DEEPSEEK_API_KEY", "HARMLESS", "SOME_TOKEN"):
        monkeypatch.setenv(name, "the host's")
    settings: dict[str, Any] = {"env": {"DSH_HOME": "ours"}, "pass_env": ["DEEPSEEK_API_KEY"]}
    async with dsh_stage.service({}, **settings) as subagents:
        await subagents.run("fake", dsh_stage.request())
    [started] = [entry for entry in dsh_stage.entries() if "environment" in entry]
    environment = started["environment"]
    assert environment["DSH_HOME"] == "ours"
    assert environment["DEEPSEEK_API_KEY"] == environment["HARMLESS"] == "the host's"
    assert not {"DSH_PROFILE", "SOME_TOKEN"} & set(environment)
    assert started["cwd"] == str(dsh_stage.folder)


def test_the_command_is_the_runtime_with_its_profile_unless_told_otherwise() -> None:
    config = DshConfig()
    assert (config.command, config.args) == ("dsh", ("--profile", "sdk"))
    assert (config.provider, config.model) == ("deepseek-official", "deepseek-v4-flash")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 2**53}, "max_tokens"),
        ({"reasoning_effort": ""}, "reasoning_effort"),
        ({"model": ""}, "model"),
        ({"provider": 5}, "provider"),
        ({"shutdown_grace_seconds": 0}, "shutdown_grace_seconds"),
        ({"startup_timeout_seconds": float("inf")}, "startup_timeout_seconds"),
        ({"permission": "allow"}, "a field that does not exist; see the documentation of DshConfig"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        DshConfig(**settings)
    assert str(caught.value).startswith("DshConfig: ")
    assert caught.value.__context__ is None
