"""The lifecycle of runs as a host observes it: a pair of events for each run that was ready.

Owns the event types and what is logged of a run that has settled: words of ours and numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from acp_subagent.seam.content import ContentBlock
from acp_subagent.seam.result import SubagentResult, SubagentStopReason

_log = logging.getLogger("acp_subagent.seam")


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run is about to be returned to its caller."""

    run_id: str  #: the service's id of the run
    provider: str  #: name of the provider
    id: str  #: the run's own id
    local: bool  #: whether the agent lives in this process (no child process)


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has settled; comes exactly once for each `RunStarted`."""

    run_id: str
    provider: str
    id: str
    local: bool
    stop_reason: SubagentStopReason | str
    output: tuple[ContentBlock, ...] = field(default=(), repr=False)  #: empty when there was none


LifecycleEvent = RunStarted | RunEnded
Observer = Callable[[LifecycleEvent], None]


def log_settled(id: str, result: SubagentResult) -> None:
    """What a maintainer of the host may want to know: words of ours and numbers, nothing from the agent."""
    _log.info("run %s settled: %s", id, result.stop_reason)
    if _log.isEnabledFor(logging.DEBUG):
        durations = [(item.name, getattr(result.timings, item.name)) for item in fields(result.timings)]
        shown = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in durations if seconds is not None)
        _log.debug("run %s took: %s", id, shown)
        if result.counters.noise_lines:
            _log.debug("run %s: %d lines on stdout were no messages", id, result.counters.noise_lines)
