"""The deadlines of one turn, as arithmetic on times that are given to it. Pure: it never looks at a clock.

The turn deadline runs from the prompt, whatever happens. The idle deadline runs from the last frame of the
agent; while a tool call is in progress the tool limit takes its place; it stands still while it is paused (a
permission waits for the host, or the reader waits for a subscriber).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from acp_subagent.supervised.ending import DeadlineName


class TurnLimits(NamedTuple):
    """Limits of one turn in seconds; None for no limit."""

    turn_seconds: float | None
    idle_seconds: float | None
    tool_idle_seconds: float | None


class TurnClock:
    """When the next deadline of a turn passes."""

    def __init__(self, limits: TurnLimits, *, now: float) -> None:
        self._limits = limits
        self._turn_ends = inf if limits.turn_seconds is None else now + limits.turn_seconds
        self._quiet_since = now  # moved on by pauses
        self._pauses = 0
        self._paused_at = now

    def heard(self, when: float) -> None:
        """The agent sent a frame at `when`."""
        self._quiet_since = max(self._quiet_since, when)

    def pause(self, now: float) -> None:
        """Let the idle deadline stand still; pauses nest."""
        if self._pauses == 0:
            self._paused_at = now
        self._pauses += 1

    def unpause(self, now: float) -> None:
        """End one pause; with the last one the idle deadline goes on where it stood."""
        self._pauses -= 1
        if self._pauses == 0:
            self._quiet_since += now - max(self._paused_at, self._quiet_since)

    def next_deadline(self, *, tool_in_progress: bool) -> tuple[float, DeadlineName]:
        """When the next deadline passes if nothing more happens (`inf`: never), and which one it is."""
        idle_ends, name = inf, DeadlineName.IDLE
        seconds = self._limits.tool_idle_seconds if tool_in_progress else self._limits.idle_seconds
        if seconds is not None and self._pauses == 0:
            idle_ends = self._quiet_since + seconds
            name = DeadlineName.TOOL_IDLE if tool_in_progress else DeadlineName.IDLE
        if self._turn_ends <= idle_ends:
            return self._turn_ends, DeadlineName.TURN
        return idle_ends, name
