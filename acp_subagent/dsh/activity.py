"""Where the one activity of a run begins and ends, and how its last turn did.

Owns the rule: an activity runs from the receipt of its prompt to the next time that the whole agent is idle.
The receipt is the answer to the prompt, or its message in the agent's inbox, whichever came first; the answer
alone tells which message that is, so that what comes before it is kept in mind. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

#: Inbox messages that are kept in mind before the prompt is answered; the earliest are the likeliest.
MAX_EARLY_RECEIPTS = 1000


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended, as the runtime says; None for what is missing or no string."""

    kind: str | None = field(repr=False)
    cause: str | None = field(default=None, repr=False)  #: of an aborted turn: by whom or what


@dataclass(slots=True)
class _Interval:
    """What began with one receipt."""

    turn_end: TurnEnd | None = None  #: the latest
    over: bool = False

    def note_turn_end(self, end: TurnEnd) -> None:
        """A turn of the root session ended so; after the end of the activity it counts no more."""
        if not self.over:
            self.turn_end = end


class Activity:
    """The activity of one prompt. Only what the root session says is told to it."""

    def __init__(self) -> None:
        self._early: list[tuple[frozenset[str], _Interval]] = []
        self._ours: _Interval | None = None

    @property
    def over(self) -> bool:
        """Whether the agent became idle after the receipt."""
        return self._ours is not None and self._ours.over

    @property
    def turn_end(self) -> TurnEnd | None:
        """How the last turn of the activity ended; None when none has."""
        return None if self._ours is None else self._ours.turn_end

    def accepted(self, message_id: str) -> None:
        """The prompt was answered: this is its message."""
        found = (interval for ids, interval in self._early if message_id in ids)
        self._ours = next(found, _Interval())
        self._early.clear()

    def inserted(self, message_ids: Iterable[str]) -> None:
        """Messages came into the agent's inbox."""
        room = MAX_EARLY_RECEIPTS - sum(len(ids) for ids, _ in self._early)
        ids = frozenset(islice(message_ids, max(room, 0)))
        if self._ours is None and ids:
            self._early.append((ids, _Interval()))

    def turn_ended(self, end: TurnEnd) -> None:
        """A turn ended."""
        for interval in self._open():
            interval.note_turn_end(end)

    def idle(self) -> None:
        """The whole agent is idle."""
        for interval in self._open():
            interval.over = True

    def _open(self) -> list[_Interval]:
        """Every activity that may be ours."""
        return [interval for _, interval in self._early] if self._ours is None else [self._ours]
