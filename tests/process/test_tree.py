"""Who belongs to a tree: the rules, on a process table that is made up."""

from __future__ import annotations

import os

import pytest

from acp_subagent.process import tree as tree_module
from acp_subagent.process.census import Census
from acp_subagent.process.procfs import Identity
from acp_subagent.process.tree import Birth, Tree
from tests.process.made_up import LEADER, Scene, Table


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
    other = object()
    assert LEADER not in scene.census.unclaimed(scene.census.look(), other, since_look=1)
    scene.tree.release()
    assert LEADER in scene.census.unclaimed(scene.census.look(), other, since_look=1)
