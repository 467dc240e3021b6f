"""No secret of any channel gets where it does not belong, however a run fails; and each is where it does."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    PermissionRequest,
    SubagentError,
    SubagentResult,
    SubagentRun,
    SubagentStartError,
    SubagentTeardownError,
    open_subagents,
)
from acp_subagent.acp.conversation import AcpConversation
from acp_subagent.acp.schema import NewSessionResult
from acp_subagent.process import child, tree
from tests.run.canaries import (
    leaks,
    one_of_each,
    poisoned,
    secret,
)
from tests.run.rows import START_ROWS, Row
from tests.run.turn_rows import TURN_ROWS
from tests.run.waiting import passing
from tests.run.watching import AcpWatch, conduct, first_line

#: what is said to the agent: secrets of the host's
SECRETS_OF_THE_HOST = {"prompt", "parent-session", "label", "argv", "env", "cwd", "command-path"}


async def conduct_row(watch: AcpWatch, row: Row, clock: MockClock) -> SubagentResult | SubagentError:
    """The run of a row, with a secret wherever there can be one."""
    provider = watch.provider(poisoned(row.scenario), **row.settings)
    async with passing(clock, row, watch.stage.logs[0][0]):
        return await conduct(watch, provider)


@pytest.mark.parametrize("row", one_of_each(START_ROWS), ids=lambda row: row.name)
async def test_a_failed_start_keeps_every_secret(row: Row, watch: AcpWatch, clock: MockClock) -> None:
    outcome = await conduct_row(watch, row, clock)
    assert isinstance(outcome, SubagentStartError)
    assert first_line(outcome) == row.expected


@pytest.mark.parametrize("row", one_of_each(TURN_ROWS), ids=lambda row: row.name)
async def test_a_turn_keeps_every_secret_however_it_ends(row: Row, watch: AcpWatch, clock: MockClock) -> None:
    outcome = await conduct_row(watch, row, clock)
    assert isinstance(outcome, SubagentResult)
    assert outcome.stop_reason == row.stop_reason
    if (row.expected or "").startswith("Subagent failure"):
        assert first_line(outcome) == str(row.expected).splitlines()[0]


@pytest.mark.parametrize("how", ["abort", "cancel", "handler raises", "handler answers wrongly"])
async def test_what_the_host_does_in_a_turn_keeps_every_secret(how: str, watch: AcpWatch) -> None:
    abort, runs = trio.Event(), list[SubagentRun]()

    async def handler(request: PermissionRequest) -> object:
        # The moment at which most is under way.
        watch.look("asked", request, runs)
        if how == "abort":
            abort.set()
            await trio.sleep_forever()
        elif how == "cancel":
            for run in runs:
                run.cancel()
        elif how == "handler raises":
            raise RuntimeError(secret("handler"))
        return secret("wish")

    settings: dict[str, Any] = {"permission": "ask", "permission_handler": handler}
    provider = watch.provider(poisoned({"turns": [[{"wait_cancel": {"timeout_seconds": 0.1}}]]}), **settings)
    with trio.fail_after(30):
        async with open_subagents() as subagents:
            subagents.register(provider)
            result = await subagents.run("fake", watch.request(abort=abort), on_ready=runs.append)
            watch.look("ended", subagents, runs, result)
    assert result.stop_reason == ("aborted" if how in {"abort", "cancel"} else "completed")
    assert len(result.permissions) == 1


async def test_callbacks_of_the_host_that_raise_keep_every_secret(watch: AcpWatch) -> None:
    def raise_secret(_: object) -> None:
        raise RuntimeError(secret("callback"))

    with trio.fail_after(30):
        async with open_subagents(on_failure=raise_secret) as subagents:
            subagents.register(watch.provider(poisoned({"turns": [[{"exit": 1}]]})))
            subagents.observe(raise_secret)
            result = await subagents.run("fake", watch.request())
    assert result.stop_reason == "error"
    assert len(watch.caplog.records) > 3


async def test_an_exception_of_our_own_that_quotes_a_secret_keeps_it(
    watch: AcpWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model_validate(value: object) -> object:
        raise RuntimeError(f"cannot read {value}")

    monkeypatch.setattr(NewSessionResult, "model_validate", model_validate)
    outcome = await conduct(watch, watch.provider(poisoned({})))
    assert isinstance(outcome, SubagentStartError)
    assert leaks(outcome.failure.cause)  # the original, for the host alone


async def test_a_task_of_our_own_that_raises_a_secret_keeps_it(
    watch: AcpWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_turn(_: AcpConversation) -> None:
        raise RuntimeError(secret("end-of-turn"))

    monkeypatch.setattr(AcpConversation, "end_turn", end_turn)
    outcome = await conduct(watch, watch.provider(poisoned({})))
    assert isinstance(outcome, SubagentResult)
    assert outcome.stop_reason == "error"


@pytest.mark.parametrize("start_fails", [True, False])
async def test_a_teardown_that_fails_keeps_every_secret(
    start_fails: bool, watch: AcpWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tree.kill

    def kill_and_raise(*arguments: Any) -> None:
        original(*arguments)
        raise RuntimeError(secret("kill"))

    monkeypatch.setattr(tree, "kill", kill_and_raise)
    scenario: dict[str, Any] = {"on_eof": {"ignore": True}, "turns": [[]]}
    if start_fails:
        scenario["session_new"] = {"error": {"code": -32603, "message": ""}}
    graces: dict[str, Any] = {"eof_grace_seconds": 0.2, "term_grace_seconds": 0.2}
    outcome = await conduct(watch, watch.provider(poisoned(scenario), **graces))
    assert isinstance(outcome, SubagentStartError if start_fails else SubagentTeardownError)
    assert "stage: teardown" in str(outcome)
    assert child._uncollected == []


@pytest.mark.parametrize(
    "settings",
    [
        {"command": secret("command-path")},
        {"command": f"/{secret('command-path')}"},
        {"command": f"a\0{secret('command-path')}"},
        {"args": [f"a\0{secret('argv')}"]},
        {"args": [secret("argv") * 20_000]},
        {"env": {"X": f"a\0{secret('env')}"}},
        {"env": {"X\ud800": secret("env")}},
    ],
)
async def test_a_command_that_cannot_be_started_keeps_every_secret(
    settings: dict[str, Any], watch: AcpWatch
) -> None:
    config: dict[str, Any] = {"name": "fake", "command": str(watch.command), "cwd": str(watch.cwd)}
    outcome = await conduct(watch, AcpProvider(AcpConfig(**{**config, **settings})))
    assert isinstance(outcome, SubagentStartError)
    assert "stage: process; category: process-start" in str(outcome)


async def test_a_directory_that_cannot_be_used_keeps_its_name(watch: AcpWatch) -> None:
    watch.cwd.rmdir()
    config = AcpConfig(name="fake", command=str(watch.command))
    outcome = await conduct(watch, AcpProvider(config))
    assert isinstance(outcome, SubagentStartError)
    assert outcome.failure.reason == "cwd-not-found"
    with pytest.raises(SubagentError) as caught:
        AcpProvider(AcpConfig(name="fake", command="x", cwd=str(watch.cwd)))
    watch.look("refused", caught.value)


async def test_the_secrets_are_where_they_belong(watch: AcpWatch) -> None:
    turn = [{"error": {"code": -32603, "message": ""}}]
    events = list[object]()
    with trio.fail_after(30):
        async with open_subagents() as subagents:
            subagents.register(watch.provider(poisoned({"turns": [turn]})))
            async with await subagents.start("fake", watch.request()) as run:
                async for event in run.events(stderr=True):
                    events.append(event)
                result = await run.result()
    assert result.text == secret("answer")
    shown = [getattr(event, name) for event in events for name in type(event).__slots__]  # type: ignore[attr-defined]  # every event has them
    assert leaks(shown) >= {"session-title", "update-kind", "update-value", "command", "config-name", "mode"}
    assert {"answer", "thought", "stderr"} <= leaks([getattr(event, "text", "") for event in events])
    [call] = result.tool_calls
    wanted = {"tool-id", "tool-title", "raw-input", "raw-output", "location", "tool-content"}
    assert leaks([getattr(call, name) for name in type(call).__slots__]) >= wanted
    failure = result.failure
    assert failure is not None
    assert failure.rpc_error is not None
    assert leaks(failure.rpc_error.message) == {"rpc-message"}
    assert leaks(failure.rpc_error.data) >= {"rpc-data", "rpc-data-key", "rpc-data-nested", "rpc-data-huge"}
    assert leaks(failure.stderr_tail) == {"stderr"}
    assert leaks(failure.noise) == {"noise", "noise-json"}
    assert result.session is not None
    assert leaks(result.session.to_json()) == {"session-id", "cwd"}
    # And the fake got what it was to get.
    assert leaks(watch.stage.logs[0][0].read_text()) >= {"prompt", "cwd"}


async def test_the_look_reaches_the_objects_that_matter(watch: AcpWatch) -> None:
    await conduct(watch, watch.provider(poisoned({"turns": [[{"exit": 1}]]})))
    names = {kind.__name__ for kind in watch.looked_at}
    assert names >= {
        "AcpConfig", "AcpConversation", "AcpProvider", "AcpSettings", "AcpTurnRecord", "Chain", "Child",
        "Connection", "Counters", "ExitStatus", "Failure", "Parent", "PermissionDecided",
        "PermissionRecord", "PlanEntry", "ResumableRun", "RunEnded", "RunStarted", "SessionRef", "StderrLine",
        "SubagentRequest", "SubagentResult", "SubagentService", "Subscription", "TeardownReport", "TextBlock",
        "TextChunk", "Timings", "ToolCall", "Tree", "Turn", "UnknownUpdate", "Usage",
    }  # fmt: skip
