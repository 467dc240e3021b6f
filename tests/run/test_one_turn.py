"""One turn, from the request to the result, with a real child."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    ConfigurationError,
    ImageBlock,
    Parent,
    PermissionDecision,
    RunEnded,
    Rung,
    RunStarted,
    SubagentAbortedError,
    SubagentStartError,
    SupportsResume,
    TextBlock,
    ToolKind,
    UnsupportedCapabilityError,
)
from tests.run.stage import Stage


async def test_a_run_brings_back_the_answer_and_what_the_teardown_found(stage: Stage) -> None:
    async with stage.service("demo", permission="allow", eof_grace_seconds=20.0) as subagents:
        result = await subagents.run("fake", stage.request("hello"))
    assert result.stop_reason == "completed"
    assert "hello" in result.text
    assert result.diagnostic is None
    assert result.failure is None
    assert result.exit_status is not None
    assert result.exit_status.code == 0
    assert result.teardown is not None
    assert result.teardown.clean
    assert list(result.teardown.rungs) == [Rung.EOF, Rung.REAP]
    assert [record.decision for record in result.permissions] == [PermissionDecision.ALLOWED]
    assert [call.kind for call in result.tool_calls] == [ToolKind.EDIT]
    assert result.usage.used_tokens == 812
    assert None not in (result.timings.spawn, result.timings.initialize, result.timings.teardown)
    assert stage.failures == []


async def test_a_permission_is_rejected_by_default(stage: Stage) -> None:
    async with stage.service("demo") as subagents:
        result = await subagents.run("fake", stage.request())
    assert [record.decision for record in result.permissions] == [PermissionDecision.DENIED]
    assert result.stop_reason == "completed"
    assert result.diagnostic is None


async def test_a_started_run_settles_before_its_child_is_ended(stage: Stage) -> None:
    async with stage.service("demo") as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            result = await run.result()
            assert result.teardown is None
            assert result.exit_status is None
            assert await run.result() is result
        report = await run.dispose()
        assert report.clean
        assert await run.dispose() is report


async def test_the_last_chunks_before_and_after_the_answer_are_not_lost(stage: Stage) -> None:
    one, two = ({"text": text, "message_id": "m"} for text in ("one ", "two"))
    turn = [{"text": one}, {"stop": "end_turn"}, {"text": two}]
    # An agent that leaves in the middle of what it says loses that by itself.
    scenario = {"turns": [turn], "on_eof": {"wait_turns": True}}
    async with stage.service(scenario, settle_grace_seconds=1.0) as subagents:
        result = await subagents.run("fake", stage.request())
        assert result.text == "one two"
        async with await subagents.start("fake", stage.request()) as run:
            assert (await run.result()).text == "one two"


async def test_frames_that_were_in_the_pipe_when_the_child_died_are_handled(stage: Stage) -> None:
    turn = [{"text": {"size": 40_000, "count": 1}}, {"raw": {"text": ""}}, {"exit": 3}]
    async with stage.service({"turns": [turn]}) as subagents:
        result = await subagents.run("fake", stage.request())
    assert len(result.text) == 40_000
    assert result.diagnostic == (
        "Subagent failure (provider: ACP; stage: process; category: process-exit; exit code: 3)"
    )


async def test_an_answer_without_its_newline_counts_when_the_child_dies(stage: Stage) -> None:
    answer = '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'
    turn = [{"text": "said"}, {"raw": answer}, {"exit": 0}]
    async with stage.service({"turns": [turn]}, faulty=True) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.stop_reason == "completed"
    assert result.text == "said"


async def test_resumed_turns_share_the_child_and_end_with_its_owner(stage: Stage) -> None:
    turns = [[{"text": "first"}], [{"text": "second"}], [{"wait_cancel": True}]]
    async with stage.service({"turns": turns}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            assert (await run.result()).text == "first"
            assert isinstance(run, SupportsResume)
            async with await run.resume("more") as second:
                assert (await second.result()).text == "second"
                assert second.id != run.id
            third = await run.resume("and more")
        assert (await third.result()).stop_reason == "aborted"
        assert (await third.result()).diagnostic is None


async def test_lifecycle_events_come_in_pairs(stage: Stage) -> None:
    def fail(event: object) -> None:
        raise ZeroDivisionError

    seen: list[object] = []
    async with stage.service({"turns": [[{"text": "x"}]]}) as subagents:
        subagents.observe(seen.append)
        subagents.observe(fail)
        async with await subagents.start("fake", stage.request()) as run:
            await run.result()
    started, ended = seen
    assert isinstance(started, RunStarted)
    assert isinstance(ended, RunEnded)
    assert (started.run_id, started.id, started.provider) == (ended.run_id, run.id, "fake")
    assert started.run_id != run.id
    assert ended.output == (TextBlock("x"),)


async def test_a_failed_start_emits_no_lifecycle_event_and_leaves_no_child(stage: Stage) -> None:
    seen: list[object] = []
    refusal = {"session_new": {"error": {"code": -32603, "message": "no"}}}
    async with stage.service(refusal) as subagents:
        subagents.observe(seen.append)
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert seen == []
    assert str(caught.value) == (
        "Subagent failure (provider: ACP; stage: new-session; category: remote-error; rpc code: -32603)"
    )
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert caught.value.teardown is None
    assert caught.value.failure.rpc_error is not None
    assert caught.value.failure.rpc_error.message == "no"
    assert stage.failures == [caught.value.failure]


async def test_content_that_the_agent_does_not_take_is_refused_before_it_is_sent(stage: Stage) -> None:
    image = ImageBlock(data="aGk=", mime_type="image/png")
    async with stage.service({"turns": [[{"text": "x"}]]}) as subagents:
        with pytest.raises(UnsupportedCapabilityError, match="image"):
            await subagents.start("fake", stage.request(prompt=[image]))  # type: ignore[arg-type]  # wrong on purpose
        async with await subagents.start("fake", stage.request()) as run:
            await run.result()
            assert isinstance(run, SupportsResume)
            with pytest.raises(UnsupportedCapabilityError, match="image"):
                await run.resume([image])
            async with await run.resume("text goes") as more:
                assert (await more.result()).stop_reason == "completed"


async def test_an_abort_that_is_set_already_spawns_nothing(stage: Stage) -> None:
    abort = trio.Event()
    abort.set()
    async with stage.service("demo") as subagents:
        with pytest.raises(SubagentAbortedError):
            await subagents.start("fake", stage.request(abort=abort))
    assert not stage.logs[0][0].exists()


async def test_an_abort_during_the_start_reaps_the_child_and_sends_no_prompt(stage: Stage) -> None:
    abort = trio.Event()
    ready = stage.folder / "asked"
    scenario = {"session_new": {"before_answer": [{"touch_file": str(ready)}], "no_answer": True}}
    async with stage.service(scenario) as subagents:

        async def abort_when_asked() -> None:
            while not ready.exists():  # noqa: ASYNC110  the file is written by another process
                await trio.sleep(0.01)
            abort.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(abort_when_asked)
            with pytest.raises(SubagentAbortedError) as caught:
                await subagents.start("fake", stage.request(abort=abort))
    assert caught.value.__context__ is None
    assert stage.failures == []
    assert "session/prompt" not in stage.logs[0][0].read_text()


async def test_an_abort_during_the_turn_settles_aborted_with_the_partial_answer(stage: Stage) -> None:
    abort = trio.Event()
    turn = [{"text": "so far"}, {"wait_cancel": True}, {"stop": "end_turn"}]
    async with stage.service({"turns": [turn]}) as subagents:
        async with await subagents.start("fake", stage.request(abort=abort)) as run:
            async for event in run.events():
                if type(event).__name__ == "TextChunk":
                    abort.set()
            result = await run.result()
    assert (result.stop_reason, result.text, result.diagnostic) == ("aborted", "so far", None)
    assert stage.failures == []


async def test_cancelling_the_callers_scope_ends_the_child_and_goes_on_as_cancelled(stage: Stage) -> None:
    async with stage.service({"turns": [[{"text": "x"}, {"wait_cancel": True}]]}) as subagents:
        with trio.CancelScope() as scope:

            def ready(run: object) -> None:
                scope.cancel()

            await subagents.run("fake", stage.request(), on_ready=ready)
            pytest.fail("the cancelled scope must not go on")
    assert scope.cancelled_caught
    assert stage.failures == []


async def test_cancelling_during_the_start_goes_on_as_cancelled(stage: Stage) -> None:
    async with stage.service({"initialize": {"no_answer": True}}) as subagents:
        with trio.move_on_after(0.3) as scope:
            await subagents.start("fake", stage.request())
    assert scope.cancelled_caught
    assert stage.failures == []


async def test_exceptions_of_the_body_come_out_plain(stage: Stage) -> None:
    error = RuntimeError("of the body")
    with pytest.raises(RuntimeError) as caught:
        async with stage.service({"turns": [[{"wait_cancel": True}]]}) as subagents:
            await subagents.start("fake", stage.request())
            raise error
    assert caught.value is error


async def test_leaving_the_service_disposes_what_is_left(stage: Stage) -> None:
    async with stage.service({"turns": [[{"text": "x"}, {"wait_cancel": True}]]}) as subagents:
        run = await subagents.start("fake", stage.request())
    assert (await run.result()).stop_reason == "aborted"
    assert (await run.dispose()).clean


async def test_the_working_directory_is_the_same_for_process_and_session(stage: Stage) -> None:
    link = stage.folder / "link"
    (stage.folder / "real").mkdir()
    link.symlink_to("real")
    async with stage.service({"turns": [[{"text": "${cwd}"}]]}, cwd=str(link)) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.text == str(link)
    assert result.session is not None
    assert result.session.cwd == str(link)


def test_a_configured_working_directory_is_checked_when_the_provider_is_made(stage: Stage) -> None:
    with pytest.raises(ConfigurationError, match="does not exist") as caught:
        stage.provider("demo", cwd=str(stage.folder / "missing"))
    assert caught.value.reason == "cwd-not-found"
    assert str(stage.folder) not in str(caught.value)


async def test_the_parents_working_directory_must_be_absolute(stage: Stage) -> None:
    async with stage.service("demo", cwd=None) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request(parent=Parent(cwd="relative")))
        assert caught.value.failure.reason == "cwd-relative"
        assert caught.value.failure.advice is not None
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request(parent=Parent()))
    assert str(caught.value) == (
        "Subagent failure (provider: ACP; stage: initialize; category: configuration; reason: cwd-missing)"
    )
    assert [failure.reason for failure in stage.failures] == ["cwd-relative", "cwd-missing"]


async def test_secrets_of_the_hosts_environment_do_not_reach_the_child(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MY_API_KEY", "my_token", "DSH_HOME", "NODE_OPTIONS", "KEPT", "LET_THROUGH_SECRET"):
        monkeypatch.setenv(name, "v")
    settings: dict[str, Any] = {"pass_env": ["LET_THROUGH_SECRET"], "env": {"EXPLICIT_KEY": "w"}}
    async with stage.service({"turns": [[{"echo": "env"}]]}, **settings) as subagents:
        names = set(json.loads((await subagents.run("fake", stage.request())).text))
    assert {"KEPT", "LET_THROUGH_SECRET", "EXPLICIT_KEY", "PATH", "HOME"} <= names
    assert not {"MY_API_KEY", "my_token", "DSH_HOME", "NODE_OPTIONS"} & names


async def test_a_command_that_is_not_there_is_refused_before_the_spawn(stage: Stage, tmp_path: Path) -> None:
    async with stage.service("demo", command=str(tmp_path / "nothing")) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert str(caught.value) == (
        "Subagent failure (provider: ACP; stage: process; category: process-start; reason: command-not-found)"
    )
    assert caught.value.failure.retryable is False
