"""What is logged, and what the host is told through `on_failure`."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import Any

import pytest
import trio

from acp_subagent import (
    EventsLagged,
    Failure,
    SubagentAbortedError,
    SubagentStartError,
    SubagentTeardownError,
    open_subagents,
)
from acp_subagent.acp.conversation import AcpConversation
from acp_subagent.acp.session import Event, SessionMachine, State
from tests.run.stage import REPOSITORY, Stage
from tests.run.waiting import until_exists

SAID: dict[str, Any] = {"turns": [[{"raw": "noise\n"}, {"text": "said"}]]}
REFUSES: dict[str, Any] = {"session_new": {"error": {"code": -32603, "message": "CANARY"}}}


async def test_the_life_of_a_run_can_be_followed_in_the_log(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="acp_subagent"):
        async with stage.service(SAID, faulty=True, eof_grace_seconds=20.0) as subagents:
            await subagents.run("fake", stage.request())
    text = "\n".join(f"{record.name}: {record.getMessage()}" for record in caplog.records)
    text = re.sub(r"\d+\.\d{3} s", "SECONDS s", re.sub(r"run-\w+", "RUN", re.sub(r"child \d+", "PID", text)))
    assert text.splitlines() == [
        "acp_subagent.seam: run RUN started",
        "acp_subagent.supervised: PID ended: eof SECONDS s, reap SECONDS s; 1 processes found, 0 survived",
        "acp_subagent.seam: run RUN settled: completed",
        "acp_subagent.seam: run RUN took: spawn SECONDS s, initialize SECONDS s, new_session SECONDS s, "
        "turn SECONDS s, teardown SECONDS s",
        "acp_subagent.seam: run RUN: 1 lines on stdout were no messages",
    ]


async def test_a_failure_is_logged_by_its_diagnostic(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="acp_subagent"):
        async with stage.service(REFUSES) as subagents:
            with pytest.raises(SubagentStartError) as caught:
                await subagents.start("fake", stage.request())
    assert [record.getMessage() for record in caplog.records] == [str(caught.value)]


async def test_a_subscription_that_is_ended_for_falling_behind_is_logged_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = {"turns": [[{"text": {"size": 60_000, "count": 20}}]]}
    limits: dict[str, Any] = {"event_buffer_events": 5, "subscriber_stall_seconds": 0.1}
    with caplog.at_level(logging.INFO, logger="acp_subagent"):
        async with stage.service(scenario, **limits) as subagents:
            async with await subagents.start("fake", stage.request()) as run:
                subscription = run.events()
                await run.result()
                [*_, last] = [event async for event in subscription]
    assert isinstance(last, EventsLagged)
    told = [record.getMessage() for record in caplog.records if "behind" in record.getMessage()]
    assert told == [
        f"a subscription fell behind and was ended; {last.count} events were not delivered",
    ]


async def test_nothing_is_said_loudly_about_a_run_that_goes_as_it_should(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage.service(SAID, faulty=True) as subagents:
        await subagents.run("fake", stage.request())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_no_handler_is_installed_and_no_level_is_set() -> None:
    code = """
import importlib, logging, pkgutil, acp_subagent
for module in pkgutil.walk_packages(acp_subagent.__path__, "acp_subagent."):
    importlib.import_module(module.name)
loggers = {name: it for name, it in logging.root.manager.loggerDict.items() if "subagent" in name}
print(*loggers)
assert not logging.root.handlers
for logger in loggers.values():
    assert not getattr(logger, "handlers", []) and getattr(logger, "level", 0) == logging.NOTSET
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=True
    )
    names = set(ended.stdout.split())
    assert {f"acp_subagent.{room}" for room in ("acp", "seam", "supervised", "wire")} <= names
    assert all(name.count(".") <= 1 for name in names), "a room has one logger for all its files"


async def test_a_failed_start_is_told_once(stage: Stage) -> None:
    async with stage.service(REFUSES) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert [told is caught.value.failure for told in stage.failures] == [True]


async def test_a_failed_run_is_told_once_however_often_it_is_asked_for(stage: Stage) -> None:
    async with stage.service({"turns": [[{"exit": 3}]]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            result = await run.result()
            assert await run.result() is result
            await run.dispose()
    assert [told is result.failure for told in stage.failures] == [True]


async def test_each_failed_turn_of_a_chain_is_told(stage: Stage) -> None:
    turns = [[{"error": {"code": -32603, "message": "no"}}], [{"stop": "max_turn_requests"}], [{"text": "x"}]]
    async with stage.service({"turns": turns}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            await run.result()
            for _ in range(2):
                async with await run.resume("more") as again:  # type: ignore[attr-defined]  # an ACP run has it
                    await again.result()
    assert [failure.category for failure in stage.failures] == ["remote-error", "remote-limit"]


async def test_an_exception_of_our_own_reaches_the_host_as_the_cause(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RuntimeError("CANARY")

    def prompt(*_: object) -> None:
        raise original

    monkeypatch.setattr(AcpConversation, "prompt", prompt)
    async with stage.service({}) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.diagnostic == "Subagent failure (provider: ACP; stage: prompt; category: unknown)"
    [failure] = stage.failures
    assert failure is result.failure
    assert failure.cause is original


async def test_an_exception_in_the_reader_is_the_cause_of_a_failed_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, advance = RuntimeError("CANARY"), SessionMachine.advance

    def raise_when_opened(machine: SessionMachine, event: Event) -> State:
        if event is Event.SESSION_OPENED:
            raise original
        return advance(machine, event)

    monkeypatch.setattr(SessionMachine, "advance", raise_when_opened)
    async with stage.service({}) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert str(caught.value) == "Subagent failure (provider: ACP; stage: new-session; category: unknown)"
    assert caught.value.__cause__ is None
    assert caught.value.failure.cause is original
    assert stage.failures == [caught.value.failure]


async def test_an_exception_in_the_reader_is_the_cause_of_a_failed_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RuntimeError("CANARY")

    def read(*_: object) -> None:
        raise original

    monkeypatch.setattr(AcpConversation, "_turn_outcome", read)
    async with stage.service({}) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.diagnostic == "Subagent failure (provider: ACP; stage: prompt; category: unknown)"
    assert [failure.cause for failure in stage.failures] == [original]


async def test_a_result_that_cannot_be_gathered_settles_the_run_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RuntimeError("CANARY")

    def end_turn(*_: object) -> None:
        raise original

    monkeypatch.setattr(AcpConversation, "end_turn", end_turn)
    async with stage.service({}) as subagents:
        result = await subagents.run("fake", stage.request())
    assert result.stop_reason == "error"
    assert result.diagnostic is not None
    assert "category: unknown" in result.diagnostic
    assert [failure.cause for failure in stage.failures] == [original]


async def test_the_systems_own_error_reaches_the_host(stage: Stage) -> None:
    command = stage.folder / "no-program"
    command.write_bytes(b"\x7fELF and nothing more")
    command.chmod(0o700)
    async with stage.service({}, command=str(command)) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert isinstance(caught.value.failure.cause, OSError)
    assert caught.value.failure.reason == "not-executable"


@pytest.mark.parametrize("how", ["abort", "cancel", "dispose", "scope", "body", "leave"])
async def test_our_own_cancel_is_never_told(how: str, stage: Stage) -> None:
    abort = trio.Event()
    outcome: list[str] = []
    async with stage.service({"turns": [[{"text": "x"}, {"wait_cancel": True}, {"exit": 9}]]}) as subagents:
        run = await subagents.start("fake", stage.request(abort=abort))
        if how == "abort":
            abort.set()
        elif how == "cancel":
            run.cancel()
        elif how == "dispose":
            await run.dispose()
        elif how == "scope":
            with trio.CancelScope() as scope:
                async with run:
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
        elif how == "body":
            with pytest.raises(KeyError):
                async with run:
                    raise KeyError
        if how != "leave":
            outcome.append(str((await run.result()).stop_reason))
    outcome = outcome or [str((await run.result()).stop_reason)]
    assert outcome == ["aborted"]
    assert stage.failures == []


@pytest.mark.parametrize("how", ["abort", "scope"])
async def test_our_own_cancel_of_a_start_is_never_told(how: str, stage: Stage) -> None:
    abort, scope, asked = trio.Event(), trio.CancelScope(), stage.folder / "asked"
    scenario = {"initialize": {"before_answer": [{"touch_file": str(asked)}], "no_answer": True}}

    async def cancel_when_asked() -> None:
        await until_exists(asked)
        if how == "abort":
            abort.set()
        else:
            scope.cancel()

    async with stage.service(scenario) as subagents, trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when_asked)
        if how == "abort":
            with pytest.raises(SubagentAbortedError):
                await subagents.start("fake", stage.request(abort=abort))
        else:
            with scope:
                await subagents.start("fake", stage.request(abort=abort))
            assert scope.cancelled_caught
    assert stage.failures == []


async def test_an_on_failure_that_raises_changes_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Failure] = []

    def on_failure(failure: Failure) -> None:
        told.append(failure)
        raise RuntimeError("CANARY")

    async with open_subagents(on_failure=on_failure) as subagents:
        subagents.register(stage.provider({"turns": [[{"exit": 3}]]}))
        try:
            result = await subagents.run("fake", stage.request())
        except SubagentTeardownError:
            pytest.fail("the exception must be contained")
    assert told == [result.failure]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["on_failure raised RuntimeError"]


async def test_a_failure_shows_its_diagnostic_and_nothing_else(stage: Stage) -> None:
    turn = [{"stderr": "CANARY"}, {"error": {"code": -32603, "message": "CANARY", "data": "CANARY"}}]
    async with stage.service({"turns": [turn]}) as subagents:
        await subagents.run("fake", stage.request())
    [failure] = stage.failures
    assert str(failure) == failure.diagnostic
    assert repr(failure) == f"<Failure: {failure.diagnostic}>"
    assert failure.rpc_error is not None
    assert failure.rpc_error.data == "CANARY"
    assert "CANARY" in failure.stderr_tail
