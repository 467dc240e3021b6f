"""The cells of the matrix: the values of each factor, which of them go together, and the covering array.

Pure. What a cell does is `tests.matrix.play`'s.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from enum import StrEnum
from itertools import combinations, product


class Tree(StrEnum):
    """What the agent has started when the end comes."""

    ALONE = "alone"  #: nothing
    PLAIN = "plain"  #: a child that waits
    IGNORES_TERM = "ignores-term"  #: a child that ignores SIGTERM
    LAUNCHER_EXITS = "launcher-exits"  #: a child whose starter has exited
    LAUNCHER_STAYS = "launcher-stays"  #: a child below a starter that passes nothing on
    DOUBLE_FORK = "double-fork"  #: a daemon
    SETSID = "setsid"  #: a child in a session of its own
    SETSID_IGNORES_TERM = "setsid-ignores-term"  #: the same, and it ignores SIGTERM
    OWN_GROUP = "own-group"  #: a child in a process group of its own
    CLOSED = "closed"  #: a child that has closed every descriptor
    STOPPED = "stopped"  #: a child that has stopped itself
    HOLDS_STDOUT = "holds-stdout"  #: a child that keeps the agent's stdout open
    FORK_LOOP = "fork-loop"  #: a child that goes on forking
    RELAY = "relay"  #: a child that is replaced by its own child again and again
    SETSID_RELAY = "setsid-relay"  #: the same, and each link begins with a session of its own
    BEHIND_LAUNCHER = "behind-launcher"  #: the started process is a launcher of the agent
    LEFT_BY_LAUNCHER = "left-by-launcher"  #: the same, and it has exited
    CROWD = "crowd"  #: one of each kind


class Habit(StrEnum):
    """What the agent makes of being told to end."""

    OBEDIENT = "obedient"  #: exits when its stdin ends
    IGNORES_EOF = "ignores-eof"  #: goes on; ends on SIGTERM
    IGNORES_TERM = "ignores-term"  #: goes on, whatever it is told


class Moment(StrEnum):
    """When the end comes."""

    INITIALIZE = "initialize"  #: before the handshake is answered
    NEW_SESSION = "new-session"  #: before the session is open
    TURN = "turn"  #: in the middle of the answer
    PERMISSION = "permission"  #: while the host's handler thinks about a permission
    IDLE = "idle"  #: after the result


class Way(StrEnum):
    """How it ends."""

    DISPOSE = "dispose"  #: the run is disposed
    CANCEL = "cancel"  #: the run is cancelled, then disposed
    ABORT = "abort"  #: the request's abort event
    SCOPE = "scope"  #: the caller's scope is cancelled
    CLOSE = "close"  #: the block of the service is left
    EXIT = "exit"  #: the agent exits by itself
    SIGNAL = "signal"  #: the agent is killed
    HOST_KILLED = "host-killed"  #: the host is killed with SIGKILL


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One combination."""

    tree: Tree
    habit: Habit
    moment: Moment
    way: Way

    def __str__(self) -> str:
        return "/".join(astuple(self))


#: What needs a run to be called on; a start that is under way has none yet.
_NEED_A_RUN = {Way.DISPOSE, Way.CANCEL}
_STARTING = {Moment.INITIALIZE, Moment.NEW_SESSION}


def possible(cell: Cell) -> bool:
    """Whether the values go together."""
    if cell.tree is Tree.LEFT_BY_LAUNCHER:
        # The exit of the started process ends the conversation, so that there is just one moment and way.
        return (cell.moment, cell.way) == (Moment.INITIALIZE, Way.EXIT)
    return not (cell.way in _NEED_A_RUN and cell.moment in _STARTING)


def full_product() -> list[Cell]:
    """Every cell that is possible."""
    cells = [Cell(*values) for values in product(Tree, Habit, Moment, Way)]
    return [cell for cell in cells if possible(cell)]


def pairs(cell: Cell) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
    """The pairs of values that a cell covers."""
    named = [(item.name, getattr(cell, item.name)) for item in fields(cell)]
    return combinations(named, 2)


def covering_array(seed: int = 1) -> list[Cell]:
    """Cells that cover every possible pair of values at least once; greedy, the same for the same seed."""
    cells = full_product()
    random.Random(seed).shuffle(cells)
    missing = {pair for cell in cells for pair in pairs(cell)}
    chosen = []
    while missing:
        best = max(cells, key=lambda cell: sum(pair in missing for pair in pairs(cell)))
        chosen.append(best)
        missing -= set(pairs(best))
    return sorted(chosen)
