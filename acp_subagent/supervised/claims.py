"""One turn per session at a time, whichever child it runs in.

A session that is continued from a reference can be open in two children of one provider. What agents make
of two prompts at once ranges from answering both to answering neither, so the second one is refused. A new
session is never refused: its id is the agent's, and two agents may well begin to count at the same number.
"""

from __future__ import annotations

from collections import Counter

from acp_subagent.errors import TurnInProgressError
from acp_subagent.seam.request import SessionRef


class SessionClaims:
    """The sessions of one provider that have a turn under way, or are being opened for one."""

    def __init__(self) -> None:
        self._turns: Counter[SessionRef] = Counter()

    def claim(self, session: SessionRef | None, *, continued: bool) -> None:
        """Note a turn; of a continued session raises `TurnInProgressError` when another one is under way."""
        if session is None:
            return
        if continued and self._turns[session]:
            raise TurnInProgressError("A turn is running in this session; await its result first.")
        self._turns[session] += 1

    def release(self, session: SessionRef | None) -> None:
        """The turn has settled, or will never begin."""
        if session is not None:
            self._turns[session] -= 1
            self._turns += Counter()  # forgets what nobody holds
