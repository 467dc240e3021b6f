"""Who belongs to a tree: the rules, on a process table that is made up."""

from __future__ import annotations

import os
import time

import pytest

from acp_subagent.process import tree as tree_module
from acp_subagent.process.census import Census
from acp_subagent.process.procfs import Identity, ProcessFacts
from acp_subagent.process.tree import Birth, Tree

LEADER = 100


class Table:
    """A process table made of the rows it is given."""

    def __init__(self) -> None:
        self.rows: dict[int, ProcessFacts] = {}
        self.cookies: dict[int, bytes | None] = {}

    def add(
        self,
        pid: int,
        *,
        parent: int = 1,
        session: int | None = None,
        start: int = 50,
        cookie: bytes | None = b"",
        state: str = "S",
        threads: int = 1,
    ) -> ProcessFacts:
        row = ProcessFacts(
            pid,
            parent,
            group=pid,
            session=pid if session is None else session,
            state=state,
            threads=threads,
            start=start,
        )
        self.rows[pid] = row
        self.cookies[pid] = cookie
        return row

    def sessions(self) -> dict[int, int]:
        return {pid: row.session for pid, row in self.rows.items()}

    def newest(self) -> int | None:
        return None

    def newer(self, number: int) -> dict[int, int] | None:
        return {pid: session for pid, session in self.sessions().items() if pid > number}

    def facts(self, pid: int) -> ProcessFacts | None:
        return self.rows.get(pid)

    def cookie(self, facts: ProcessFacts) -> bytes | None:
        return self.cookies[facts.pid]

    def children(self, pid: int) -> list[int]:
        return [row.pid for row in self.rows.values() if row.parent == pid]

    def now(self) -> int:
        return 50


class Scene:
    """A table, a census of it, and one tree whose leader was spawned after a first look."""

    def __init__(self) -> None:
        self.table = Table()
        self.table.add(10, start=1)
        self.census = Census(self.table)
        self.census.look()
        self.tree = self.spawn(LEADER, "/s.1/")

    def spawn(self, pid: int, element: str) -> Tree:
        leader = self.table.add(pid, cookie=element.rstrip("/").encode())
        return Tree(self.census, element=element, birth=Birth(50, self.census.looks), leader=leader)

    def members(self) -> set[int]:
        self.tree.look(self.census.look())
        return set(self.tree.alive)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_whoever_is_in_the_session_of_the_leader_belongs(scene: Scene) -> None:
    scene.table.add(101, session=LEADER)
    assert scene.members() == {LEADER, 101}


def test_whoever_carries_the_cookie_belongs(scene: Scene) -> None:
    scene.table.add(101, cookie=b"/s.1")
    assert scene.members() == {LEADER, 101}


def test_whoever_carries_it_further_inside_a_nested_cookie_belongs(scene: Scene) -> None:
    scene.table.add(101, cookie=b"/outer.4/s.1/inner.2")
    assert scene.members() == {LEADER, 101}


@pytest.mark.parametrize("cookie", [b"/s.11", b"/s.2", b"/s.", b"/xs.1", b"s.1", b"", b"/s.1x/y.1"])
def test_whoever_carries_another_cookie_does_not(scene: Scene, cookie: bytes) -> None:
    scene.table.add(101, cookie=cookie)
    assert scene.members() == {LEADER}


def test_whoever_has_a_parent_in_the_tree_belongs(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER)
    scene.table.add(102, parent=101)
    assert scene.members() == {LEADER, 101, 102}


def test_one_member_makes_its_whole_new_session_belong(scene: Scene) -> None:
    scene.table.add(101, cookie=b"/s.1")
    scene.table.add(102, session=101)
    scene.table.add(103, parent=102)
    assert scene.members() == {LEADER, 101, 102, 103}


def test_a_session_stays_when_the_member_that_gave_it_away_has_gone(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER)
    scene.table.add(102, parent=101, session=101)
    assert scene.members() == {LEADER, 101, 102}
    del scene.table.rows[101]
    scene.table.add(103, session=101)
    del scene.table.rows[102]
    assert scene.members() == {LEADER, 103}


def test_a_remembered_member_needs_no_mark_any_more(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER)
    scene.tree.walk()
    scene.table.add(101, parent=1)
    assert scene.members() == {LEADER, 101}


def test_a_remembered_number_with_another_start_time_is_a_stranger(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER)
    assert scene.members() == {LEADER, 101}
    scene.table.add(101, start=70)
    assert scene.members() == {LEADER}


def test_a_session_number_that_was_used_again_is_a_strangers(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER)
    assert scene.members() == {LEADER, 101}
    scene.table.add(101, start=70)
    scene.table.add(102, session=101, start=71)
    assert scene.members() == {LEADER}


def test_the_session_of_a_leader_is_no_strangers_until_it_is_reaped(scene: Scene) -> None:
    del scene.table.rows[LEADER]
    assert scene.members() == set()
    scene.table.add(101, session=LEADER)
    assert scene.members() == {101}


def test_the_session_of_a_leader_that_somebody_reaped_may_be_a_strangers(scene: Scene) -> None:
    scene.tree.forget_leader()
    scene.table.add(LEADER, start=70)
    scene.table.add(101, session=LEADER, start=71)
    assert scene.members() == set()


def test_a_session_that_was_there_before_the_spawn_is_not_looked_into(scene: Scene) -> None:
    """An old daemon runs a program with the environment of the agent that asked it to."""
    scene.table.add(101, session=10, cookie=b"/s.1")
    assert scene.members() == {LEADER}


def test_a_session_with_a_process_older_than_the_tree_is_a_strangers(scene: Scene) -> None:
    scene.table.add(20, start=49)
    scene.table.add(101, session=20, cookie=b"/s.1")
    assert scene.members() == {LEADER}


@pytest.mark.parametrize("own", [77, 0], ids=["an ordinary one", "led from outside of this pid namespace"])
def test_our_own_session_is_never_part_of_a_tree(own: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getsid", lambda _: own)
    scene = Scene()
    scene.table.add(101, session=own, parent=LEADER)
    assert scene.members() == {LEADER}


def test_a_session_of_another_tree_is_not_taken(scene: Scene) -> None:
    other = scene.spawn(200, "/s.2/")
    scene.table.add(201, session=200, parent=LEADER)
    assert scene.members() == {LEADER}
    other.look(scene.census.look())
    assert set(other.alive) == {200, 201}


def test_a_zombie_is_dead_and_its_children_belong(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER, state="Z")
    scene.table.add(102, parent=101)
    assert scene.members() == {LEADER, 102}


def test_strangers_who_are_all_dead_are_read_once(scene: Scene) -> None:
    """Where nobody reaps orphans there are thousands of them."""
    read = []
    facts = scene.table.facts
    scene.table.facts = lambda pid: (read.append(pid), facts(pid))[1]  # type: ignore[method-assign, func-returns-value]
    for pid in range(300, 320):
        scene.table.add(pid, state="Z")
    for _ in range(3):
        assert scene.members() == {LEADER}
    assert all(read.count(pid) == 1 for pid in range(300, 320))


@pytest.mark.parametrize("state", ["Z", None], ids=["dead", "gone before it was read"])
def test_a_look_at_which_a_stranger_in_a_new_session_has_just_ended_is_not_trusted(
    scene: Scene, state: str | None
) -> None:
    """It may be a link of a chain that leaves its session with each fork, and have left the next one."""
    scene.table.add(101, state=state or "S")
    if state is None:
        scene.table.facts = {LEADER: scene.table.rows[LEADER]}.get  # type: ignore[method-assign, assignment]
    scene.members()
    assert scene.tree.doubtful
    scene.members()
    assert not scene.tree.doubtful


def test_a_member_in_a_session_whose_number_a_dead_stranger_had_is_found(scene: Scene) -> None:
    scene.table.add(101, state="Z")
    assert scene.members() == {LEADER}
    del scene.table.rows[101]
    assert scene.members() == {LEADER}
    scene.table.add(101, cookie=b"/s.1", start=60)
    assert scene.members() == {LEADER, 101}


def test_a_zombie_with_threads_lives(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER, state="Z", threads=2)
    assert scene.members() == {LEADER, 101}


def test_every_process_ever_seen_is_counted_once(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER)
    for _ in range(3):
        scene.members()
        scene.tree.walk()
        scene.tree.refresh()
    scene.table.add(101, parent=LEADER, state="Z")
    scene.members()
    scene.members()
    assert scene.tree.found == 2
    del scene.table.rows[101]
    scene.tree.refresh()
    scene.table.add(102, parent=LEADER)
    scene.members()
    assert scene.tree.found == 3


def test_refresh_drops_whoever_has_died_or_become_another(scene: Scene) -> None:
    for pid in (101, 102, 103, 104):
        scene.table.add(pid, parent=LEADER)
    scene.members()
    del scene.table.rows[101]
    scene.table.add(102, parent=LEADER, state="Z")
    scene.table.add(103, start=99)
    scene.tree.refresh()
    assert set(scene.tree.alive) == {LEADER, 104}


def test_a_member_that_makes_a_session_while_we_look_belongs(scene: Scene) -> None:
    scene.table.add(101, session=LEADER)
    listed = scene.table.sessions()
    scene.table.add(101)
    scene.table.sessions = lambda: listed  # type: ignore[method-assign]
    assert scene.members() == {LEADER, 101}


def test_a_member_that_ends_while_we_look_leaves_a_doubt(scene: Scene) -> None:
    """It may have forked after the list was made."""
    scene.table.add(101, session=LEADER)
    listed = scene.table.sessions()
    del scene.table.rows[101]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scene.table, "sessions", lambda: listed)
        assert scene.members() == {LEADER}
    assert scene.tree.doubtful
    scene.members()
    assert not scene.tree.doubtful


def test_a_member_first_seen_dead_leaves_a_doubt_once(scene: Scene) -> None:
    scene.table.add(101, session=LEADER, state="Z")
    doubts = []
    for _ in range(3):
        scene.members()
        doubts.append(scene.tree.doubtful)
    assert doubts == [True, False, False]


def test_an_empty_environment_is_doubted_a_few_times_and_then_believed(scene: Scene) -> None:
    scene.table.add(101, cookie=None)
    doubts = []
    for _ in range(5):
        scene.members()
        doubts.append(scene.tree.doubtful)
    assert doubts == [True, True, True, False, False]


def test_the_tree_of_a_service_has_everything_that_carries_its_id() -> None:
    table = Table()
    table.add(5, start=1)
    table.add(100, cookie=b"/s.1", start=60)
    table.add(200, cookie=b"/outer.1/s.2", start=60)
    table.add(201, session=200, start=61)
    table.add(300, cookie=b"/t.1", start=60)
    tree = Tree(Census(table), element="/s.", birth=Birth(50))
    tree.look(tree.census.look())
    assert set(tree.alive) == {100, 200, 201}


def test_soon_after_the_spawn_only_the_younger_are_looked_at(scene: Scene) -> None:
    leader = scene.table.add(400, cookie=b"/s.4")
    looks = scene.census.looks
    tree = Tree(scene.census, element="/s.4/", birth=Birth(50, looks, 399, time.monotonic()), leader=leader)
    scene.table.add(401, cookie=b"/s.4")
    scene.table.add(402, session=401)
    snapshot = tree.look_alone()
    assert snapshot is not None
    tree.look(snapshot)
    assert set(tree.alive) == {400, 401, 402}
    assert scene.census.looks == looks


@pytest.mark.parametrize("newest", [None, 400, 500, 1])
def test_where_numbers_are_not_given_in_order_all_are_looked_at(scene: Scene, newest: int | None) -> None:
    leader = scene.table.add(400, cookie=b"/s.4")
    tree = Tree(scene.census, element="/s.4/", birth=Birth(50, 1, newest, time.monotonic()), leader=leader)
    assert tree.look_alone() is None


def test_later_all_are_looked_at(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = scene.table.add(400, cookie=b"/s.4")
    tree = Tree(scene.census, element="/s.4/", birth=Birth(50, 1, 399, time.monotonic()), leader=leader)
    assert tree.look_alone() is not None
    later = time.monotonic() + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert tree.look_alone() is None


def test_signals_go_to_groups_first_and_to_nobody_elses(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    monkeypatch.setattr(
        tree_module,
        "kill",
        lambda table, number, processes, groups=(): sent.append((number, processes, groups)),
    )
    member = scene.table.add(101, parent=LEADER)
    in_our_session = member._replace(pid=102, group=555, session=os.getsid(0))
    scene.tree.signal(9, [member, in_our_session], groups=True)
    assert sent == [(9, [Identity(101, 50), Identity(102, 50)], {101})]


def test_a_released_session_can_be_claimed_by_another(scene: Scene) -> None:
    snapshot = scene.census.look()
    assert LEADER not in scene.census.unclaimed(snapshot, since_look=1)
    scene.tree.release()
    assert LEADER in scene.census.unclaimed(snapshot, since_look=1)
