"""Finding and signalling every descendant of a child, however it hides.

Owns the answer to "who belongs to this tree": whoever was seen to belong before, whoever is in one of its
sessions, whoever carries its launch cookie, and whoever has a parent in it. Processes are remembered by
number and start time, so a number that was given to a stranger is never signalled. Owns `kill`, the only
place in this package that signals a tree.

When to signal what is decided in `teardown`, and by the watchdog in `reaper`. No waiting in here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from acp_subagent.process.census import Census, Snapshot
from acp_subagent.process.procfs import (
    Identity,
    ProcessFacts,
    ProcessTable,
    signal_group,
    signal_process,
)

#: how old the list of sessions may be at a birth: those that appeared since are only looked at more closely
_SESSIONS_AGE_SECONDS = 1.0
#: how long after the spawn a higher number means a younger process: too short for numbers to come round again
_NUMBERS_KNOWN_SECONDS = 0.25
#: how far the leader's number may be from the one before the spawn, if numbers are given in order at all
_NUMBERS_APART = 256


def kill(
    table: ProcessTable, signal_number: int, processes: Iterable[Identity], groups: Iterable[int] = ()
) -> None:
    """Send one signal to whole groups, then to single processes: every signal to a tree goes through here."""
    for group in groups:
        signal_group(group, signal_number)
    for process in processes:
        signal_process(table, process, signal_number)


class Birth(NamedTuple):
    """The moment right before the first process of a tree was started: whoever is older does not belong."""

    since: int  #: in the unit in which the process table tells when a process started
    look: int = 0  #: the last look of the census until then
    newest: int | None = None  #: the number that was given to a process last; None when it is not known
    seconds: float = 0.0  #: when that was, by the monotonic clock

    @staticmethod
    def now(census: Census) -> Birth:
        """Right now. Without a descriptor to look with, what is not known is left out."""
        newest = None
        with suppress(OSError):
            census.look_if_older_than(_SESSIONS_AGE_SECONDS)
            newest = census.table.newest()
        return Birth(census.table.now(), census.looks, newest, time.monotonic())


class Tree:
    """The processes that descend from one child, or, for the watchdog, from all children of one service.

    `element` is the part of the launch cookie that marks them: `/<service>.<launch>/`, or `/<service>.` for
    all. `leader` is the child itself; it leads a session of its own and is not reaped while the tree is used.
    """

    def __init__(
        self, census: Census, *, element: str, birth: Birth, leader: ProcessFacts | None = None
    ) -> None:
        self.census = census
        self._table = census.table
        self._element = element.encode()
        self._birth = birth
        self._own_session = os.getsid(0)
        # While the leader is not reaped, nobody else can get its session.
        self._permanent_session = leader.session if leader else None
        self._leader_pid = leader.pid if leader else None
        # Dead members that are ours to reap: this program is an init, or has asked to be given orphans.
        self._adopted: set[Identity] = set()
        # Each session of the tree, and when its first process started (None: that one was gone already).
        self._sessions: dict[int, int | None] = {}
        # Sessions of strangers who are all dead, with their pids: only the living can make or join anything.
        # Where nobody reaps orphans there are thousands of them, too many to read at each look.
        self._dead_strangers: dict[int, list[int]] = {}
        #: living members as last seen, by pid
        self.alive: dict[int, ProcessFacts] = {}
        #: how many processes of the tree were ever seen
        self.found = 0
        # Those of them that the table still has, dead ones too: none is counted twice.
        self._counted: set[Identity] = set()
        #: true when somebody may have slipped through the last look: a member, or somebody in a new session,
        #: ended before it was read, perhaps after a fork, or may be in the middle of an `exec` or of its end
        self.doubtful = False
        if leader is not None:
            self._keep([leader])

    def look(self, snapshot: Snapshot) -> None:
        """Find every member in a look at all processes."""
        ours: dict[int, ProcessFacts] = {}
        for remembered in self.alive.values():
            facts = snapshot.facts(remembered.pid)
            if facts is not None and facts.start == remembered.start:
                ours[facts.pid] = facts
        for session in list(self._sessions):
            for facts in self._members_of_own(session, snapshot):
                ours[facts.pid] = facts
        strangers = dict(self._strangers(snapshot))
        self._adopt(strangers, ours, snapshot)
        self.doubtful = self._leaves_doubts(ours, strangers, snapshot)
        self._remember_dead(strangers, snapshot)
        self.alive = {pid: facts for pid, facts in self.alive.items() if pid in ours}
        self._counted.intersection_update(facts.identity for facts in ours.values())
        self._keep(ours.values())

    def look_alone(self) -> Snapshot | None:
        """Soon after the spawn: a look at the few that are young enough to belong; None when it is late."""
        newest, leader = self._birth.newest, self._leader_pid
        if newest is None or leader is None or not 0 < leader - newest <= _NUMBERS_APART:
            return None
        if time.monotonic() - self._birth.seconds > _NUMBERS_KNOWN_SECONDS:
            return None
        return self.census.look_at_newer(newest)

    def walk(self) -> None:
        """Find members by parent links alone: cheap, and it finds those that no other mark gives away."""
        unvisited = list(self.alive)
        found: dict[int, ProcessFacts] = {}
        while unvisited:
            for pid in self._table.children(unvisited.pop()) or ():
                facts = self._table.facts(pid)
                if (
                    facts is not None
                    and pid not in found
                    and pid not in self.alive
                    and facts.start >= self._birth.since
                ):
                    found[pid] = facts
                    unvisited.append(pid)
        self._keep(found.values())

    def refresh(self) -> None:
        """Drop the members that have died since, without looking for new ones."""
        for remembered in list(self.alive.values()):
            facts = self._table.facts(remembered.pid)
            if facts is not None and facts.start == remembered.start and facts.alive:
                self.alive[facts.pid] = facts
                continue
            del self.alive[remembered.pid]
            if facts is None or facts.start != remembered.start:
                self._counted.discard(remembered.identity)

    def is_alive(self, pid: int) -> bool:
        """Whether the process of that number lives; for a child of ours that is not reaped yet."""
        facts = self._table.facts(pid)
        return facts is not None and facts.alive

    def any_alive(self, among: Callable[[ProcessFacts], bool] = lambda _: True) -> bool:
        """Whether one of the members last seen still lives; stops at the first that does."""
        for remembered in self.alive.values():
            if among(remembered):
                facts = self._table.facts(remembered.pid)
                if facts is not None and facts.start == remembered.start and facts.alive:
                    return True
        return False

    def signal(self, signal_number: int, members: Iterable[ProcessFacts], *, groups: bool = False) -> None:
        """Signal some members, each by itself; with `groups`, the process groups they are in before that."""
        members = list(members)
        if members:
            whole = {member.group for member in members if member.session != self._own_session}
            kill(self._table, signal_number, [member.identity for member in members], whole if groups else ())

    def forget_leader(self) -> None:
        """Note that somebody else has reaped the leader: its number and its session may be given away now."""
        self._permanent_session = None

    def release(self) -> None:
        """The last step: reap what this program has inherited of the tree, and give up its sessions."""
        for process in self._adopted:
            facts = self._table.facts(process.pid)
            if facts is not None and facts.identity == process and not facts.alive:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        self._adopted.clear()
        for session in self._sessions:
            self.census.disclaim(session, self)
        self._sessions.clear()

    def _members_of_own(self, session: int, snapshot: Snapshot) -> list[ProcessFacts]:
        pids = snapshot.members.get(session, ())
        first = snapshot.facts(session) if session in pids else None
        reused = first is not None and first.start != self._sessions[session]
        if session != self._permanent_session and (reused or not pids):
            # The session has gone; its number may be a stranger's by now, or will be.
            self.census.disclaim(session, self)
            del self._sessions[session]
            return []
        return [
            facts
            for facts in map(snapshot.facts, pids)
            if facts is not None and _was_in(facts, session) and facts.start >= self._birth.since
        ]

    def _strangers(self, snapshot: Snapshot) -> Iterator[tuple[int, list[ProcessFacts | None]]]:
        """The sessions that nobody has claimed and that are as new as ours; None is who has gone since."""
        # The youngest first: whoever is replaced by its own child again and again is there for a moment only.
        for session in reversed(self.census.unclaimed(snapshot, self, since_look=self._birth.look)):
            pids = snapshot.members[session]
            if session == self._own_session or self._dead_strangers.get(session) == pids:
                continue
            members = [snapshot.facts(pid) for pid in pids]
            # A session with a process older than the tree is somebody else's, whatever runs in it: a daemon
            # that was there before may start programs with the environment of whoever asks it to.
            if all(facts is None or facts.start >= self._birth.since for facts in members):
                yield session, members

    def _adopt(
        self,
        strangers: dict[int, list[ProcessFacts | None]],
        ours: dict[int, ProcessFacts],
        snapshot: Snapshot,
    ) -> None:
        """Take the sessions that have one member of ours in them, which makes all of them ours."""
        adopted = True
        while adopted:
            adopted = False
            for session, members in list(strangers.items()):
                present = [facts for facts in members if facts is not None]
                if any(self._is_ours(facts, ours, snapshot) for facts in present):
                    ours.update((facts.pid, facts) for facts in present if _was_in(facts, session))
                    del strangers[session]
                    adopted = True

    def _remember_dead(self, strangers: dict[int, list[ProcessFacts | None]], snapshot: Snapshot) -> None:
        kept = {s: pids for s, pids in self._dead_strangers.items() if snapshot.members.get(s) == pids}
        for session, members in strangers.items():
            if not any(facts is not None and facts.alive for facts in members):
                kept[session] = snapshot.members[session]
        self._dead_strangers = kept

    def _leaves_doubts(
        self,
        ours: dict[int, ProcessFacts],
        strangers: dict[int, list[ProcessFacts | None]],
        snapshot: Snapshot,
    ) -> bool:
        listed = (pid for session in self._sessions for pid in snapshot.members.get(session, ()))
        return (
            any(snapshot.facts(pid) is None for pid in listed)
            or any(not facts.alive and facts.identity not in self._counted for facts in ours.values())
            or any(self._may_be_ours(facts, snapshot) for members in strangers.values() for facts in members)
        )

    def _may_be_ours(self, facts: ProcessFacts | None, snapshot: Snapshot) -> bool:
        """Whether somebody in a new session shows no mark any more, or none yet."""
        if facts is None or not facts.alive:
            return True  # who is dead is met once; it may have left a child in a session of its own
        return snapshot.cookie(facts) is None and self.census.doubts(facts.identity)

    def _is_ours(self, facts: ProcessFacts, ours: dict[int, ProcessFacts], snapshot: Snapshot) -> bool:
        parent = ours.get(facts.parent)
        if facts.pid in ours or (parent is not None and parent.start <= facts.start):
            return True
        cookie = snapshot.cookie(facts)
        return cookie is not None and self._element in cookie + b"/"

    def _keep(self, members: Iterable[ProcessFacts]) -> None:
        for facts in members:
            if facts.identity not in self._counted:
                self._counted.add(facts.identity)
                self.found += 1
            if facts.alive:
                self.alive[facts.pid] = facts
            else:
                self.alive.pop(facts.pid, None)
                if facts.parent == os.getpid() and facts.pid != self._leader_pid:
                    self._adopted.add(facts.identity)
            if facts.session not in (0, self._own_session) and facts.session not in self._sessions:
                first = facts if facts.pid == facts.session else self._table.facts(facts.session)
                self._sessions[facts.session] = first.start if first is not None else None
                self.census.claim(facts.session, self)


def _was_in(facts: ProcessFacts, session: int) -> bool:
    """Whether a process listed in a session is still in it, or has just left it for one of its own."""
    return facts.session in (session, facts.pid)
