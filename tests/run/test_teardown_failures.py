"""What is said when a process tree cannot be ended, or nobody could see how it ended.

Every one of these is provoked by replacing the one function that signals a tree, and nothing else.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import trio

from acp_subagent import (
    ImageBlock,
    SubagentRun,
    SubagentStartError,
    SubagentTeardownError,
    UnsupportedCapabilityError,
)
from acp_subagent.process import tree
from acp_subagent.process.procfs import Identity, ProcessTable
from tests.run.stage import Kill, Stage

SURVIVORS = "Subagent failure (provider: ACP; stage: teardown; category: survivors)"
#: an agent that does not leave by itself when its stdin is closed
STAYS: dict[str, Any] = {"on_eof": {"ignore": True}, "lifetime_seconds": 60}
IMPATIENT: dict[str, Any] = {"eof_grace_seconds": 0.2, "term_grace_seconds": 0.2, "kill_grace_seconds": 0.3}


async def test_dispose_raises_the_same_error_for_every_caller(stage: Stage, nobody_is_killed: None) -> None:
    errors: list[SubagentTeardownError] = []

    async def dispose(run: SubagentRun) -> None:
        with pytest.raises(SubagentTeardownError) as caught:
            await run.dispose()
        errors.append(caught.value)

    async with stage.service(STAYS, **IMPATIENT) as subagents:
        run = await subagents.start("fake", stage.request("said"))
        result = await run.result()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(dispose, run)
        await dispose(run)
    assert result.text == "said"
    error = errors[0]
    assert [other is error for other in errors] == [True] * 4
    assert str(error) == SURVIVORS
    assert error.report is not None
    assert error.report.survivors == 1
    assert error.result is result
    assert (error.failure.stage, error.failure.category) == ("teardown", "survivors")
    assert error.__cause__ is None
    assert error.__context__ is None
    assert stage.failures == [error.failure]


async def test_run_raises_it_with_the_result(stage: Stage, nobody_is_killed: None) -> None:
    async with stage.service(STAYS, **IMPATIENT) as subagents:
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", stage.request("said"))
    assert str(caught.value) == SURVIVORS
    result = caught.value.result
    assert result is not None
    assert (result.stop_reason, result.text, result.diagnostic) == ("completed", "said", None)
    assert result.teardown is caught.value.report
    assert stage.failures == [caught.value.failure]


async def test_a_failed_run_keeps_its_own_diagnostic_beside_the_teardowns(
    stage: Stage, nobody_is_killed: None
) -> None:
    scenario = {**STAYS, "turns": [[{"stop": "max_turn_requests"}]]}
    async with stage.service(scenario, **IMPATIENT) as subagents:
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", stage.request())
    result = caught.value.result
    assert result is not None
    assert result.failure is not None
    assert str(caught.value) == SURVIVORS
    facts = "provider: ACP; stage: prompt; category: remote-limit; stop reason: max_turn_requests"
    assert result.diagnostic == f"Subagent failure ({facts})"
    assert stage.failures == [result.failure, caught.value.failure]


async def test_a_failed_start_says_both(stage: Stage, nobody_is_killed: None) -> None:
    scenario = {**STAYS, "session_new": {"error": {"code": -32603, "message": "no"}}}
    async with stage.service(scenario, **IMPATIENT) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    error = caught.value
    first = "Subagent failure (provider: ACP; stage: new-session; category: remote-error; rpc code: -32603)"
    assert str(error) == f"{first}\n{SURVIVORS}"
    assert error.teardown is not None
    assert str(error.teardown) == SURVIVORS
    assert error.teardown.result is None
    assert error.failure.diagnostic == first
    assert stage.failures == [error.failure, error.teardown.failure]


async def test_after_an_abort_it_comes_instead_of_the_aborted_error(
    stage: Stage, nobody_is_killed: None
) -> None:
    abort = trio.Event()
    asked = stage.folder / "asked"
    scenario = {
        **STAYS,
        "session_new": {"before_answer": [{"touch_file": str(asked)}], "no_answer": True},
    }
    async with stage.service(scenario, **IMPATIENT) as subagents, trio.open_nursery() as nursery:

        async def abort_when_asked() -> None:
            while not asked.exists():  # noqa: ASYNC110  the file is written by another process
                await trio.sleep(0.01)
            abort.set()

        nursery.start_soon(abort_when_asked)
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.start("fake", stage.request(abort=abort))
    assert str(caught.value) == SURVIVORS
    assert caught.value.result is None
    assert stage.failures == [caught.value.failure]


async def test_a_cancelled_scope_goes_on_as_cancelled_and_the_host_is_told(
    stage: Stage, nobody_is_killed: None
) -> None:
    async with stage.service({**STAYS, "turns": [[{"wait_cancel": True}]]}, **IMPATIENT) as subagents:
        with trio.CancelScope() as scope:
            await subagents.run("fake", stage.request(), on_ready=lambda run: scope.cancel())
            pytest.fail("the cancelled scope must not go on")
    assert scope.cancelled_caught
    assert [failure.diagnostic for failure in stage.failures] == [SURVIVORS]


async def test_a_cancelled_start_goes_on_as_cancelled_and_the_host_is_told(
    stage: Stage, nobody_is_killed: None
) -> None:
    async with stage.service({**STAYS, "initialize": {"no_answer": True}}, **IMPATIENT) as subagents:
        with trio.move_on_after(0.5) as scope:
            await subagents.start("fake", stage.request())
    assert scope.cancelled_caught
    assert [failure.diagnostic for failure in stage.failures] == [SURVIVORS]


async def test_a_block_whose_body_raised_keeps_its_exception_with_a_note(
    stage: Stage, nobody_is_killed: None
) -> None:
    error = RuntimeError("of the body")
    async with stage.service(STAYS, **IMPATIENT) as subagents:
        with pytest.raises(RuntimeError) as caught:
            async with await subagents.start("fake", stage.request()):
                raise error
    assert caught.value is error
    assert error.__notes__ == [SURVIVORS]
    assert [failure.diagnostic for failure in stage.failures] == [SURVIVORS]


async def test_a_refused_capability_keeps_its_exception_with_a_note(
    stage: Stage, nobody_is_killed: None
) -> None:
    image = ImageBlock(data="aGk=", mime_type="image/png")
    async with stage.service(STAYS, **IMPATIENT) as subagents:
        with pytest.raises(UnsupportedCapabilityError) as caught:
            await subagents.start("fake", stage.request(prompt=[image]))  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.__notes__ == [SURVIVORS]
    assert [failure.diagnostic for failure in stage.failures] == [SURVIVORS]


async def test_what_is_left_when_the_service_closes_goes_to_the_host(
    stage: Stage, nobody_is_killed: None
) -> None:
    async with stage.service(STAYS, **IMPATIENT) as subagents:
        await subagents.start("fake", stage.request())
    assert [failure.diagnostic for failure in stage.failures] == [SURVIVORS]


async def test_a_descendant_that_outlives_its_leader_is_told_with_the_leaders_exit(
    stage: Stage, nobody_is_killed: None
) -> None:
    scenario = {"turns": [[{"child": {"kind": "plain", "seconds": 60}}, {"text": "said"}]]}
    async with stage.service(scenario, **{**IMPATIENT, "eof_grace_seconds": 20.0}) as subagents:
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", stage.request())
    assert str(caught.value) == SURVIVORS.replace(")", "; exit code: 0)")
    assert caught.value.report is not None
    assert caught.value.report.survivors == 1
    assert caught.value.report.processes_found == 2


async def test_a_ladder_that_failed_says_how_the_process_ended_all_the_same(
    stage: Stage, replace_kill: Callable[[Kill], None]
) -> None:
    original = tree.kill

    def kill_and_raise(
        table: ProcessTable, number: int, processes: Iterable[Identity], groups: Iterable[int]
    ) -> None:
        original(table, signal.SIGKILL, processes, groups)
        raise RuntimeError("CANARY of the kill")

    replace_kill(kill_and_raise)
    async with stage.service(STAYS, **{**IMPATIENT, "kill_grace_seconds": 20.0}) as subagents:
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", stage.request())
    expected = "Subagent failure (provider: ACP; stage: teardown; category: process-exit; signal: SIGKILL)"
    assert str(caught.value) == expected
    assert caught.value.report is not None
    assert (caught.value.report.survivors, caught.value.report.failed) == (0, True)
    assert str(caught.value.failure.cause) == "CANARY of the kill"
    assert stage.failures == [caught.value.failure]


async def test_an_exit_that_somebody_else_collected_is_unknown(
    stage: Stage, replace_kill: Callable[[Kill], None]
) -> None:
    original = tree.kill

    def kill_and_collect(
        table: ProcessTable, number: int, processes: Iterable[Identity], groups: Iterable[int]
    ) -> None:
        original(table, signal.SIGKILL, processes, groups)
        for pid, _ in processes:
            os.waitpid(pid, 0)

    replace_kill(kill_and_collect)
    async with stage.service(STAYS, **IMPATIENT) as subagents:
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", stage.request())
    assert str(caught.value) == "Subagent failure (provider: ACP; stage: teardown; category: unknown)"
    assert caught.value.report is not None
    assert caught.value.report.exit_status is None
