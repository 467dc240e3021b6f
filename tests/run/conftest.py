"""Fixtures of the tests that run real children through the public API."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from acp_subagent.process import child, tree
from acp_subagent.process.procfs import Identity, ProcessTable
from acp_subagent.process.table import process_table
from tests.run.stage import Kill, Stage
from tests.run.watching import AcpWatch, watching
from tests.support.npm_packages import schema_path
from tests.support.wire_schema import AGENT, CLIENT, FrameChecker, load_schema


@pytest.fixture(scope="session")
def acp_schema() -> dict[str, Any]:
    """The official JSON Schema of ACP v1."""
    return load_schema(schema_path())


@pytest.fixture
def stage(tmp_path: Path, acp_schema: dict[str, Any]) -> Iterator[Stage]:
    """Makes providers over the fake; afterwards every frame is judged by the schema.

    Of an agent that breaks the protocol on purpose nothing is judged, and of ours what is no answer to it.
    """
    made = Stage(tmp_path)
    yield made
    for log, faulty in made.logs:
        judge(log, acp_schema, faulty=faulty)


@pytest.fixture
def clock() -> MockClock:
    """Real time, of which a test lets some pass at once when its agent has come to where it should be."""
    return MockClock(rate=1.0)


@pytest.fixture
def watch(
    stage: Stage, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[AcpWatch]:
    """Watches runs over the fake for secrets; afterwards none was found anywhere."""
    made = AcpWatch(stage, caplog)
    with watching(made, caplog, capfd):
        yield made


@pytest.fixture
async def replace_kill(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[Kill], None]]:
    """Lets a test choose what becomes of signals to a tree; afterwards all that were spared are killed."""
    original, spared = tree.kill, set[Identity]()

    def replace(instead: Kill) -> None:
        def kill(
            table: ProcessTable, number: int, processes: Iterable[Identity], groups: Iterable[int] = ()
        ) -> None:
            processes = list(processes)
            spared.update(processes)
            instead(table, number, processes, groups)

        monkeypatch.setattr(tree, "kill", kill)

    yield replace
    original(process_table(), signal.SIGKILL, spared)
    with trio.fail_after(10):
        while child._uncollected:
            child.collect_late_exits()
            await trio.sleep(0.005)


@pytest.fixture
async def nobody_is_killed(replace_kill: Callable[[Kill], None]) -> None:
    """No signal reaches anybody. (An argument of each test: `usefixtures` does not know async fixtures.)"""
    replace_kill(lambda table, number, processes, groups: None)


def judge(log: Path, schema: dict[str, Any], *, faulty: bool) -> None:
    """Check the conversations that the fakes of one provider wrote down, one after the other."""
    checker = FrameChecker(schema)
    for line in log.read_text().splitlines() if log.exists() else ():
        entry = json.loads(line)
        sender, frame = entry["from"], entry.get("frame")
        assert sender != CLIENT or frame is not None, "we sent something that is no frame"
        if sender == CLIENT and frame.get("method") == "initialize":
            checker = FrameChecker(schema)  # another child
        if not faulty and frame is not None:
            checker.check(sender, frame)
        elif sender != AGENT and "method" in frame:
            checker.check(CLIENT, frame)
