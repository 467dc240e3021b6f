"""The tools that let a model look after the background jobs it has started.

Owns what the model is told of a job. The jobs are `jobs`'.
"""

from __future__ import annotations

import trio

from acp_subagent.delegate.arguments import Refusal, read_arguments
from acp_subagent.delegate.definition import (
    JOB_KILL,
    JOB_OUTPUT,
    ToolDefinition,
    job_kill_definition,
    job_output_definition,
    job_schema,
)
from acp_subagent.delegate.jobs import JobOutput, JobTable
from acp_subagent.delegate.outcome import JobStatus, ToolResult
from acp_subagent.seam.request import Parent

NO_SUCH_JOB = "There is no background job of this id, or it ended long ago."
NOTHING_YET = "There is no output yet."
OUTPUT_SO_FAR = "Output so far:"

_UNSUCCESSFUL = {JobStatus.FAILED, JobStatus.KILLED}


class JobOutputTool:
    """`job_output`: reads a background job."""

    name = JOB_OUTPUT
    available = True

    def __init__(self, jobs: JobTable) -> None:
        self._jobs = jobs

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told about it."""
        return job_output_definition()

    async def call(
        self, arguments: object, parent: Parent | None = None, *, abort: trio.Event | None = None
    ) -> ToolResult:
        """Status and text of the job, at once. An error result for a job that did not complete, as its own.

        `parent` and `abort` are there so that every tool can be called alike.
        """
        id = _job_id(arguments)
        output = None if isinstance(id, Refusal) else await self._jobs.output(id)
        if isinstance(id, Refusal) or output is None:
            await trio.lowlevel.checkpoint()
            return _refused(id)
        return ToolResult(
            text=output_text(output), is_error=output.job.status in _UNSUCCESSFUL, job_id=output.job.id
        )


class JobKillTool:
    """`job_kill`: ends a background job."""

    name = JOB_KILL
    available = True

    def __init__(self, jobs: JobTable) -> None:
        self._jobs = jobs

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told about it."""
        return job_kill_definition()

    async def call(
        self, arguments: object, parent: Parent | None = None, *, abort: trio.Event | None = None
    ) -> ToolResult:
        """End the job, wait until its subagent is gone (the job's own limits bound that), say how it ended.

        A cancelled wait leaves the job on its way to its end. `parent` and `abort` are there so that every
        tool can be called alike.
        """
        id = _job_id(arguments)
        if isinstance(id, Refusal) or not self._jobs.kill(id):
            await trio.lowlevel.checkpoint()
            return _refused(id)
        job = await self._jobs.wait(id)
        assert job is not None
        detail = "." if job.detail is None else f": {job.detail}"
        text = f"The background job {job.id} has ended, {job.status}{detail}"
        return ToolResult(text=text, is_error=job.status is JobStatus.FAILED, job_id=job.id)


def output_text(output: JobOutput) -> str:
    """What the model reads of a job: its status on the first line, then the text."""
    status = f"Status: {output.job.status}"
    if output.job.status is not JobStatus.RUNNING:
        return f"{status}\n\n{output.text}"
    return f"{status}\n\n{OUTPUT_SO_FAR}\n{output.text}" if output.text else f"{status}\n\n{NOTHING_YET}"


def _job_id(arguments: object) -> str | Refusal:
    given = read_arguments(arguments, job_schema())
    return given if isinstance(given, Refusal) else str(given["job_id"])


def _refused(id: str | Refusal) -> ToolResult:
    sentence = id.sentence if isinstance(id, Refusal) else NO_SUCH_JOB
    return ToolResult(text=sentence, is_error=True)
