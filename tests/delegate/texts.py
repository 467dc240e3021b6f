"""What the tool and a job say of a failed run, for every fault that the failure tests provoke.

Run as a program it writes the snapshot that the tests compare with: `python -m tests.delegate.texts`. Read
the difference before committing it.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import trio

from acp_subagent import JobOutputTool, JobStatus, Parent, SubagentTool, ToolResult, open_job_table
from tests.run.rows import START_ROWS, TURN_ROWS, Row
from tests.run.stage import Stage

SNAPSHOT = Path(__file__).with_name("acp_texts.json")
ROWS = {
    f"{kind}: {row.name}": row for kind, rows in (("start", START_ROWS), ("turn", TURN_ROWS)) for row in rows
}

ARGUMENTS = {"description": "a task", "prompt": "do it"}


async def texts_of(row: Row, stage: Stage) -> dict[str, Any]:
    """Delegate to an agent with this fault, waiting for one and with one in the background, at once."""
    parent = Parent(cwd=str(stage.folder))
    told: list[ToolResult] = []
    async with stage.service() as subagents, open_job_table() as jobs:
        for name in ("foreground", "background"):
            subagents.register(stage.provider(row.scenario, faulty=True, name=name, **row.settings))
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


async def _write() -> None:
    written = {}
    for name, row in ROWS.items():
        with tempfile.TemporaryDirectory() as folder:
            written[name] = await texts_of(row, Stage(Path(folder)))
    await trio.Path(SNAPSHOT).write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    trio.run(_write)
