"""One look at all processes, shared by every tree of a service, and what can be told from the sessions in it.

Owns the knowledge of which sessions are older than which child. A process leaves its session only by making a
new one, so whatever a child started is either in a session of its tree or in one that did not exist when
the child was spawned. Reading a session number is ten times cheaper than reading a process; the
few in new sessions are then read in full. Standard library only, and no waiting in here.

Who belongs to a tree is decided in `tree`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from acp_subagent.process.procfs import Identity, ProcessFacts, ProcessTable

#: how often an empty environment is looked at again before it is believed
_EMPTY_DOUBTED = 3
#: how many processes with an empty environment are remembered
_EMPTY_REMEMBERED = 4096


class Snapshot:
    """One look at the process table: the sessions at once, the rest when somebody asks, each thing once."""

    def __init__(
        self, table: ProcessTable, sessions: dict[int, int], owners: Mapping[int, object] | None = None
    ) -> None:
        self._table = table
        #: who owned which session when the look was taken: by the time it is used, a tree may be over
        self.owners = owners or {}
        self._facts: dict[int, ProcessFacts | None] = {}
        self._cookies: dict[int, bytes | None] = {}
        #: the pids in each session
        self.members: dict[int, list[int]] = {}
        for pid, session in sessions.items():
            self.members.setdefault(session, []).append(pid)

    def facts(self, pid: int) -> ProcessFacts | None:
        """What is known of a process, as it was when this snapshot was first asked for it."""
        if pid not in self._facts:
            self._facts[pid] = self._table.facts(pid)
        return self._facts[pid]

    def cookie(self, facts: ProcessFacts) -> bytes | None:
        """The launch cookie of a process; None when its environment is empty."""
        if facts.pid not in self._cookies:
            self._cookies[facts.pid] = self._table.cookie(facts)
        return self._cookies[facts.pid]


class Census:
    """Counts the looks at the process table, and remembers at which of them each session first appeared."""

    def __init__(self, table: ProcessTable) -> None:
        self.table = table
        #: how many looks there have been; a session first seen at look 7 is older than a child spawned after
        #: it
        self.looks = 0
        self._looked_at = float("-inf")
        self._first_seen: dict[int, int] = {}
        self._owners: dict[int, object] = {}
        self._empty: dict[Identity, int] = {}

    def look(self) -> Snapshot:
        """Look at the process table now. Raises `OSError` when descriptors have run out."""
        snapshot = Snapshot(self.table, self.table.sessions(), self._owners.copy())
        self.looks += 1
        # Sessions that have gone are forgotten, so that a number used again counts as new.
        first_seen = self._first_seen
        self._first_seen = {session: first_seen.get(session, self.looks) for session in snapshot.members}
        self._looked_at = time.monotonic()
        return snapshot

    def look_at_newer(self, number: int) -> Snapshot | None:
        """Look only at those that got their number after that one; None when it needs a look at all."""
        sessions = self.table.newer(number)
        return None if sessions is None else Snapshot(self.table, sessions)

    def look_if_older_than(self, age_seconds: float) -> None:
        """Keep the list of sessions fresh: look again unless somebody has just done so."""
        if time.monotonic() - self._looked_at > age_seconds:
            self.look()

    def claim(self, session: int, owner: object) -> None:
        """Note that a session belongs to a tree; nobody else then looks into it."""
        self._owners[session] = owner

    def disclaim(self, session: int, owner: object) -> None:
        """Forget a session of a tree."""
        if self._owners.get(session) is owner:
            del self._owners[session]

    def unclaimed(self, snapshot: Snapshot, owner: object, *, since_look: int) -> list[int]:
        """The sessions that appeared after that look and belong to no tree yet.

        One that belonged to another than `owner` when the snapshot was taken is what is left of that one.
        """
        first_seen, owners, then = self._first_seen, self._owners, snapshot.owners
        never = self.looks + 1
        return [
            session
            for session in snapshot.members
            if first_seen.get(session, never) > since_look
            and session not in owners
            and then.get(session, owner) is owner
        ]

    def doubts(self, process: Identity) -> bool:
        """True when a process without an environment may only be in the middle of an `exec`, or of its end.

        Answered so a few times for each process; one that stays empty really has none.
        """
        times = self._empty.get(process, 0) + 1
        if len(self._empty) > _EMPTY_REMEMBERED:
            self._empty.clear()
        self._empty[process] = times
        return times <= _EMPTY_DOUBTED
