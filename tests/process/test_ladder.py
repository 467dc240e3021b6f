"""The ladder: which rungs are used, which are skipped, and what its report says."""

from __future__ import annotations

import math
import signal
from typing import Any

import pytest
import trio
import trio.testing

from acp_subagent.process import tree
from acp_subagent.seam.activity import ExitStatus, Rung
from tests.process.stage import Stage


async def test_an_agent_that_exits_on_eof_is_never_signalled(stage: Stage) -> None:
    child = await stage.spawn(["on_term", [["exit", 99]]], "call", "until_eof", ["exit", 7])
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.REAP]
    assert report.exit_status == ExitStatus(code=7)
    assert (report.processes_found, report.survivors, report.clean) == (1, 0, True)


async def test_an_agent_that_stays_after_eof_gets_sigterm(stage: Stage) -> None:
    child = await stage.spawn("call", "until_eof", "rest", eof=0.1)
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.REAP]
    assert 0.1 <= report.rungs[Rung.EOF] < 5
    assert report.exit_status == ExitStatus(signal=15)


async def test_an_agent_that_ignores_sigterm_is_killed(stage: Stage) -> None:
    child = await stage.spawn(["ignore", "SIGTERM"], "call", "rest", eof=0.1, term=0.1)
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.KILL, Rung.REAP]
    assert report.exit_status == ExitStatus(signal=9)
    assert report.clean


async def test_what_an_agent_leaves_behind_at_eof_gets_sigterm_at_once(stage: Stage) -> None:
    child = await stage.spawn(["fork", ["setsid", "call", "rest"]], "call", "until_eof", eof=30, term=30)
    await stage.roll.wait_for(2)

    report = await child.end_tree()

    assert report.seconds < 15  # neither grace was waited for
    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.REAP]
    assert report.exit_status == ExitStatus(code=0)
    assert stage.roll.living == []
    assert report.processes_found == 2


async def test_what_an_exited_agent_left_behind_is_killed_after_the_term_grace(stage: Stage) -> None:
    stubborn = [["ignore", "SIGTERM"], "call", "rest"]
    child = await stage.spawn(["fork", stubborn], "call", "until_eof", term=0.1)
    await stage.roll.wait_for(2)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.KILL, Rung.REAP]
    assert report.exit_status == ExitStatus(code=0)
    assert stage.roll.living == []


async def test_an_agent_that_had_exited_before_needs_no_rung_but_the_reap(stage: Stage) -> None:
    child = await stage.spawn(["exit", 3])
    with trio.fail_after(20):
        await child.exited.wait()

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.REAP]
    assert report.exit_status == ExitStatus(code=3)


async def test_a_process_started_to_clean_up_is_told_as_well_when_the_others_have_ended(stage: Stage) -> None:
    clean_up = ["setsid", "call", "rest"]
    child = await stage.spawn(["on_term", [["fork", clean_up]]], "call", "until_eof", "rest", eof=0.05)
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.REAP]
    assert report.processes_found == 2


async def test_a_stopped_tree_dies(stage: Stage) -> None:
    child = await stage.spawn(["fork", ["setsid", "call", "stop", "rest"]], "call", "stop", "rest", eof=0.1)
    await stage.roll.wait_for(2)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.REAP]
    assert report.clean
    assert stage.roll.living == []


async def test_a_stopped_tree_that_ignores_sigterm_dies(stage: Stage) -> None:
    stubborn = [["ignore", "SIGTERM"], "call", "stop", "stop", "rest"]
    child = await stage.spawn(["fork", ["setsid", *stubborn]], *stubborn, eof=0.1, term=0.1)
    await stage.roll.wait_for(2)

    report = await child.end_tree()

    assert Rung.KILL in report.rungs
    assert report.clean
    assert stage.roll.living == []


@pytest.mark.parametrize(
    ("steps", "eof", "calls", "told_to_end"),
    [
        (["call", "rest"], 30, 1, False),
        (["call", "until_eof", "call", "rest"], 30, 2, False),
        ([["on_term", ["call", "rest"]], "call", "rest"], 0.05, 2, True),
    ],
    ids=["before", "in the eof grace", "in the term grace"],
)
async def test_hurry_skips_to_the_kill(
    stage: Stage, steps: list[Any], eof: float, calls: int, told_to_end: bool
) -> None:
    child = await stage.spawn(*steps, eof=eof, term=30)
    hurry = trio.Event()

    async def hurry_in_the_grace() -> None:
        await stage.roll.wait_for(calls)
        hurry.set()

    await stage.roll.wait_for(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hurry_in_the_grace)
        report = await child.end_tree(hurried=hurry.is_set)

    assert Rung.KILL in report.rungs
    assert (Rung.TERM in report.rungs) == told_to_end
    assert report.exit_status == ExitStatus(signal=9)
    assert report.seconds < 15  # no grace was waited for to its end


async def test_a_later_caller_may_hurry_a_ladder_that_is_under_way(stage: Stage) -> None:
    child = await stage.spawn("call", "rest", eof=math.inf)
    await stage.roll.wait_for(1)
    hurry = trio.Event()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.end_tree)
            await trio.testing.wait_all_tasks_blocked(0.01)
            hurry.set()
            report = await child.end_tree(hurried=hurry.is_set)

    assert Rung.KILL in report.rungs


async def test_every_caller_gets_the_same_report(stage: Stage) -> None:
    child = await stage.spawn("call", "until_eof")
    await stage.roll.wait_for(1)
    reports = []

    async def end() -> None:
        reports.append(await child.end_tree())

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(end)
    reports.append(await child.end_tree())

    assert len(reports) == 6
    assert len({id(report) for report in reports}) == 1


async def test_a_ladder_once_begun_runs_to_its_end_whatever_is_cancelled(stage: Stage) -> None:
    child = await stage.spawn("call", "rest", eof=0.1)
    await stage.roll.wait_for(1)

    with trio.CancelScope() as scope:
        scope.cancel()
        await child.end_tree()

    assert stage.roll.living == []
    assert (await child.end_tree()).clean


async def test_a_child_whose_nursery_was_cancelled_is_ended_all_the_same(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        child = await stage.host.spawn(stage.spec("call", "until_eof"), nursery)
        stage.children.append(child)
        nursery.cancel_scope.cancel()
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.REAP]
    assert report.clean


async def test_survivors_are_counted_and_the_ladder_still_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = await stage.spawn(["fork", ["call", "rest"]], "call", "rest", eof=0.05, term=0.1, kill=1.0)
    await stage.roll.wait_for(2)

    sent: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(tree, "kill", lambda _, number, *__: sent.append(number))
        report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.KILL, Rung.REAP]
    assert report.survivors == 2
    assert report.exit_status is None
    assert not report.clean
    assert 0.05 + 0.1 + 1.0 <= report.seconds < 10
    # Whoever outlives the kill of its group is stopped before it is killed, so that none can replace another.
    kills = [signal.Signals(number) for number in sent if number != signal.SIGCONT]
    assert kills[:4] == [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL]
    stage.kill_survivors()
    await stage.roll.wait_until_dead()


async def test_an_error_of_our_own_gives_a_failed_report_and_a_dead_group(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = await stage.spawn(["fork", ["call", "rest"]], "call", "rest", eof=0.05)
    await stage.roll.wait_for(2)

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(tree.Tree, "look", broken)
        report = await child.end_tree()

    assert report.failed
    assert not report.clean
    await stage.roll.wait_until_dead()
