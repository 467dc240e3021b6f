"""What became of one delegated task, and the texts that say so to a parent's model.

Owns the headlines, how headline, diagnostic and partial output are kept apart, and when a job is completed,
failed or killed. Pure: tables and functions of an `Outcome`. How a task is carried out is `execution`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from acp_subagent.errors import (
    SubagentAbortedError,
    SubagentStartError,
    SubagentTeardownError,
    SubagentUsageError,
)
from acp_subagent.seam.diagnostic import bounded, join_lines
from acp_subagent.seam.result import SubagentResult, SubagentStopReason


class JobStatus(StrEnum):
    """How far a background job has come."""

    RUNNING = "running"  #: starting, at work, or being ended
    COMPLETED = "completed"  #: the subagent finished its task
    FAILED = "failed"  #: it did not, or its processes could not be ended; the job's detail says why
    KILLED = "killed"  #: it was cancelled, and nothing is left of it


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolResult:
    """The answer of a tool to the model's call.

    `text` and `is_error` are for the model. The rest is for the host: what was brought back, and the
    exceptions, those of the run before that of its disposal. Its `repr` shows no text.
    """

    text: str  #: what to show to the model
    is_error: bool = False  #: whether the call failed; the text then says why, by itself
    result: SubagentResult | None = None  #: the run's result, when it came so far
    errors: tuple[Exception, ...] = ()  #: what starting, running and disposing raised, in this order
    job_id: str | None = None  #: the background job that the call started or was about

    def __repr__(self) -> str:
        job = "" if self.job_id is None else f" {self.job_id}"
        return f"<ToolResult {'error' if self.is_error else 'ok'}{job}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one delegated task came to: its result or the exceptions, and always a stop reason."""

    stop_reason: SubagentStopReason | str
    diagnostic: str | None = None  #: of the start or the run; the disposal's is in `teardown`
    result: SubagentResult | None = None
    error: Exception | None = field(default=None, repr=False)  #: what was raised instead of a result
    teardown: SubagentTeardownError | None = None  #: the disposal failed, whatever became of the task

    @property
    def completed(self) -> bool:
        """Whether the task was finished and nothing is left of its subagent."""
        return self.stop_reason == SubagentStopReason.COMPLETED and self.teardown is None

    @property
    def errors(self) -> tuple[Exception, ...]:
        """Every exception that was raised, the disposal's last."""
        return tuple(error for error in (self.error, self.teardown) if error is not None)

    @property
    def teardown_line(self) -> str | None:
        """What the failed disposal says of itself."""
        return None if self.teardown is None else str(self.teardown)


def outcome_of(result: SubagentResult) -> Outcome:
    """The outcome of a run that came to its result and was disposed."""
    return Outcome(stop_reason=result.stop_reason, diagnostic=result.diagnostic, result=result)


def outcome_of_error(error: Exception) -> Outcome:
    """The outcome of a task that ended in an exception; a foreign one says nothing of itself."""
    error = error.with_traceback(None)  # it is kept, and must not keep the frames that it passed
    match error:
        case SubagentAbortedError():
            return Outcome(stop_reason=SubagentStopReason.ABORTED, error=error)
        case SubagentTeardownError(result=None):
            return Outcome(stop_reason=SubagentStopReason.ABORTED, teardown=error)
        case SubagentTeardownError(result=SubagentResult() as result):
            return Outcome(
                stop_reason=result.stop_reason, diagnostic=result.diagnostic, result=result, teardown=error
            )
        case SubagentStartError(failure=failure):
            return Outcome(
                stop_reason=SubagentStopReason.ERROR,
                diagnostic=failure.diagnostic,
                error=error,
                teardown=error.teardown,
            )
        case SubagentUsageError():
            return Outcome(stop_reason=SubagentStopReason.ERROR, diagnostic=bounded(str(error)), error=error)
    return Outcome(stop_reason=SubagentStopReason.ERROR, error=error)


# -- what the model is told

#: The first line of an error result, by stop reason. A run whose disposal alone failed has none of these.
HEADLINES: dict[str, str] = {
    SubagentStopReason.ABORTED: "The subagent was cancelled.",
    SubagentStopReason.ERROR: "The subagent failed.",
    SubagentStopReason.MAX_TOKENS: "The subagent reached its token limit before it finished.",
    SubagentStopReason.REFUSAL: "The subagent declined the task.",
}
OTHER_HEADLINE = "The subagent ended abnormally."
PARTIAL_OUTPUT = "Partial output before the run ended:"


def tool_result(outcome: Outcome) -> ToolResult:
    """The answer to the call that delegated the task.

    The final text when it was completed, and nothing else. Otherwise headline, diagnostic and partial output,
    each beginning a line of its own, so that partial output is never taken for an answer.
    """
    text = "" if outcome.result is None else outcome.result.text
    if not outcome.completed:
        text = _error_text(outcome, partial=text)
    return ToolResult(text=text, is_error=not outcome.completed, result=outcome.result, errors=outcome.errors)


def _error_text(outcome: Outcome, *, partial: str) -> str:
    lines = [HEADLINES.get(outcome.stop_reason, OTHER_HEADLINE)]
    diagnostic = join_lines(outcome.diagnostic, outcome.teardown_line)
    if diagnostic:
        lines.append(f"Diagnostic: {diagnostic}")
    if partial:
        lines += [PARTIAL_OUTPUT, partial]
    return "\n".join(lines)


# -- what a job is told to be


def job_status(outcome: Outcome) -> JobStatus:
    """What a finished job counts as.

    A cancellation that has something to tell (the agent's side ended the turn, the clean-up failed) is no
    plain kill.
    """
    if outcome.completed:
        return JobStatus.COMPLETED
    plain = outcome.diagnostic is None and outcome.teardown is None
    if outcome.stop_reason == SubagentStopReason.ABORTED and plain:
        return JobStatus.KILLED
    return JobStatus.FAILED


def job_detail(outcome: Outcome) -> str | None:
    """Why a job failed: closed words and diagnostics, never output. None for a job that did not fail."""
    if job_status(outcome) is not JobStatus.FAILED:
        return None
    first = str(outcome.stop_reason)
    if outcome.diagnostic is not None:
        first = f"{first}; diagnostic: {outcome.diagnostic}"
    return first if outcome.teardown_line is None else f"{first}\n{outcome.teardown_line}"
