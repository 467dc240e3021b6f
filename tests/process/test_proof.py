"""How long nobody is believed to be left, and when that is no proof."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from acp_subagent.process.teardown import Graces, Scans, end_tree
from acp_subagent.seam.activity import ExitStatus, Rung, TeardownReport
from tests.process.made_up import LEADER, Scene

GRACES = Graces(eof_seconds=1.0, term_seconds=1.0, kill_seconds=1.0)


class Gone:
    """A leader that has exited."""

    def __init__(self) -> None:
        self.exited = trio.Event()
        self.exited.set()

    def see_exit(self) -> bool:
        return True

    def close_stdin(self) -> None:
        """It has none any more."""

    def reap(self) -> ExitStatus:
        return ExitStatus(code=0)


class Crowded:
    """A scene whose leader is dead, and where a stranger in a new session ends during each of some looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: trio.testing.MockClock) -> None:
        self.scene = Scene()
        self.scene.table.add(LEADER, state="Z")
        self.scene.members()  # that it is dead is known
        self.looks = 0
        self.strangers = 1_000_000  #: how many come and go, one at each look
        self.look_seconds = 0.0  #: how long a look takes
        sessions = self.scene.table.sessions

        def look() -> dict[int, int]:
            self.looks += 1
            clock.jump(self.look_seconds)
            gone = 1_000_000_000 + self.looks  # nobody has such a number
            return sessions() | ({gone: gone} if self.looks <= self.strangers else {})

        monkeypatch.setattr(self.scene.table, "sessions", look)

    async def end(self) -> TeardownReport:
        return await end_tree(
            Gone(), self.scene.tree, Scans(self.scene.census), GRACES, hurried=lambda: False
        )


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock) -> Crowded:
    return Crowded(monkeypatch, autojump_clock)


async def test_strangers_that_come_and_go_for_many_looks_are_strangers(
    crowded: Crowded, autojump_clock: object
) -> None:
    began = trio.current_time()
    report = await crowded.end()
    assert report.clean
    assert list(report.rungs) == [Rung.REAP]
    assert crowded.looks >= 20
    assert 0.5 <= trio.current_time() - began < 0.6


async def test_the_first_look_without_a_doubt_is_the_proof(crowded: Crowded, autojump_clock: object) -> None:
    crowded.strangers = 5
    assert (await crowded.end()).clean
    assert crowded.looks == 6


async def test_where_there_is_no_time_for_many_looks_nothing_is_proved(
    crowded: Crowded, autojump_clock: object
) -> None:
    """A member may have slipped through each of the few; the report says that, and comes in time."""
    crowded.look_seconds = 0.3
    began = trio.current_time()
    report = await crowded.end()
    assert (report.survivors, report.failed, report.clean) == (0, True, False)
    assert list(report.rungs) == [Rung.TERM, Rung.KILL, Rung.REAP]
    # The polite rungs that were skipped leave their time to the proof, and the kill keeps its own.
    assert trio.current_time() - began <= sum(GRACES) + 3 * crowded.look_seconds


async def test_slow_looks_prove_as_much_as_fast_ones_when_they_leave_no_doubt(
    crowded: Crowded, autojump_clock: object
) -> None:
    crowded.look_seconds, crowded.strangers = 0.3, 2
    report = await crowded.end()
    assert (report.failed, report.clean) == (False, True)
