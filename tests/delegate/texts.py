"""What the tool and a job say of a failed run, for every fault that the failure tests of a provider provoke.

Run as a program it writes the snapshots that the tests compare with: `python -m tests.delegate.texts`. Read
the difference before committing it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio
from trio.testing import MockClock

from acp_subagent import (
    JobOutputTool,
    JobStatus,
    Parent,
    SubagentProvider,
    SubagentTool,
    ToolResult,
    open_job_table,
    open_subagents,
)
from tests.dsh import rows as dsh_rows
from tests.dsh.stage import DshStage
from tests.run.rows import START_ROWS
from tests.run.stage import BOUND_SECONDS, Stage
from tests.run.turn_rows import TURN_ROWS
from tests.run.waiting import passing


class Named(Protocol):
    """A row of the failure tests."""

    @property
    def name(self) -> str: ...


_Row = TypeVar("_Row", bound=Named)


def faults(start: Iterable[_Row], turn: Iterable[_Row]) -> Mapping[str, _Row]:
    """The rows of a provider by a name that is their own."""
    return {f"{kind}: {row.name}": row for kind, rows in (("start", start), ("turn", turn)) for row in rows}


ACP_SNAPSHOT = Path(__file__).with_name("acp_texts.json")
ACP_FAULTS = faults(START_ROWS, TURN_ROWS)
DSH_SNAPSHOT = Path(__file__).with_name("dsh_texts.json")
DSH_FAULTS = faults(dsh_rows.START_ROWS, dsh_rows.TURN_ROWS)

NAMES = ("foreground", "background")
ARGUMENTS = {"description": "a task", "prompt": "do it"}


async def acp_texts(fault: str, stage: Stage, clock: MockClock) -> dict[str, Any]:
    """The texts of an ACP agent with this fault; `clock` is the one that the loop runs by."""
    row = ACP_FAULTS[fault]
    providers = [stage.provider(row.scenario, faulty=True, name=name, **row.settings) for name in NAMES]
    async with passing(clock, row, *(log for log, _ in stage.logs)):
        return await _texts(providers, stage.folder)


async def dsh_texts(fault: str, stage: DshStage) -> dict[str, Any]:
    """The texts of a DSH runtime with this fault."""
    row = DSH_FAULTS[fault]
    return await _texts(
        [stage.provider(row.script, name=name, **row.settings) for name in NAMES], stage.folder
    )


async def _texts(providers: Iterable[SubagentProvider], folder: Path) -> dict[str, Any]:
    """Delegate to an agent, waiting for one and with one in the background, at once."""
    parent = Parent(cwd=str(folder))
    told: list[ToolResult] = []
    with trio.fail_after(BOUND_SECONDS):
        async with open_subagents() as subagents, open_job_table() as jobs:
            for provider in providers:
                subagents.register(provider)
            background = SubagentTool(subagents, "background", jobs=jobs)
            await background.call({**ARGUMENTS, "run_in_background": True}, parent)
            told.append(await SubagentTool(subagents, "foreground").call(ARGUMENTS, parent))
            job = await jobs.wait("job-1")
            told.append(await JobOutputTool(jobs).call({"job_id": "job-1"}))
    assert job is not None
    assert [one.is_error for one in told] == [job.status is not JobStatus.COMPLETED] * 2
    return {
        "foreground": _shortened(told[0].text),
        "job": _shortened(told[1].text),
        "detail": job.detail,
    }


def _shortened(text: str) -> str:
    """How often an agent said `x` until its deadline came is a matter of time."""
    return re.sub("x{2,}", "x...", text)


async def _write(clock: MockClock) -> None:
    acp, dsh = {}, {}
    for fault in ACP_FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            acp[fault] = await acp_texts(fault, Stage(Path(folder)), clock)
    for fault in DSH_FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            dsh[fault] = await dsh_texts(fault, DshStage(Path(folder)))
    await trio.Path(ACP_SNAPSHOT).write_text(json.dumps(acp, indent=1) + "\n")
    await trio.Path(DSH_SNAPSHOT).write_text(json.dumps(dsh, indent=1) + "\n")


if __name__ == "__main__":
    real_time = MockClock(rate=1.0)
    trio.run(_write, real_time, clock=real_time)
