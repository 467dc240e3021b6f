"""How the leader ended: told exactly once, and right for every code and every signal."""

from __future__ import annotations

import os
import signal

import pytest
import trio

from acp_subagent.process.child import exit_status
from acp_subagent.process.procfs import ProcTable
from acp_subagent.seam.activity import ExitStatus
from tests.process.stage import Stage


def test_every_exit_code_is_decoded() -> None:
    for code in range(256):
        assert exit_status(os.CLD_EXITED, code) == ExitStatus(code=code)


def test_every_signal_is_decoded_with_and_without_a_core() -> None:
    for number in range(1, signal.NSIG):
        for how in (os.CLD_KILLED, os.CLD_DUMPED):
            assert exit_status(how, number) == ExitStatus(signal=number)


@pytest.mark.parametrize("code", [0, 1, 126, 127, 128, 255])
async def test_a_real_exit_code_is_told(stage: Stage, code: int) -> None:
    child = await stage.spawn(["exit", code])
    with trio.fail_after(20):
        await child.exited.wait()

    assert child.exit_status == ExitStatus(code=code)
    assert (await child.end_tree()).exit_status == ExitStatus(code=code)


@pytest.mark.parametrize("name", ["KILL", "SEGV", "ABRT", "TERM"])
async def test_a_real_signal_is_told(stage: Stage, name: str) -> None:
    child = await stage.spawn(["raise_signal", name])
    with trio.fail_after(20):
        await child.exited.wait()

    status = child.exit_status
    assert status is not None
    assert status.signal_name == f"SIG{name}"
    assert (await child.end_tree()).exit_status == status


async def test_an_exit_is_seen_and_the_process_not_reaped_before_the_ladder(stage: Stage) -> None:
    child = await stage.spawn(["exit", 4])
    with trio.fail_after(20):
        await child.exited.wait()

    facts = ProcTable().facts(child.pid)

    assert facts is not None
    assert facts.state == "Z"


async def test_an_exit_that_somebody_else_collected_is_an_exit_of_unknown_kind(stage: Stage) -> None:
    child = await stage.spawn("call", "until_eof")
    await stage.roll.wait_for(1)
    os.kill(child.pid, signal.SIGKILL)
    collect(child.pid)

    report = await child.end_tree()

    assert child.exited.is_set()
    assert report.exit_status is None
    assert report.survivors == 0
    assert not report.clean


def collect(pid: int) -> None:
    os.waitpid(pid, 0)


async def test_the_exit_is_seen_where_the_system_has_no_pidfd(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.delattr(os, "pidfd_open")
        child = await stage.spawn(["fork", ["setsid", "call", "rest"]], "call", ["exit", 9])
        with trio.fail_after(20):
            await child.exited.wait()
        report = await child.end_tree()

    assert report.exit_status == ExitStatus(code=9)
    assert report.survivors == 0


async def test_the_exit_is_told_where_the_system_has_no_waitid(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.delattr(os, "waitid")
        exiting = await stage.spawn(["exit", 9])
        killed = await stage.spawn(["raise_signal", "KILL"])
        with trio.fail_after(20):
            await exiting.exited.wait()
            await killed.exited.wait()
        reports = [await exiting.end_tree(), await killed.end_tree()]

    assert [report.exit_status for report in reports] == [ExitStatus(code=9), ExitStatus(signal=9)]


async def test_a_crash_beside_the_end_of_stdin_is_told_as_the_crash(stage: Stage) -> None:
    child = await stage.spawn("call", "until_eof", ["raise_signal", "ABRT"])
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert report.exit_status == ExitStatus(signal=signal.SIGABRT)
    assert report.clean
