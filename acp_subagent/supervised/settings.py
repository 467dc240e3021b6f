"""The limits that one child and its turns are supervised with. Plain records; a provider fills them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from acp_subagent.supervised.clock import TurnLimits
from acp_subagent.wire.connection import WireLimits


class TurnSettings(NamedTuple):
    """The limits that hold for a turn, in seconds and events."""

    limits: TurnLimits
    cancel_grace_seconds: float
    exit_observation_seconds: float
    event_buffer_events: int
    subscriber_stall_seconds: float


@dataclass(slots=True, kw_only=True)
class ChainSettings:
    """The limits of one child that hold for all its runs."""

    turn: TurnSettings
    wire: WireLimits
    startup_ends_at: float  #: on trio's clock; `inf` for no limit
    settle_grace_seconds: float
    #: absolute path of the log of every frame; None for no log
    wire_log: str | None = field(default=None, repr=False)
