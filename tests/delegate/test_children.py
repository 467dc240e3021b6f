"""The tool and its jobs over real children."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from acp_subagent import (
    JobKillTool,
    JobOutputTool,
    JobStatus,
    Parent,
    SubagentService,
    SubagentTool,
    ToolResult,
    open_job_table,
)
from tests.conftest import children
from tests.delegate.texts import (
    ACP_FAULTS,
    ACP_SNAPSHOT,
    ARGUMENTS,
    DSH_FAULTS,
    DSH_SNAPSHOT,
    acp_texts,
    dsh_texts,
)
from tests.dsh.stage import DshStage
from tests.run.stage import Stage

IN_BACKGROUND = {**ARGUMENTS, "run_in_background": True}
JOB = {"job_id": "job-1"}
NO_WATCHDOG = {"reaper": False}  # it would be a child, too


@pytest.mark.parametrize("fault", ACP_FAULTS)
async def test_a_failed_call_and_a_failed_job_say_exactly_this(
    fault: str, stage: Stage, clock: MockClock
) -> None:
    assert await acp_texts(fault, stage, clock) == json.loads(ACP_SNAPSHOT.read_text())[fault]


@pytest.mark.parametrize("fault", DSH_FAULTS)
async def test_a_failed_call_and_a_failed_job_of_a_dsh_runtime_say_exactly_this(
    fault: str, dsh_stage: DshStage
) -> None:
    assert await dsh_texts(fault, dsh_stage) == json.loads(DSH_SNAPSHOT.read_text())[fault]


SNAPSHOTS = [(ACP_SNAPSHOT, list(ACP_FAULTS)), (DSH_SNAPSHOT, list(DSH_FAULTS))]


@pytest.mark.parametrize(("snapshot", "faults"), SNAPSHOTS, ids=["acp", "dsh"])
def test_a_snapshot_has_the_texts_of_every_fault_and_no_other(snapshot: Path, faults: list[str]) -> None:
    assert list(json.loads(snapshot.read_text())) == faults


@pytest.mark.parametrize(("snapshot", "faults"), SNAPSHOTS, ids=["acp", "dsh"])
def test_no_text_of_a_snapshot_shows_what_an_agent_said_but_as_output(
    snapshot: Path, faults: list[str]
) -> None:
    for fault in faults:
        for text in filter(None, json.loads(snapshot.read_text())[fault].values()):
            told = text.split("\nPartial output before the run ended:\n")[0]
            assert "CANARY" not in told
            assert re.fullmatch(r"[ -~\n]*", told)


# -- moments of a real run, each told by a file that the agent writes

STUCK: dict[str, dict[str, Any]] = {
    "initialize": {"initialize": {"before_answer": [{"touch_file": "$HERE"}], "no_answer": True}},
    "new-session": {"session_new": {"before_answer": [{"touch_file": "$HERE"}], "no_answer": True}},
    "prompt": {"turns": [[{"text": "half"}, {"touch_file": "$HERE"}, {"wait_cancel": True}]]},
    "deaf prompt": {
        "on_cancel": "ignore",
        "turns": [[{"text": "half"}, {"touch_file": "$HERE"}, {"sleep": 60}]],
    },
    "end of input": {
        "turns": [[{"text": "half"}]],
        "on_eof": {"steps": [{"touch_file": "$HERE"}, {"wait_file": "$HERE.over"}]},
    },
}
#: by the time the tree is being ended, the answer is there
FINISHED = "end of input"


def stuck(where: str, stage: Stage) -> tuple[dict[str, Any], Path]:
    """A scenario that comes to a moment and stays there, and the file that is there from then on."""
    here = stage.folder / "here"
    return json.loads(json.dumps(STUCK[where]).replace("$HERE", str(here))), here


def go_on(here: Path) -> None:
    """Let an agent leave that takes its time at the end of its input."""
    here.with_suffix(".over").touch()


async def came(file: Path) -> None:
    while not await trio.Path(file).exists():  # noqa: ASYNC110  the file is written by another process
        await trio.sleep(0.005)


@pytest.mark.parametrize("where", STUCK)
async def test_a_call_cancelled_at_this_moment_leaves_nothing(where: str, stage: Stage) -> None:
    scenario, here = stuck(where, stage)
    async with stage.service(scenario, service=NO_WATCHDOG, eof_grace_seconds=20) as subagents:
        before = children()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(SubagentTool(subagents, "fake").call, ARGUMENTS, _parent(stage))
                await came(here)
                scope.cancel()
                go_on(here)
        assert scope.cancelled_caught
        assert children() == before
    assert stage.failures == []


@pytest.mark.parametrize("where", STUCK)
async def test_a_call_aborted_at_this_moment_leaves_nothing(where: str, stage: Stage) -> None:
    scenario, here = stuck(where, stage)
    abort = trio.Event()
    told: list[ToolResult] = []
    async with stage.service(scenario, service=NO_WATCHDOG, eof_grace_seconds=20) as subagents:
        before = children()

        async def call() -> None:
            tool = SubagentTool(subagents, "fake")
            told.append(await tool.call(ARGUMENTS, _parent(stage), abort=abort))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await came(here)
            abort.set()
            go_on(here)
        assert children() == before
    assert told[0].text == _text_when_cancelled(where)


@pytest.mark.parametrize("where", STUCK)
async def test_a_job_killed_at_this_moment_leaves_nothing(where: str, stage: Stage) -> None:
    scenario, here = stuck(where, stage)
    async with stage.service(scenario, service=NO_WATCHDOG, eof_grace_seconds=20) as subagents:
        before = children()
        async with open_job_table() as jobs:
            await SubagentTool(subagents, "fake", jobs=jobs).call(IN_BACKGROUND, _parent(stage))
            await came(here)
            jobs.kill("job-1")
            go_on(here)
            job = await jobs.wait("job-1")
            assert children() == before
            told = await JobOutputTool(jobs).call(JOB)
    assert job is not None
    assert job.status is (JobStatus.COMPLETED if where == FINISHED else JobStatus.KILLED)
    assert told.text == f"Status: {job.status}\n\n{_text_when_cancelled(where)}"


@pytest.mark.parametrize("where", STUCK)
async def test_a_table_left_at_this_moment_leaves_nothing(where: str, stage: Stage) -> None:
    scenario, here = stuck(where, stage)
    async with stage.service(scenario, service=NO_WATCHDOG, eof_grace_seconds=2) as subagents:
        before = children()
        async with open_job_table() as jobs:
            await SubagentTool(subagents, "fake", jobs=jobs).call(IN_BACKGROUND, _parent(stage))
            await came(here)
        assert children() == before
        assert jobs.jobs()[0].status is (JobStatus.COMPLETED if where == FINISHED else JobStatus.KILLED)


def _text_when_cancelled(where: str) -> str:
    if where == FINISHED:
        return "half"
    cancelled = "The subagent was cancelled."
    return f"{cancelled}\nPartial output before the run ended:\nhalf" if "prompt" in where else cancelled


def _parent(stage: Stage) -> Parent:
    return Parent(cwd=str(stage.folder))


# -- what goes on at the same time


async def test_the_text_so_far_of_a_job_is_what_its_agent_has_said(stage: Stage) -> None:
    scenario, here = stuck("prompt", stage)
    async with stage.service(scenario) as subagents, open_job_table() as jobs:
        await SubagentTool(subagents, "fake", jobs=jobs).call(IN_BACKGROUND, _parent(stage))
        await came(here)
        while "half" not in (await JobOutputTool(jobs).call(JOB)).text:  # noqa: ASYNC110  it is in the pipe
            await trio.sleep(0.005)
        told = await JobOutputTool(jobs).call(JOB)
        assert (told.text, told.is_error) == ("Status: running\n\nOutput so far:\nhalf", False)


async def test_sibling_calls_have_their_children_at_the_same_time(stage: Stage) -> None:
    # Each agent waits for the file that the other one writes.
    def meets(mine: str, other: str) -> dict[str, Any]:
        files = [str(stage.folder / name) for name in (mine, other)]
        return {"turns": [[{"touch_file": files[0]}, {"wait_file": files[1]}, {"text": mine}]]}

    told: list[ToolResult] = []
    async with stage.service() as subagents, trio.open_nursery() as nursery:
        for mine, other in (("a", "b"), ("b", "a")):
            subagents.register(stage.provider(meets(mine, other), name=mine))
            nursery.start_soon(_call, subagents, mine, stage, told)
    assert sorted(one.text for one in told) == ["a", "b"]


async def _call(subagents: SubagentService, provider: str, stage: Stage, told: list[ToolResult]) -> None:
    told.append(await SubagentTool(subagents, provider).call(ARGUMENTS, _parent(stage)))


async def test_what_is_said_after_the_answer_still_counts(stage: Stage) -> None:
    one, two = ({"text": text, "message_id": "m"} for text in ("one ", "two"))
    turn = [{"text": one}, {"stop": "end_turn"}, {"text": two}]
    async with stage.service({"turns": [turn]}) as subagents:
        told = await SubagentTool(subagents, "fake").call(ARGUMENTS, _parent(stage))
    assert told.text == "one two"
    assert told.result is not None
    assert told.result.teardown is not None
    assert told.result.teardown.clean


# -- a clean-up that fails

SURVIVORS = "Subagent failure (provider: ACP; stage: teardown; category: survivors)"
REFUSED = "Subagent failure (provider: ACP; stage: new-session; category: remote-error; rpc code: -32603)"


@dataclass(frozen=True)
class Unclean:
    """A run whose clean-up fails, and what is said of it."""

    name: str
    scenario: dict[str, Any]
    headline: str
    diagnostic: str
    partial: str
    detail: str


UNCLEAN = [
    Unclean(
        "the task was finished",
        {"turns": [[{"text": "half"}]]},
        "The subagent ended abnormally.",
        SURVIVORS,
        "half",
        f"completed\n{SURVIVORS}",
    ),
    Unclean(
        "the turn failed",
        {"turns": [[{"text": "half"}, {"stop": "max_turn_requests"}]]},
        "The subagent failed.",
        "Subagent failure (provider: ACP; stage: prompt; category: remote-limit; "
        f"stop reason: max_turn_requests)\n{SURVIVORS}",
        "half",
        "error; diagnostic: Subagent failure (provider: ACP; stage: prompt; category: remote-limit; "
        f"stop reason: max_turn_requests)\n{SURVIVORS}",
    ),
    Unclean(
        "the start failed",
        {"session_new": {"error": {"code": -32603, "message": "CANARY"}}},
        "The subagent failed.",
        f"{REFUSED}\n{SURVIVORS}",
        "",
        f"error; diagnostic: {REFUSED}\n{SURVIVORS}",
    ),
]
STAYS: dict[str, Any] = {"on_eof": {"ignore": True}, "lifetime_seconds": 60}
IMPATIENT: dict[str, Any] = {"eof_grace_seconds": 0.2, "term_grace_seconds": 0.2, "kill_grace_seconds": 0.3}


@pytest.mark.parametrize("row", UNCLEAN, ids=lambda row: row.name)
async def test_a_failed_clean_up_is_told_beside_what_became_of_the_task(
    row: Unclean, stage: Stage, nobody_is_killed: None
) -> None:
    text = f"{row.headline}\nDiagnostic: {row.diagnostic}"
    if row.partial:
        text += f"\nPartial output before the run ended:\n{row.partial}"
    async with stage.service({**STAYS, **row.scenario}, **IMPATIENT) as subagents:
        told = await SubagentTool(subagents, "fake").call(ARGUMENTS, _parent(stage))
        assert (told.text, told.is_error) == (text, True)
        async with open_job_table() as jobs:
            await SubagentTool(subagents, "fake", jobs=jobs).call(IN_BACKGROUND, _parent(stage))
            job = await jobs.wait("job-1")
    assert job is not None
    assert (job.status, job.detail) == (JobStatus.FAILED, row.detail)


@pytest.mark.parametrize("where", ["new-session", "prompt"])
async def test_a_killed_job_whose_clean_up_fails_is_a_failed_one(
    where: str, stage: Stage, nobody_is_killed: None
) -> None:
    scenario, here = stuck(where, stage)
    async with stage.service({**STAYS, **scenario}, **IMPATIENT) as subagents, open_job_table() as jobs:
        await SubagentTool(subagents, "fake", jobs=jobs).call(IN_BACKGROUND, _parent(stage))
        await came(here)
        told = await JobKillTool(jobs).call(JOB)
    assert told.text == f"The background job job-1 has ended, failed: aborted\n{SURVIVORS}"
