"""The wire log: every frame of both sides, for its owner's eyes, and never at the cost of the run."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import AcpConfig, ConfigurationError, SupportsResume
from acp_subagent.wire.log import WireLog
from tests.run.stage import BOUND_SECONDS, REPOSITORY, Stage

SAID = {"turns": [[{"text": "said"}]]}


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


async def test_every_frame_of_both_sides_is_written_down_with_its_time(stage: Stage) -> None:
    path, began = stage.folder / "wire.log", time.time()
    async with stage.service(SAID, wire_log=str(path)) as subagents:
        result = await subagents.run("fake", stage.request("the prompt"))
    assert result.text == "said"
    written = entries(path)
    seen_by_the_agent = [json.loads(line) for line in stage.logs[0][0].read_text().splitlines()]
    for side in ("client", "agent"):
        ours = [entry["frame"] for entry in written if entry["from"] == side]
        assert ours == [entry["frame"] for entry in seen_by_the_agent if entry["from"] == side]
    assert "the prompt" in path.read_text()
    assert all(began <= entry["at"] <= time.time() for entry in written)
    assert len({entry["child"] for entry in written}) == 1


async def test_only_its_owner_may_read_it_also_when_it_was_there_before(stage: Stage) -> None:
    made, before = stage.folder / "made.log", stage.folder / "before.log"
    before.write_text('{"kept": true}\n')
    before.chmod(0o644)
    for path in (made, before):
        async with stage.service(SAID, wire_log=str(path)) as subagents:
            await subagents.run("fake", stage.request())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert entries(before)[0] == {"kept": True}


async def test_there_is_none_unless_it_was_asked_for(stage: Stage) -> None:
    assert AcpConfig(name="a", command="b").wire_log is None
    async with stage.service(SAID) as subagents:
        await subagents.run("fake", stage.request())
    assert [path.name for path in stage.folder.iterdir()] == [stage.logs[0][0].name]


async def test_lines_that_are_no_json_are_kept_too(stage: Stage) -> None:
    path = stage.folder / "wire.log"
    turn = [
        {"raw": "starting ...\n"},
        {"raw": {"bytes": "\xff\xfe\n"}},
        {"raw": '{"jsonrpc":"2.0","method":"x","params":{"n":NaN}}\n'},
        {"text": "said"},
    ]
    async with stage.service({"turns": [turn]}, faulty=True, wire_log=str(path)) as subagents:
        assert (await subagents.run("fake", stage.request())).text == "said"
    raw = [entry["raw"] for entry in entries(path) if "raw" in entry]
    assert raw == ["starting ...", "\\xff\\xfe", '{"jsonrpc":"2.0","method":"x","params":{"n":NaN}}']


@pytest.mark.parametrize("path", ["/dev/full", "{folder}", "{folder}/not/there", "{folder}/a\0b"])
async def test_a_path_that_cannot_be_written_harms_nothing_and_is_logged_once(
    path: str, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    path = path.format(folder=stage.folder)
    with caplog.at_level(logging.WARNING):
        async with stage.service(SAID, wire_log=path) as subagents:
            result = await subagents.run("fake", stage.request())
    assert (result.stop_reason, result.text) == ("completed", "said")
    [record] = caplog.records
    assert record.name == "acp_subagent.wire"
    assert "wire log" in record.getMessage()
    assert str(stage.folder) not in record.getMessage()


#: A host whose files can take no more at some point: the system then refuses in the middle of a line.
HOST_WITH_A_LIMIT = """
import resource, sys, trio
from acp_subagent import AcpConfig, AcpProvider, Parent, SubagentRequest, open_subagents

log, limit, *command = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))

async def main():
    async with open_subagents() as subagents:
        config = AcpConfig(name="a", command=command[0], args=command[1:], wire_log=log)
        subagents.register(AcpProvider(config))
        result = await subagents.run("a", SubagentRequest(prompt="x", parent=Parent(cwd="/")))
        print(result.stop_reason, len(result.text), result.diagnostic)

trio.run(main)
"""


def test_a_log_that_fills_up_in_the_middle_ends_and_harms_nothing(tmp_path: Path) -> None:
    log, limit = tmp_path / "wire.log", 8192
    scenario = json.dumps({"turns": [[{"text": {"text": "said ", "count": 200}}]]})
    agent = [sys.executable, "-m", "fake_acp_server", "--json", scenario]
    ended = subprocess.run(
        [sys.executable, "-c", HOST_WITH_A_LIMIT, str(log), str(limit), *agent],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        check=True,
    )
    assert ended.stdout == "completed 1000 None\n"
    assert ended.stderr == "the wire log cannot be written (ENOSPC); the run goes on without it\n"
    *whole, torn = log.read_bytes().split(b"\n")
    assert log.stat().st_size == limit
    assert len([json.loads(line) for line in whole]) > 10
    assert torn, "the last line is the one that did not fit"


async def test_a_named_pipe_that_nobody_reads_holds_nothing_up(stage: Stage) -> None:
    path = stage.folder / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        turn = [{"text": {"size": 200_000, "count": 2}}]  # more than a pipe holds
        async with stage.service({"turns": [turn]}, wire_log=str(path)) as subagents:
            assert (await subagents.run("fake", stage.request())).stop_reason == "completed"
    finally:
        os.close(reader)


async def test_runs_that_share_a_log_leave_each_others_lines_whole(stage: Stage) -> None:
    path = stage.folder / "wire.log"
    scenario = {"turns": [[{"text": {"size": 20_000, "count": 10}}]]}
    async with stage.service() as subagents, trio.open_nursery() as nursery:
        for name in "abcd":
            subagents.register(stage.provider(scenario, name=name, wire_log=str(path)))
            nursery.start_soon(subagents.run, name, stage.request())
    by_child: dict[int, list[Any]] = {}
    for entry in entries(path):
        by_child.setdefault(entry["child"], []).append(entry["frame"])
    assert len(by_child) == 4
    for frames in by_child.values():
        chunks = [frame for frame in frames if frame.get("method") == "session/update"]
        assert len(chunks) == 10
        assert frames[0]["method"] == "initialize"


async def test_frames_of_every_turn_go_to_the_same_log(stage: Stage) -> None:
    path = stage.folder / "wire.log"
    async with stage.service(SAID, wire_log=str(path)) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            await run.result()
            assert isinstance(run, SupportsResume)
            async with await run.resume("more") as second:
                await second.result()
    assert [entry["frame"].get("method") for entry in entries(path)].count("session/prompt") == 2


def test_a_relative_path_is_made_absolute_when_the_configuration_is_made() -> None:
    config = AcpConfig(name="a", command="b", wire_log="wire.log")
    assert config.wire_log == os.path.abspath("wire.log")
    assert "wire.log" not in repr(config)
    with pytest.raises(ConfigurationError):
        AcpConfig(name="a", command="b", wire_log="")


def test_a_log_that_was_closed_drops_what_still_comes(tmp_path: Path) -> None:
    path = tmp_path / "wire.log"
    log = WireLog(str(path), child=1)
    log.tap("sent", b"{}")
    log.close()
    log.tap("sent", b"{}")
    log.close()
    assert len(entries(path)) == 1
    assert (path.read_text() + repr(log)).count(str(tmp_path)) == 0
