"""Background jobs: tasks that go on while their parent does something else.

Owns the table of jobs, the nursery they live in, and their lifecycle: `start` returns an id at once, every
job ends with exactly one notice, the last finished ones are kept with their text, and when the block of
`open_job_table()` is left nothing goes on. What a finished job counts as is `outcome`'s.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import trio

from acp_subagent.delegate.execution import carry_out, text_so_far
from acp_subagent.delegate.outcome import (
    JobStatus,
    Outcome,
    ToolResult,
    job_detail,
    job_status,
    outcome_of_error,
    tool_result,
)
from acp_subagent.errors import ConfigurationError, ServiceClosedError
from acp_subagent.seam.leaving import foremost
from acp_subagent.seam.request import SubagentRequest
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.seam.run import SubagentRun
from acp_subagent.seam.service import SubagentService

_log = logging.getLogger("acp_subagent.delegate")

#: finished jobs that a table keeps; the one that finished first goes
MAX_FINISHED_JOBS = 100

#: How long, when a table closes, runs may take to end by their abort (deadlines and the ladder included)
#: before their waits are cancelled. Only a provider that does not heed an abort needs it.
HEED_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A background job as it was at one moment."""

    id: str  #: unique in its table
    provider: str  #: name of the provider that it was given to
    label: str | None = field(repr=False)  #: the request's label
    status: JobStatus
    detail: str | None = None  #: why it failed: stop reason and diagnostics, safe to show; else None


@dataclass(frozen=True, slots=True)
class JobNotice:
    """A job has ended; comes exactly once for each."""

    job: Job
    #: The answer as the tool would have given it, with what the host may want to look into. It goes with the
    #: notice: the table keeps of a finished job its text alone.
    result: ToolResult

    @property
    def text(self) -> str:
        """The notice in one sentence (or a few lines, for a failure), to be shown to a model."""
        label = f" ({self.job.label})" if self.job.label else ""
        verb = "was killed" if self.job.status is JobStatus.KILLED else str(self.job.status)
        reason = "." if self.job.detail is None else f": {self.job.detail}"
        return f"The background job {self.job.id}{label} {verb}{reason}"


@dataclass(frozen=True, slots=True)
class JobOutput:
    """What a job has brought, and the state it was in when that was read."""

    job: Job
    #: while it runs, all the text so far; afterwards the text that the tool would have returned
    text: str = field(repr=False)


@dataclass(slots=True, eq=False)
class _Entry:
    """A job in the table, and what is needed to end it while it runs."""

    job: Job
    abort: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=lambda: trio.CancelScope(shield=True))
    run: SubagentRun | None = None  # once it is ready, until it has ended
    text: str = field(default="", repr=False)  # once it has ended

    def attach(self, run: SubagentRun) -> None:
        """The run is ready: what it says so far can be read from now on."""
        self.run = run


class JobTable:
    """The jobs of one parent. Made by `open_job_table()`."""

    def __init__(self, nursery: trio.Nursery, *, max_running_jobs: int) -> None:
        self._nursery = nursery
        self._max_running = max_running_jobs
        self._numbers = count(1)
        self._running: dict[str, _Entry] = {}
        self._finished: deque[_Entry] = deque(maxlen=MAX_FINISHED_JOBS)
        self._observers: list[Callable[[JobNotice], None]] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"<JobTable {len(self._running)} running, {len(self._finished)} finished>"

    @property
    def full(self) -> bool:
        """Whether as many jobs run as the table allows."""
        return len(self._running) >= self._max_running

    def start(self, service: SubagentService, provider: str, request: SubagentRequest) -> str:
        """Begin a job and return its id at once; its subagent has yet to be started.

        A failed start is a failed job. Raises `ServiceClosedError` when the table is closed, and
        `ConfigurationError` when it is `full` or the request has an `abort` of its own: a job is ended by
        `kill`.
        """
        if self._closed:
            raise ServiceClosedError("The block of open_job_table() has been left.")
        if self.full:
            raise ConfigurationError("As many background jobs are running as the table allows.")
        if request.abort is not None:
            raise ConfigurationError("The request of a background job takes no abort; use kill.")
        job = Job(
            id=f"job-{next(self._numbers)}",
            provider=provider,
            label=request.label,
            status=JobStatus.RUNNING,
        )
        entry = _Entry(job)
        self._running[job.id] = entry
        self._nursery.start_soon(self._carry_out, entry, service, replace(request, abort=entry.abort))
        return job.id

    def job(self, id: str) -> Job | None:
        """The job as it is now; None when there is none of this id (any more)."""
        entry = self._find(id)
        return None if entry is None else entry.job

    def jobs(self) -> tuple[Job, ...]:
        """Every job that is known: the finished ones in the order in which they ended, then the running."""
        return tuple(entry.job for entry in (*self._finished, *self._running.values()))

    async def output(self, id: str) -> JobOutput | None:
        """What a job has brought so far, or in the end; None when there is none of this id (any more)."""
        entry = self._find(id)
        await trio.lowlevel.checkpoint()
        if entry is None:
            return None
        text = "" if entry.run is None else await text_so_far(entry.run)
        # It may have ended in the meantime: state and text must be of one moment.
        return JobOutput(entry.job, entry.text if entry.ended.is_set() else text)

    def kill(self, id: str) -> bool:
        """End a job, also one that is still starting; `wait` for it to see it gone.

        Harmless when it has ended. False when there is none of this id (any more).
        """
        entry = self._find(id)
        if entry is not None:
            entry.abort.set()
        return entry is not None

    async def wait(self, id: str) -> Job | None:
        """Wait until a job has ended, its subagent with it; None when there is none of this id (any more)."""
        entry = self._find(id)
        if entry is None:
            await trio.lowlevel.checkpoint()
            return None
        await entry.ended.wait()
        return entry.job

    def observe(self, observer: Callable[[JobNotice], None]) -> Callable[[], None]:
        """Call `observer`, a plain function that must not block, with the notice of each job that ends.

        What it raises is contained. Returns a function that ends the observation.
        """
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop

    # -- the life of a job

    # Unprotected, an interrupt at the keyboard could strike here and come out as a group of exceptions.
    @trio.lowlevel.enable_ki_protection
    async def _carry_out(self, entry: _Entry, service: SubagentService, request: SubagentRequest) -> None:
        """Run one job to its end; nothing that happens in it reaches another."""
        outcome = Outcome(stop_reason=SubagentStopReason.ABORTED)
        try:
            # Shielded: a job ends by its abort, so that what it had said and how its clean-up went is known.
            with entry.scope:
                outcome = await carry_out(service, entry.job.provider, request, on_ready=entry.attach)
            if entry.scope.cancelled_caught and entry.run is not None:
                with trio.CancelScope(shield=True):
                    await entry.run.dispose()  # has been; says once more whether it failed
        except Exception as exc:  # noqa: BLE001  becomes the outcome of the job
            _log.error("the job %s ended in %s", entry.job.id, type(exc).__name__)
            outcome = outcome_of_error(exc)
        self._finish(entry, outcome)

    def _finish(self, entry: _Entry, outcome: Outcome) -> None:
        result = replace(tool_result(outcome), job_id=entry.job.id)
        entry.job = replace(entry.job, status=job_status(outcome), detail=job_detail(outcome))
        entry.text, entry.run = result.text, None
        del self._running[entry.job.id]
        self._finished.append(entry)
        entry.ended.set()
        _log.info("the job %s ended: %s", entry.job.id, entry.job.status)
        for observer in list(self._observers):
            try:
                observer(JobNotice(entry.job, result))
            except Exception as exc:  # noqa: BLE001  a host's callback must not harm a job
                _log.warning("an observer of jobs raised %s", type(exc).__name__)

    async def _close(self) -> None:
        """End what runs; returns when it has ended, or will not without being cancelled."""
        self._closed = True
        with trio.CancelScope(shield=True):
            with trio.move_on_after(HEED_SECONDS):
                for entry in list(self._running.values()):
                    entry.abort.set()
                for entry in list(self._running.values()):
                    await entry.ended.wait()
            for entry in self._running.values():
                entry.scope.cancel()

    def _find(self, id: str) -> _Entry | None:
        if id in self._running:
            return self._running[id]
        return next((entry for entry in self._finished if entry.job.id == id), None)


@asynccontextmanager
async def open_job_table(*, max_running_jobs: int = 32) -> AsyncIterator[JobTable]:
    """Open a table of background jobs; at the end of the block the jobs that still run are killed.

    Open it inside the block of `open_subagents()`. `max_running_jobs` bounds how many go on at a time; a
    model's call beyond that is refused. The body's exception comes out as it is. Raises
    `ConfigurationError` for an impossible bound.
    """
    if isinstance(max_running_jobs, bool) or not isinstance(max_running_jobs, int) or max_running_jobs < 1:
        raise ConfigurationError("max_running_jobs must be an integer of at least 1.")
    body_error: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            table = JobTable(nursery, max_running_jobs=max_running_jobs)
            try:
                yield table
            except BaseException as exc:  # noqa: BLE001  raised again below, outside the nursery
                body_error = exc
            await table._close()
    except BaseExceptionGroup as group:  # an interrupt, or a callback that leaves
        body_error = foremost(body_error, group)
    if body_error is not None:
        try:
            raise body_error
        finally:
            del body_error  # no cycle of exception and frame
    await trio.lowlevel.checkpoint_if_cancelled()
