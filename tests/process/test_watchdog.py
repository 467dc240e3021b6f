"""The host dies, and nothing that it started lives on."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent.errors import ConfigurationError
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.procfs import COOKIE, Identity, ProcTable
from acp_subagent.process.reaper import host_died
from tests.process.stage import Roll, carriers, launch, open_descriptors, until

HOST_PROGRAM = Path(__file__).with_name("host_program.py")
PROMISED_SECONDS = 2.0

ESCAPED = ["setsid", ["fork", ["exec", "call", "rest"]], ["exit", 0]]
STUBBORN = [["ignore", "SIGTERM"], "setsid", ["fork", ["call", "rest"]], ["exit", 0]]
AGENT = [["fork", ESCAPED], "call", "rest"]
STUBBORN_AGENT = [["ignore", "SIGTERM"], ["fork", STUBBORN], "call", "rest"]


class Host:
    """A host program, the roll of what it started, and the proof that its watchdog goes as well."""

    def __init__(self, roll: Roll) -> None:
        self.service_id = secrets.token_hex(4)
        self.roll = roll
        self.process: subprocess.Popen[bytes] | None = None
        self.told: dict[str, int] = {}
        self._watchdog_pidfd = -1

    def start(self, *children: list[Any], **options: Any) -> None:
        arguments = [self.service_id, self.roll.path, json.dumps({"children": children, **options})]
        self.process = subprocess.Popen(
            [sys.executable, str(HOST_PROGRAM), *arguments],
            env={"PYTHONPATH": ":".join(sys.path), COOKIE: "/outer.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    async def run(self, *children: list[Any], **options: Any) -> None:
        self.start(*children, **options)
        if not options.get("die_at_once"):
            assert await trio.to_thread.run_sync(self._read_until_ready)

    def _read_until_ready(self) -> bool:
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, _, number = line.decode().strip().partition(" ")
            if word == "ready":
                return True
            self.told[word] = int(number)
            if word == "watchdog":
                self._watchdog_pidfd = os.pidfd_open(int(number))
        return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def wait_until_nothing_lives(self, within_seconds: float = PROMISED_SECONDS) -> None:
        with trio.fail_after(within_seconds):
            await self.roll.wait_until_dead(within_seconds=within_seconds)
            await until(lambda: not carriers(self.service_id))

    async def wait_until_the_watchdog_has_gone(self) -> None:
        with trio.fail_after(10):
            await trio.lowlevel.wait_readable(self._watchdog_pidfd)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                assert stream is not None
                stream.close()
        if self._watchdog_pidfd >= 0:
            os.close(self._watchdog_pidfd)
        for pid in carriers(self.service_id):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    with tempfile.TemporaryDirectory() as directory:
        roll = Roll(f"{directory}/roll")
        await roll.open()
        host = Host(roll)
        try:
            yield host
        finally:
            host.close()
            roll.close()


async def test_three_agents_and_what_escaped_from_them_die_with_the_host(host: Host) -> None:
    await host.run(AGENT, STUBBORN_AGENT, AGENT)
    await host.roll.wait_for(6)

    host.kill()

    await host.wait_until_nothing_lives()
    await host.wait_until_the_watchdog_has_gone()


async def test_they_die_though_a_forked_worker_of_the_host_lives_on(host: Host) -> None:
    await host.run(AGENT, fork_worker=True)
    await host.roll.wait_for(2)
    try:
        host.kill()
        await host.wait_until_nothing_lives()
        await host.wait_until_the_watchdog_has_gone()
    finally:
        os.kill(host.told["worker"], signal.SIGKILL)


async def test_a_host_killed_right_after_the_spawn_leaves_nothing(host: Host) -> None:
    """The watchdog itself is only just starting then."""
    await host.run(["call", "rest"], die_at_once=True)
    assert host.process is not None
    with trio.fail_after(10):
        await trio.to_thread.run_sync(host.process.wait)

    # The child has hardly begun to run, and may call in, or die before it could.
    await host.wait_until_nothing_lives()
    await trio.sleep(0.3)  # not a synchronisation: a child that came late would be seen now
    assert carriers(host.service_id) == []


async def test_a_stopped_tree_and_a_relay_die_with_the_host(host: Host) -> None:
    relay = ["call", ["relay", 0.02, True]]
    await host.run(["call", "stop", "rest"], [["fork", relay], "call", "rest"])
    await host.roll.wait_for(3)

    host.kill()

    await host.wait_until_nothing_lives()


async def test_they_die_when_the_host_has_become_another_program(host: Host) -> None:
    """Its process lives on, and nobody in it knows of them."""
    await host.run(STUBBORN_AGENT, become=["/bin/sleep", "30"])
    await host.roll.wait_for(2)
    assert host.process is not None
    assert host.process.stdin is not None

    host.process.stdin.write(b"\n")
    host.process.stdin.flush()

    await host.wait_until_nothing_lives()
    assert host.process.poll() is None


async def test_an_orderly_end_ends_the_watchdog_and_is_no_death(host: Host) -> None:
    await host.run(["call", "until_eof"], close_in_order=True)
    await host.wait_until_the_watchdog_has_gone()
    assert host.process is not None
    with trio.fail_after(10):
        assert await trio.to_thread.run_sync(host.process.wait) == 0


def ignores(pid: int, *signals: signal.Signals) -> bool:
    """Whether a process ignores these signals now, as the kernel has it."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")), 16)
    return all(mask >> (number - 1) & 1 for number in signals)


async def test_signals_to_the_watchdog_do_not_end_it(host: Host) -> None:
    await host.run(AGENT)
    await host.roll.wait_for(2)
    watchdog = host.told["watchdog"]
    signals = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    with trio.fail_after(20):  # its interpreter may not have come so far
        while not ignores(watchdog, *signals):
            await trio.lowlevel.checkpoint()
    for number in signals:
        os.kill(watchdog, number)

    host.kill()

    await host.wait_until_nothing_lives()


async def test_the_watchdog_holds_nothing_of_the_host(host: Host) -> None:
    await host.run(AGENT)
    watchdog = Path("/proc") / str(host.told["watchdog"])

    held: list[str] = []
    with trio.fail_after(20):  # what it opens for a moment (a module, a file of /proc) it closes again
        while held != ["/dev/null", "/dev/null", "anon_inode", "pipe"]:
            await trio.lowlevel.checkpoint()
            with suppress(FileNotFoundError):  # closed between the two calls
                held = sorted(os.readlink(entry).split(":[")[0] for entry in (watchdog / "fd").iterdir())

    assert os.readlink(watchdog / "cwd") == "/"
    assert b"ACP_SUBAGENT" not in (watchdog / "environ").read_bytes()
    assert ProcTable().sessions()[host.told["watchdog"]] == host.told["watchdog"]


async def test_a_watchdog_that_was_killed_is_replaced_at_the_next_spawn(nursery: trio.Nursery) -> None:
    host = ProcessHost(secrets.token_hex(4), watchdog=True)
    try:
        for _ in range(2):
            child = await host.spawn(launch("/bin/cat"), nursery)
            await child.end_tree()
            child.stdout.close()
            first = host.watchdog_pid
            assert first is not None
            with watched(first) as pidfd:
                os.kill(first, signal.SIGKILL)
                with trio.fail_after(20):
                    await trio.lowlevel.wait_readable(pidfd)
        child = await host.spawn(launch("/bin/cat"), nursery)
        await child.end_tree()
        child.stdout.close()
        assert host.watchdog_pid not in (None, first)
    finally:
        await host.aclose()
    assert host.watchdog_pid is None


async def test_one_watchdog_serves_all_children_also_those_that_start_at_once(nursery: trio.Nursery) -> None:
    host = ProcessHost(secrets.token_hex(4), watchdog=True)
    descriptors = len(open_descriptors())
    watchdogs = set()

    async def one() -> None:
        child = await host.spawn(launch("/bin/cat"), nursery)
        watchdogs.add(host.watchdog_pid)
        await child.end_tree()
        child.stdout.close()

    async with trio.open_nursery() as together:
        for _ in range(5):
            together.start_soon(one)
    await host.aclose()

    assert len(watchdogs) == 1
    assert len(open_descriptors()) == descriptors


async def test_without_a_watchdog_none_is_started(nursery: trio.Nursery) -> None:
    host = ProcessHost(secrets.token_hex(4), watchdog=False)
    child = await host.spawn(launch("/bin/cat"), nursery)
    await child.end_tree()
    child.stdout.close()
    assert host.watchdog_pid is None
    await host.aclose()


@pytest.mark.parametrize(("attribute", "value"), [("executable", ""), ("frozen", True)])
async def test_a_program_without_an_interpreter_is_told_so(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, attribute: str, value: object
) -> None:
    monkeypatch.setattr(sys, attribute, value, raising=False)
    host = ProcessHost(secrets.token_hex(4), watchdog=True)
    with pytest.raises(ConfigurationError, match="reaper=False"):
        await host.spawn(launch("/bin/cat"), nursery)


def test_the_number_of_a_dead_host_given_to_another_counts_as_its_death() -> None:
    with pipe_of(b"") as pipe:
        facts = ProcTable().facts(os.getpid())
        assert facts is not None
        assert host_died(Identity(facts.pid, facts.start - 1), pipe)


def test_a_host_that_is_gone_before_anybody_looks_has_died() -> None:
    with subprocess.Popen(["/bin/true"]) as gone:
        gone.wait()
    with pipe_of(b"") as pipe:
        assert host_died(Identity(gone.pid, 1), pipe)


def test_a_byte_in_the_pipe_is_the_orderly_end_also_when_the_host_has_gone_since() -> None:
    with subprocess.Popen(["/bin/true"]) as gone:
        gone.wait()
    with pipe_of(b".") as pipe:
        assert not host_died(Identity(gone.pid, 1), pipe)


@contextmanager
def pipe_of(data: bytes) -> Iterator[int]:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing) if data else None
    try:
        yield reading
    finally:
        os.close(reading)
        if not data:
            os.close(writing)


@contextmanager
def watched(pid: int) -> Iterator[int]:
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)
