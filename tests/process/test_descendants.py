"""Every way to get away from one's parent, and none of them leads out of the tree."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from acp_subagent.process import host as host_module
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.procfs import ProcTable
from acp_subagent.process.table import PsutilTable
from acp_subagent.seam.activity import ExitStatus, Rung
from tests.process.stage import Stage, launch, our_children, stranger, until

#: name -> the leader's steps until it rests, and how many processes then call in
TREES: dict[str, tuple[list[Any], int]] = {
    "alone": (["call"], 1),
    "a child": ([["fork", ["call", "rest"]], "call"], 2),
    "a changed group": ([["fork", ["new_group", "call", "rest"]], "call"], 2),
    "a session of its own": ([["fork", ["setsid", "call", "rest"]], "call"], 2),
    "double-forked": ([["fork", [["fork", ["call", "rest"]], ["exit", 0]]], "call"], 2),
    "a daemon": ([["fork", ["setsid", ["fork", ["call", "rest"]], ["exit", 0]]], "call"], 2),
    "a daemon in a new program": (
        [["fork", ["setsid", ["fork", ["exec", "call", "rest"]], ["exit", 0]]], "call"],
        2,
    ),
    "every descriptor closed": ([["fork", ["setsid", "call", "close_all", "rest"]], "call"], 2),
    "a cleared environment": ([["fork", ["setsid", ["exec", "cleared"], "call", "rest"]], "call"], 2),
    "a child without its first thread": (
        [["fork", ["setsid", ["fork", ["call", "thread_outlives_main"]], ["exit", 0]]], "call"],
        2,
    ),
    "a leader without its first thread": (["call", "thread_outlives_main"], 1),
    "a crowd": (
        [["crowd", 8, ["setsid", "call", ["crowd", 2, ["setsid", "call", "rest"]], "rest"]], "call"],
        25,
    ),
}


@pytest.mark.parametrize("kind", TREES)
async def test_a_whole_tree_ends_by_sigterm(stage: Stage, kind: str) -> None:
    steps, count = TREES[kind]
    child = await stage.spawn(*steps, "rest", eof=0.05)
    await stage.roll.wait_for(count)

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.survivors == 0
    assert report.processes_found >= count
    assert Rung.KILL not in report.rungs


@pytest.mark.parametrize("kind", TREES)
async def test_a_whole_tree_ends_by_the_kill(stage: Stage, kind: str) -> None:
    steps, count = TREES[kind]
    child = await stage.spawn(["ignore", "SIGTERM"], *steps, "rest", eof=0.05, term=0.05)
    await stage.roll.wait_for(count)

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.survivors == 0
    assert Rung.KILL in report.rungs


@pytest.mark.parametrize("kind", [kind for kind in TREES if "cleared" not in kind and "leader" not in kind])
async def test_a_tree_whose_leader_has_gone_is_found_whole(stage: Stage, kind: str) -> None:
    steps, count = TREES[kind]
    child = await stage.spawn(*steps, ["exit", 0])
    await stage.roll.wait_for(count)
    with trio.fail_after(20):
        await child.exited.wait()

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.survivors == 0
    assert report.exit_status == ExitStatus(code=0)


async def test_a_process_that_nothing_marks_is_remembered_from_when_its_parent_lived(stage: Stage) -> None:
    """Its own session, no cookie, re-parented: only the walks while the child lived have seen it."""
    unmarked = ["fork", ["setsid", ["exec", "cleared"], "call", "rest"]]
    child = await stage.spawn(["fork", [unmarked, "call", "rest"]], "call", "until_eof")
    await stage.roll.wait_for(3)
    await until(lambda: len(child._tree.alive) == 3)
    (parent,) = (facts.pid for facts in child._tree.alive.values() if facts.parent == child.pid)
    os.kill(parent, signal.SIGKILL)
    await until(lambda: len(stage.roll.living) < 3)

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.processes_found == 3


async def test_a_process_that_nothing_marks_is_seen_right_before_stdin_is_closed(stage: Stage) -> None:
    """The agent exits then, and with it the only link to it."""
    unmarked = ["fork", ["setsid", ["exec", "cleared"], "call", "rest"]]
    child = await stage.spawn(unmarked, "until_eof")
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.processes_found == 2


async def test_a_launcher_that_exits_early_leaves_the_agent_to_the_ladder(stage: Stage) -> None:
    child = await stage.spawn(["fork", ["call", "until_eof"]], "call", ["exit", 0])
    await stage.roll.wait_for(2)
    with trio.fail_after(20):
        await child.exited.wait()

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.exit_status == ExitStatus(code=0)


async def test_a_leader_that_replaced_itself_is_still_the_leader(stage: Stage) -> None:
    child = await stage.spawn("exec", "exec", "call", "until_eof", ["exit", 5])
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert stage.roll.pids == [child.pid]
    assert report.exit_status == ExitStatus(code=5)
    assert report.processes_found == 1


async def test_a_fork_relay_within_the_group_always_dies(stage: Stage) -> None:
    child = await stage.spawn(["fork", [["relay", 0]]], "call", "rest", eof=0.05, term=0.05)
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert report.survivors == 0
    assert stage.carriers() == []


async def test_a_relay_that_makes_a_session_for_each_link_dies(stage: Stage) -> None:
    child = await stage.spawn(
        ["ignore", "SIGTERM"], ["fork", [["relay", 0.02, True]]], "call", "rest", eof=0.05, term=0.05
    )
    await stage.roll.wait_for(1)

    report = await child.end_tree()

    assert report.survivors == 0
    assert stage.carriers() == []


async def test_orphans_that_this_program_inherits_are_reaped(stage: Stage) -> None:
    """As for a program that is the first process of a container."""
    with inheriting_orphans():
        child = await stage.spawn(*TREES["a daemon"][0], "until_eof")
        await stage.roll.wait_for(2)

        report = await child.end_tree()

        assert report.survivors == 0
        assert our_children() == set()


@pytest.mark.parametrize("kind", ["a session of its own", "a daemon", "a cleared environment"])
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_tree_is_found_where_there_is_no_proc(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: str, stubborn: bool
) -> None:
    """The table of such a system, on this one."""
    monkeypatch.setattr(host_module, "process_table", PsutilTable)
    slow_host = ProcessHost(stage.service_id, watchdog=False)
    steps, count = TREES[kind]
    start = [["ignore", "SIGTERM"]] if stubborn else []
    child = await slow_host.spawn(stage.spec(*start, *steps, "rest", eof=0.05, term=0.3), stage.nursery)
    stage.children.append(child)
    await stage.roll.wait_for(count)

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.survivors == 0
    assert report.processes_found >= count


async def test_strangers_in_new_sessions_are_not_touched(stage: Stage) -> None:
    child = await stage.spawn("call", "rest", eof=0.05)
    other = await stage.spawn("call", "until_eof")
    with stranger(stage.roll) as pid:
        await stage.roll.wait_for(3)

        report = await child.end_tree()

        assert report.processes_found == 1
        assert sorted(stage.roll.living) == sorted([other.pid, pid])


async def test_a_stranger_with_the_number_of_a_member_is_not_signalled(stage: Stage) -> None:
    """The member's number is given to a stranger: shown by a substituted start time."""
    child = await stage.spawn("call", "until_eof")
    with stranger(stage.roll) as pid:
        await stage.roll.wait_for(2)
        facts = ProcTable().facts(pid)
        assert facts is not None
        members = child._tree.alive
        members[pid] = facts._replace(start=facts.start - 1)

        for number in (signal.SIGTERM, signal.SIGKILL):
            child._tree.signal(number, [members[pid]])
        report = await child.end_tree()

        assert stage.roll.living == [pid]
        assert report.survivors == 0


async def test_the_outer_host_finds_what_the_child_of_an_inner_host_left_behind(stage: Stage) -> None:
    escaped = ["setsid", ["fork", ["exec", "call", "rest"]], ["exit", 0]]
    inner = stage.spec(["fork", escaped], "call", "until_eof")
    program = (sys.executable, *inner.args)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    child = await stage.start(
        launch(sys.executable, "-c", INNER_HOST, *program, environment=environment, cwd="/")
    )
    await stage.roll.wait_for(2)

    report = await child.end_tree()

    assert stage.roll.living == []
    assert report.survivors == 0
    assert report.processes_found >= 3


@contextmanager
def inheriting_orphans() -> Iterator[None]:
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    try:
        yield
    finally:
        ctypes.CDLL(None).prctl(set_child_subreaper, 0, 0, 0, 0)


#: a host of its own that dies without looking after its child
INNER_HOST = """
import os, sys, trio
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec

async def main():
    async with trio.open_nursery() as nursery:
        spec = LaunchSpec(command=sys.argv[1], args=tuple(sys.argv[2:]), cwd="/", environment={},
            eof_grace_seconds=1, term_grace_seconds=1, kill_grace_seconds=1,
            exit_observation_seconds=1, stderr_tail_bytes=100)
        await ProcessHost("inner", watchdog=False).spawn(spec, nursery)
        await trio.to_thread.run_sync(sys.stdin.read)
        os._exit(0)

trio.run(main)
"""
