"""Starting a child: it is there and ours, or nothing of it is."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from acp_subagent.errors import SpawnError
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec, SpawnFault, WorkingDirectoryFault
from acp_subagent.process.procfs import COOKIE
from tests.process.stage import Stage, launch, open_descriptors, our_children


async def test_a_child_runs_where_and_with_what_it_was_told(stage: Stage, tmp_path: Path) -> None:
    program = (
        "import os, sys; print([os.getcwd(), sys.argv[1:], dict(os.environ), os.getsid(0) == os.getpid()])"
    )
    environment = {"A": "b", "C": "\udcff"}
    spec = launch(sys.executable, "-c", program, "x y", "", cwd=str(tmp_path), environment=environment)

    child = await stage.start(spec)

    said = b""
    with trio.fail_after(10):
        async for data in child.stdout:
            said += data
    cwd, args, variables, leads_a_session = eval(said)
    variables.pop("LC_CTYPE", None)
    assert (cwd, args, leads_a_session) == (str(tmp_path), ["x y", ""], True)
    assert variables == {**environment, COOKIE: f"/{stage.service_id}.1"}


async def test_each_launch_has_a_cookie_of_its_own_behind_the_inherited_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COOKIE, "/outer.7")
    environment = {COOKIE: "/forged.1"}
    said = []
    for _ in range(2):
        child = await stage.start(launch("/bin/sh", "-c", f"echo ${COOKIE}", environment=environment))
        with trio.fail_after(20):
            said.append(await child.stdout.receive_some(1000))

    assert said == [f"/outer.7/{stage.service_id}.{n}\n".encode() for n in (1, 2)]


@pytest.mark.parametrize(
    ("reason", "text", "mode"),
    [
        (SpawnFault.COMMAND_NOT_FOUND, None, 0),
        (SpawnFault.NOT_EXECUTABLE, "#!/bin/sh\n", 0o644),
        (SpawnFault.NOT_EXECUTABLE, "\x7fELF", 0o755),
        (SpawnFault.NO_SHEBANG, "echo hello\n", 0o755),
        (SpawnFault.NO_SHEBANG, "", 0o755),
        (SpawnFault.INTERPRETER_MISSING, "#!/no/such/thing\n", 0o755),
        (SpawnFault.INTERPRETER_MISSING, "#!/usr/bin/env no-node\n", 0o755),
    ],
)
async def test_a_command_that_cannot_be_started_is_refused_with_its_word_and_leaves_nothing(
    stage: Stage, tmp_path: Path, reason: str, text: str | None, mode: int
) -> None:
    path = tmp_path / "command"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    assert await fault_of(stage, launch(str(path))) == reason


async def test_arguments_that_are_too_long_together_are_refused(stage: Stage) -> None:
    spec = launch("/bin/true", *["x" * 120_000] * 100)
    assert await fault_of(stage, spec) == SpawnFault.ARGUMENTS_TOO_LONG


async def test_one_argument_that_is_too_long_is_refused(stage: Stage) -> None:
    assert await fault_of(stage, launch("/bin/true", "x" * 140_000)) == SpawnFault.ARGUMENTS_TOO_LONG


async def test_a_nul_byte_is_refused(stage: Stage) -> None:
    assert await fault_of(stage, launch("/bin/true", "a\0b")) == SpawnFault.NUL_BYTE


async def test_text_that_the_system_has_no_bytes_for_is_refused_without_a_word(stage: Stage) -> None:
    assert await fault_of(stage, launch("/bin/true", "\ud800")) == ""


async def test_a_working_directory_that_has_vanished_is_refused(stage: Stage) -> None:
    spec = launch("/bin/true", cwd="/no/such/directory")
    assert await fault_of(stage, spec) == WorkingDirectoryFault.NOT_FOUND


@pytest.mark.parametrize("spare", range(0, 16, 2))
async def test_running_out_of_descriptors_is_refused_and_leaves_nothing(stage: Stage, spare: int) -> None:
    """With few to spare the spawn fails at one place or another; with enough it succeeds."""
    with descriptors_left(spare):
        outcome = None
        try:
            await stage.spawn("call", "until_eof")
        except SpawnError as error:
            outcome = error.reason
    assert outcome == (SpawnFault.OUT_OF_DESCRIPTORS if spare < 8 else None)


async def test_a_tree_is_ended_with_no_descriptor_left(stage: Stage) -> None:
    child = await stage.spawn(["fork", ["setsid", "call", "rest"]], "call", "rest", eof=0.05)
    await stage.roll.wait_for(2)

    with descriptors_left(0):
        report = await child.end_tree()

    assert report.survivors == 0
    assert stage.roll.living == []


@pytest.mark.parametrize("delay_seconds", [0, 0.0001, 0.0005, 0.001, 0.002, 0.004])
async def test_a_spawn_that_is_cancelled_leaves_nothing(stage: Stage, delay_seconds: float) -> None:
    children, descriptors = our_children(), len(open_descriptors())
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            with trio.move_on_after(delay_seconds):
                child = await stage.host.spawn(stage.spec("call", "until_eof"), nursery)
                stage.children.append(child)
        for child in stage.children:
            await child.end_tree()
            child.stdout.close()
    assert our_children() == children
    assert len(open_descriptors()) == descriptors


async def test_cancelled_while_it_is_started_the_child_is_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = []

    class Slow(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            pids.append(self.pid)
            scope.cancel()

    monkeypatch.setattr(subprocess, "Popen", Slow)
    with trio.CancelScope() as scope:
        await stage.spawn("call", "until_eof")

    assert scope.cancelled_caught
    assert stage.children == []
    assert pids[0] not in our_children()


async def test_a_child_that_nobody_can_own_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    children, descriptors = our_children(), len(open_descriptors())

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no tree")

    monkeypatch.setattr("acp_subagent.process.host.Tree", broken)
    with pytest.raises(RuntimeError, match="no tree"):
        await stage.spawn("call", "until_eof")

    assert our_children() == children
    assert len(open_descriptors()) == descriptors


async def test_a_spawn_needs_no_worker_thread(stage: Stage) -> None:
    limiter = trio.to_thread.current_default_thread_limiter()
    release = threading.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(int(limiter.total_tokens)):
            nursery.start_soon(partial(trio.to_thread.run_sync, release.wait))
        await trio.testing.wait_all_tasks_blocked(0.01)
        try:
            await stage.spawn("call", "until_eof")
            await stage.roll.wait_for(1)
        finally:
            release.set()


async def test_of_many_children_started_at_once_one_starts_in_each_pass_of_the_scheduler(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, started_in = 0, []

    class Counting(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            nonlocal passes
            passes += 1

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            started_in.append(passes)
            super().__init__(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    counting = Counting()
    trio.lowlevel.add_instrument(counting)
    try:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(stage.start, launch("/bin/cat"))
    finally:
        trio.lowlevel.remove_instrument(counting)

    assert len(set(started_in)) == len(started_in) == 5


async def test_a_nursery_that_takes_no_more_tasks_gets_no_child(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        pass
    with pytest.raises(RuntimeError):
        await stage.host.spawn(stage.spec("call", "until_eof"), nursery)
    assert our_children() == set()


@pytest.mark.parametrize("service_id", ["", "a/b", "a.b", "a b"])
def test_a_service_id_that_would_break_the_cookie_is_refused(service_id: str) -> None:
    with pytest.raises(ValueError, match="service id"):
        ProcessHost(service_id, watchdog=False)


async def test_many_children_start_and_end_at_once(stage: Stage) -> None:
    async def one() -> None:
        child = await stage.spawn("call", "until_eof")
        assert (await child.end_tree()).clean

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(one)
    assert len(stage.children) == 30


async def fault_of(stage: Stage, spec: LaunchSpec) -> str:
    children, descriptors = our_children(), len(open_descriptors())
    with pytest.raises(SpawnError) as raised:
        await stage.start(spec)
    assert our_children() == children
    assert len(open_descriptors()) == descriptors
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    return raised.value.reason


@contextmanager
def descriptors_left(spare: int) -> Iterator[None]:
    """Leave this process no more than so many descriptors to open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, open_descriptors()))
    # Holes below the highest number could still be used: fill them.
    fillers = []
    while (filler := os.open("/dev/null", os.O_RDONLY)) < highest:
        fillers.append(filler)
    os.close(filler)
    resource.setrlimit(resource.RLIMIT_NOFILE, (filler + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)
