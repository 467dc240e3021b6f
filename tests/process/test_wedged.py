"""Children that do not behave: stuck, deaf, or shouting."""

from __future__ import annotations

import os

import pytest
import trio
import trio.testing

from acp_subagent.seam.activity import ExitStatus, Rung
from tests.process.stage import Stage

MIB = 1 << 20


async def read_to_end(stream: trio.lowlevel.FdStream) -> bytes:
    said = bytearray()
    async for data in stream:
        said += data
    return bytes(said)


async def test_a_child_that_does_not_read_stdin_is_ended_while_a_write_is_stuck(stage: Stage) -> None:
    child = await stage.spawn("call", "rest", eof=0.1)
    await stage.roll.wait_for(1)
    outcome: list[str] = []

    async def write_for_ever() -> None:
        try:
            await child.stdin.send_all(b"x" * MIB)
        except trio.ClosedResourceError:
            outcome.append("closed under the writer")

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write_for_ever)
            await trio.testing.wait_all_tasks_blocked(0.01)
            report = await child.end_tree()

    assert outcome == ["closed under the writer"]
    assert report.clean


async def test_a_child_that_floods_stdout_unread_is_ended(stage: Stage) -> None:
    child = await stage.spawn("call", ["flood", 1], eof=0.1)
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert report.exit_status == ExitStatus(signal=15)
    assert report.clean


async def test_a_child_that_closes_its_pipes_and_lives_is_ended(stage: Stage) -> None:
    child = await stage.spawn("call", ["close", 0], ["close", 1], ["close", 2], "rest", eof=0.1)
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert list(report.rungs) == [Rung.EOF, Rung.TERM, Rung.REAP]
    assert report.clean


async def test_a_hundred_megabytes_on_stderr_are_drained_and_the_end_is_kept(stage: Stage) -> None:
    seen = 0

    def count(data: bytes) -> None:
        nonlocal seen
        seen += len(data)

    child = await stage.spawn(
        ["write", 2, "0123456789" * 1000, 10_000], ["write", 2, "the end"], on_stderr=count
    )
    with trio.fail_after(20):
        await child.exited.wait()
    report = await child.end_tree()

    assert report.exit_status == ExitStatus(code=0)
    assert seen == 100_000_000 + len("the end")
    assert len(child.stderr_tail) == 65536
    assert child.stderr_tail.endswith(b"9the end")


async def test_the_last_words_on_stderr_of_a_killed_child_are_kept(stage: Stage) -> None:
    child = await stage.spawn("call", ["write", 2, "last words"], ["raise_signal", "KILL"])
    with trio.fail_after(20):
        await child.exited.wait()

    await child.end_tree()

    assert child.stderr_tail == b"last words"


async def test_an_observer_of_stderr_that_raises_stops_nothing(stage: Stage) -> None:
    calls = 0

    def broken(_: bytes) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("the observer's own bug")

    child = await stage.spawn("call", ["write", 2, "x", 200_000], "until_eof", on_stderr=broken)
    await stage.roll.wait_for(1)
    report = await child.end_tree()

    assert calls == 1
    assert len(child.stderr_tail) == 65536
    assert report.clean


@pytest.mark.parametrize("what", ["keeps", "floods"])
async def test_the_exit_is_seen_though_a_grandchild_has_stdout(stage: Stage, what: str) -> None:
    grandchild = ["setsid", "call", *([["flood", 1]] if what == "floods" else []), "rest"]
    child = await stage.spawn("call", ["write", 1, "an answer"], ["fork", grandchild], ["exit", 0])
    await stage.roll.wait_for(2)

    with trio.fail_after(20):
        await child.exited.wait()
        said = await child.stdout.receive_some(65536)
        report = await child.end_tree()

    assert b"an answer" in said + await read_to_end(child.stdout)
    assert report.exit_status == ExitStatus(code=0)
    assert report.survivors == 0
    assert stage.roll.living == []


async def test_what_was_said_before_the_end_can_still_be_read_after_it(stage: Stage) -> None:
    child = await stage.spawn("call", ["write", 1, "all of it\n", 1000], "until_eof")
    await stage.roll.wait_for(1)

    await child.end_tree()

    assert await read_to_end(child.stdout) == b"all of it\n" * 1000


async def test_a_process_outside_the_tree_that_holds_stderr_delays_nothing(stage: Stage) -> None:
    """Like a worker that the host forked between opening the pipes and closing the child's ends."""
    child = await stage.spawn("call", ["write", 2, "said"], "until_eof", eof=30)
    await stage.roll.wait_for(1)
    outside = os.open(f"/proc/{child.pid}/fd/2", os.O_WRONLY)
    try:
        report = await child.end_tree()
    finally:
        os.close(outside)

    assert report.seconds < 15
    assert child.stderr_tail == b"said"
    assert list(report.rungs) == [Rung.EOF, Rung.REAP]
