"""The exit code of the command line: one number for how the run ended. Pure.

Owns the table. A script that wants more than the number takes `--format json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import get_args

from acp_subagent.acp.vocabulary import Category
from acp_subagent.cli.outcome import Outcome, as_result
from acp_subagent.errors import SubagentUsageError
from acp_subagent.seam.result import SubagentResult, SubagentStopReason


class ExitCode(IntEnum):
    """Every exit code of the command line."""

    COMPLETED = 0  #: the agent says that it finished
    FAILED = 1  #: the run failed in a way that has no number of its own
    USAGE = 2  #: the command line, the working directory or the agent's command cannot be used
    DEADLINE = 3  #: one of our deadlines passed
    SESSION_LOST = 4  #: the session asked for cannot be had back
    REFUSED = 5  #: the agent declined the task
    LOGIN_NEEDED = 6  #: the agent wants a login first
    LIMIT = 7  #: the agent's limit of tokens or of model calls was reached
    SURVIVORS = 8  #: processes of the agent are still alive; wins over all others
    INTERRUPTED = 130  #: SIGINT, SIGTERM or SIGHUP ended the run


#: for a run that failed, by the category of its failure; every other category is `FAILED`
BY_CATEGORY: Mapping[str, ExitCode] = MappingProxyType(
    {
        Category.CONFIGURATION: ExitCode.USAGE,
        Category.PROCESS_START: ExitCode.USAGE,
        Category.TIMEOUT: ExitCode.DEADLINE,
        Category.SESSION_LOST: ExitCode.SESSION_LOST,
        Category.AUTH_REQUIRED: ExitCode.LOGIN_NEEDED,
        Category.REMOTE_LIMIT: ExitCode.LIMIT,
    }
)

#: for a run that ended without a failure; a stop reason that is not known is `FAILED`
BY_STOP_REASON: Mapping[str, ExitCode] = MappingProxyType(
    {
        SubagentStopReason.COMPLETED: ExitCode.COMPLETED,
        SubagentStopReason.REFUSAL: ExitCode.REFUSED,
        SubagentStopReason.MAX_TOKENS: ExitCode.LIMIT,
    }
)


def exit_code(outcome: Outcome | Exception, *, interrupted: bool = False) -> ExitCode:
    """The exit code for what a run returned or raised.

    `interrupted` says that a signal asked us to end the run. It matters only where the run was aborted: one
    that had ended before the signal came keeps its own code.
    """
    if isinstance(outcome, SubagentUsageError):
        return ExitCode.USAGE
    if not isinstance(outcome, get_args(Outcome)):
        return ExitCode.FAILED
    result = as_result(outcome)
    if _has_survivors(result):
        return ExitCode.SURVIVORS
    if result.stop_reason == SubagentStopReason.ABORTED:
        return ExitCode.INTERRUPTED if interrupted else ExitCode.FAILED
    if result.stop_reason == SubagentStopReason.ERROR:
        category = "" if result.failure is None else result.failure.category
        return BY_CATEGORY.get(category, ExitCode.FAILED)
    code = BY_STOP_REASON.get(result.stop_reason, ExitCode.FAILED)
    if code is ExitCode.COMPLETED and result.failure is not None:
        return ExitCode.FAILED  # the answer is whole, but the end of the agent is in doubt
    return code


def _has_survivors(result: SubagentResult) -> bool:
    if result.teardown is not None and result.teardown.survivors:
        return True
    return result.failure is not None and result.failure.category == Category.SURVIVORS
