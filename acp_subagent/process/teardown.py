"""The ladder that ends a process tree: close stdin, SIGTERM, the kill, the reap; and the report of it.

Promises: it always ends, within the graces together; an agent that exits when its stdin closes is never
signalled; a rung is skipped the moment the tree is gone; "gone" means that a look at the process table which
began after the last known member had died found nobody. The leader is reaped last: until then its number, its
group and its session cannot be given to anybody else.

Who belongs to the tree is `tree`'s to say. Draining the child's pipes meanwhile is left to their readers.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple, Protocol

import trio

from acp_subagent.process.census import Census, Snapshot
from acp_subagent.process.procfs import Identity, ProcessFacts
from acp_subagent.process.tree import Tree
from acp_subagent.seam.activity import ExitStatus, Rung, TeardownReport

#: between two looks at a tree that is dying, at first; it doubles up to the other
_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05
#: how soon a request to hurry is noticed
_HURRY_CHECK_SECONDS = 0.1
#: sweeps in a row that must find nothing new before what was stopped is killed
_QUIET_SWEEPS = 2
#: how long, and for how many looks, a proof goes on when strangers in new sessions keep coming and going
_DOUBTED_SECONDS = 0.5
_DOUBTED_LOOKS = 20


class Leader(Protocol):
    """What the ladder needs of the child at the root of the tree."""

    @property
    def exited(self) -> trio.Event:
        """Set when its exit was seen."""

    def see_exit(self) -> bool:
        """Look whether it has exited, without reaping it; sets `exited`."""

    def close_stdin(self) -> None:
        """Close our end of its stdin; does nothing the second time."""

    def reap(self) -> ExitStatus | None:
        """Collect the exit; None when it has not exited, or somebody else collected it before."""


class Graces(NamedTuple):
    """How long each rung waits for the tree, in seconds."""

    eof_seconds: float
    term_seconds: float
    kill_seconds: float


class Scans:
    """Looks at the process table, one for all who ask within the same pass of the scheduler."""

    def __init__(self, census: Census) -> None:
        self.census = census
        #: ladders under way: with only one there is nobody to share with
        self.ladders = 0
        self._next: _Scan | None = None

    async def fresh(self) -> Snapshot:
        """A look that began after this call. Raises `OSError` when descriptors have run out."""
        if self.ladders <= 1:
            return self.census.look()
        scan = self._next
        if scan is None:
            scan = self._next = _Scan()
            try:
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                self._next = None
                scan.snapshot = self.census.look()
            finally:
                self._next = None if self._next is scan else self._next
                scan.done.set()
        else:
            await scan.done.wait()
        if scan.snapshot is None:
            # The one who looked for us all has failed: look for ourselves, and meet the error if it stays.
            return self.census.look()
        return scan.snapshot


class _Scan:
    def __init__(self) -> None:
        self.done = trio.Event()
        self.snapshot: Snapshot | None = None


async def end_tree(
    leader: Leader, tree: Tree, scans: Scans, graces: Graces, *, hurried: Callable[[], bool]
) -> TeardownReport:
    """Run the whole ladder. Never raises for anything that the tree does, nor for an error of our own.

    `hurried` is asked again and again: once it says yes, the ladder goes on with the kill at once.
    Shielded, since it is bounded: at most the three graces together.
    """
    ladder = _Ladder(leader, tree, scans, graces, hurried)
    scans.ladders += 1
    try:
        with trio.CancelScope(shield=True):
            try:
                status = await ladder.climb()
            except Exception as exc:  # noqa: BLE001  (whatever it was: the tree must not live on because of it)
                return replace(await ladder.last_resort(), cause=exc)
        return ladder.report(status, failed=False)
    finally:
        scans.ladders -= 1


class _Ladder:
    def __init__(
        self, leader: Leader, tree: Tree, scans: Scans, graces: Graces, hurried: Callable[[], bool]
    ) -> None:
        self._leader = leader
        self._tree = tree
        self._scans = scans
        self._graces = graces
        self._hurried = hurried
        self._proved = True  # unless the time ended before that nobody is left could be proved
        self._rungs: dict[Rung, float] = {}

    async def climb(self) -> ExitStatus | None:
        """The whole ladder, rung by rung; what the leader ended with, None when that is not known."""
        gone = False
        polite_until = trio.current_time() + self._graces.eof_seconds + self._graces.term_seconds
        # The last moment at which some are still known by their parents. Without a descriptor to look with,
        # the end of stdin comes first: it frees one.
        with suppress(OSError):
            self._tree.walk()
        if self._leader.see_exit():
            self._leader.close_stdin()
            gone = await self._gone(polite_until)
        else:
            with self._rung(Rung.EOF):
                self._leader.close_stdin()
                if await self._leader_exits(self._graces.eof_seconds, self._hurried):
                    gone = await self._gone(polite_until)
        if not gone and not self._hurried():
            with self._rung(Rung.TERM):
                term_until = trio.current_time() + self._graces.term_seconds
                gone = await self._terminate(min(term_until, polite_until))
        kill_deadline = trio.current_time() + self._graces.kill_seconds
        if not gone:
            with self._rung(Rung.KILL):
                await self._kill(kill_deadline)
        with self._rung(Rung.REAP):
            await self._leader_exits(kill_deadline - trio.current_time(), lambda: False)
            return self._leader.reap()

    async def last_resort(self) -> TeardownReport:
        """After an error of our own: the kill once more, or at least of what is known; then the reap."""
        deadline = trio.current_time() + self._graces.kill_seconds
        self._leader.close_stdin()
        try:
            await self._kill(deadline)
        except Exception:  # noqa: BLE001  (the same error again, most likely)
            with suppress(Exception):
                self._tree.signal(signal.SIGKILL, self._tree.alive.values(), groups=True)
        await self._leader_exits(deadline - trio.current_time(), lambda: False)
        with suppress(Exception):
            self._tree.refresh()
        return self.report(self._leader.reap(), failed=True)

    def report(self, status: ExitStatus | None, *, failed: bool) -> TeardownReport:
        """What the rungs took, whom they found, and who is left."""
        survivors = len(self._tree.alive)
        return TeardownReport(
            rungs=self._rungs,
            processes_found=self._tree.found,
            survivors=survivors,
            exit_status=status,
            failed=failed or not (survivors or self._proved),
        )

    @contextmanager
    def _rung(self, rung: Rung) -> Iterator[None]:
        started = trio.current_time()
        try:
            yield
        finally:
            self._rungs[rung] = trio.current_time() - started

    async def _leader_exits(self, within_seconds: float, given_up: Callable[[], bool]) -> bool:
        deadline = trio.current_time() + within_seconds
        pause = _HURRY_CHECK_SECONDS / 8
        while not self._leader.see_exit():
            left = deadline - trio.current_time()
            if left <= 0 or given_up():
                return False
            # The exit wakes us at once; the pauses are for a request to hurry, and for the case that the task
            # that watches the exit was cancelled together with its nursery.
            with trio.move_on_after(min(pause, left)):
                await self._leader.exited.wait()
            pause = min(pause * 2, _HURRY_CHECK_SECONDS)
        return True

    async def _look(self) -> None:
        alone = self._tree.look_alone() if self._scans.ladders == 1 else None
        self._tree.look(alone or await self._scans.fresh())

    async def _gone(self, deadline: float) -> bool:
        """Prove that nobody is left, by a look that began when nobody was believed to be alive.

        A doubt that many looks leave is a stranger's. When the deadline comes before them, nothing is proved.
        """
        self._tree.refresh()
        doubted_until = trio.current_time() + _DOUBTED_SECONDS
        looks = 0
        while True:
            believed_alive = bool(self._tree.alive)
            await self._look()
            looks += 1
            if self._tree.alive:
                return False
            if not believed_alive and not self._tree.doubtful:
                return True
            if self._tree.doubtful:
                now = trio.current_time()
                if looks >= _DOUBTED_LOOKS and now >= doubted_until:
                    return True
                if now >= deadline:
                    return False
                await trio.sleep(_FIRST_PAUSE_SECONDS)

    async def _terminate(self, deadline: float) -> bool:
        told: set[Identity] = set()

        def was_told(member: ProcessFacts) -> bool:
            return member.identity in told

        pause = _FIRST_PAUSE_SECONDS
        while trio.current_time() < deadline and not self._hurried():
            if not self._tree.any_alive(was_told):
                # All that were told have ended. Whoever is left came later, and is told now.
                if await self._gone(deadline) and self._leader.see_exit():
                    return True
                newcomers = [member for member in self._tree.alive.values() if not was_told(member)]
                self._tree.signal(signal.SIGTERM, newcomers)
                # A stopped process acts on no SIGTERM before it is continued.
                self._tree.signal(signal.SIGCONT, [member for member in newcomers if member.stopped])
                told.update(member.identity for member in newcomers)
            await self._pause(min(pause, deadline - trio.current_time()))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        return await self._gone(deadline) and self._leader.see_exit()

    async def _pause(self, seconds: float) -> None:
        with trio.move_on_after(max(seconds, 0)):
            if self._leader.exited.is_set():
                await trio.sleep_forever()
            await self._leader.exited.wait()

    async def _kill(self, deadline: float) -> None:
        await self._look()
        self._tree.signal(signal.SIGKILL, self._tree.alive.values(), groups=True)
        held: set[Identity] = set()
        pause = _FIRST_PAUSE_SECONDS
        while True:
            await self._hold(held, deadline)
            self._tree.signal(signal.SIGKILL, self._tree.alive.values(), groups=True)
            self._leader.see_exit()
            await self._pause(min(pause, deadline - trio.current_time()))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            if not self._tree.any_alive() and await self._gone(deadline):
                return
            if trio.current_time() >= deadline:
                self._tree.refresh()
                self._proved = False
                return

    async def _hold(self, held: set[Identity], deadline: float) -> None:
        """Stop whoever is new until nobody is, so that none can replace another that is being killed."""
        quiet = 0
        ends_at = min(deadline, trio.current_time() + _DOUBTED_SECONDS)
        while quiet < _QUIET_SWEEPS and trio.current_time() < ends_at:
            await self._look()
            new = [member for member in self._tree.alive.values() if member.identity not in held]
            self._tree.signal(signal.SIGSTOP, new, groups=True)
            held.update(member.identity for member in new)
            quiet = 0 if new or self._tree.doubtful else quiet + 1
            await trio.lowlevel.checkpoint()
