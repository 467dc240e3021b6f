"""How a look at the process table is taken, and how far it is trusted: the dead, and who comes and goes."""

from __future__ import annotations

import time

import pytest

from acp_subagent.process.tree import Birth, Tree
from tests.process.made_up import LEADER, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_zombie_is_dead_and_its_children_belong(scene: Scene) -> None:
    scene.table.add(101, parent=LEADER, state="Z")
    scene.table.add(102, parent=101)
    assert scene.members() == {LEADER, 102}


def test_strangers_who_are_all_dead_are_read_once(scene: Scene) -> None:
    """Where nobody reaps orphans there are thousands of them."""
    read = []
    facts = scene.table.facts
    scene.table.facts = lambda pid: (read.append(pid), facts(pid))[1]  # type: ignore[method-assign, func-returns-value]  # replaced
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
        scene.table.facts = {LEADER: scene.table.rows[LEADER]}.get  # type: ignore[method-assign, assignment]  # replaced
    scene.members()
    assert scene.tree.doubtful
    scene.members()
    assert not scene.tree.doubtful


def test_trees_that_share_a_look_have_no_doubt_about_those_of_them_that_are_over(scene: Scene) -> None:
    other = scene.spawn(200, "/s.2/")
    snapshot = scene.census.look()
    scene.table.add(200, cookie=b"/s.2", state="Z")
    other.look(snapshot)
    other.release()
    del scene.table.rows[200]
    scene.tree.look(snapshot)
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


def test_a_member_that_makes_a_session_while_we_look_belongs(scene: Scene) -> None:
    scene.table.add(101, session=LEADER)
    listed = scene.table.sessions()
    scene.table.add(101)
    scene.table.sessions = lambda: listed  # type: ignore[method-assign]  # replaced
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


def test_soon_after_the_spawn_only_the_younger_are_looked_at(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    leader = scene.table.add(400, cookie=b"/s.4")
    looks = scene.census.looks
    tree = Tree(scene.census, element="/s.4/", birth=Birth(50, looks, 399, 7.0), leader=leader)
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
    tree = Tree(scene.census, element="/s.4/", birth=Birth(50, 1, 399, 7.0), leader=leader)
    monkeypatch.setattr(time, "monotonic", lambda: 7.2)
    assert tree.look_alone() is not None
    monkeypatch.setattr(time, "monotonic", lambda: 8.0)
    assert tree.look_alone() is None
