"""One look for everybody, and which sessions are new."""

from __future__ import annotations

import errno

import pytest
import trio

from acp_subagent.process.census import Census
from acp_subagent.process.teardown import Scans
from tests.process.made_up import Table

NOBODY = object()  #: owns no session


@pytest.fixture
def table() -> Table:
    table = Table()
    table.add(10)
    return table


def test_a_session_is_new_to_whoever_looked_before_it_appeared(table: Table) -> None:
    census = Census(table)
    census.look()
    table.add(20)
    snapshot = census.look()
    assert census.unclaimed(snapshot, NOBODY, since_look=1) == [20]
    assert census.unclaimed(snapshot, NOBODY, since_look=2) == []
    assert census.unclaimed(snapshot, NOBODY, since_look=0) == [10, 20]


def test_a_session_number_that_was_free_in_between_is_new_again(table: Table) -> None:
    census = Census(table)
    census.look()
    row = table.rows.pop(10)
    census.look()
    table.rows[10] = row
    snapshot = census.look()
    assert census.unclaimed(snapshot, NOBODY, since_look=2) == [10]


def test_a_claimed_session_is_nobody_elses_until_its_owner_gives_it_up(table: Table) -> None:
    census = Census(table)
    snapshot = census.look()
    owner, other = object(), object()
    census.claim(10, owner)
    assert census.unclaimed(snapshot, NOBODY, since_look=0) == []
    census.disclaim(10, other)
    assert census.unclaimed(snapshot, NOBODY, since_look=0) == []
    census.disclaim(10, owner)
    assert census.unclaimed(snapshot, NOBODY, since_look=0) == [10]


def test_what_a_look_still_shows_of_a_tree_that_is_over_is_nobody_elses(table: Table) -> None:
    """Ladders share a look, and one of them may have come to its end before the next one uses it."""
    census = Census(table)
    owner, other = object(), object()
    census.claim(10, owner)
    snapshot = census.look()
    census.disclaim(10, owner)
    assert census.unclaimed(snapshot, other, since_look=0) == []
    assert census.unclaimed(snapshot, owner, since_look=0) == [10]
    assert census.unclaimed(census.look(), other, since_look=0) == [10]


def test_a_fresh_enough_look_is_not_repeated(table: Table) -> None:
    census = Census(table)
    census.look_if_older_than(60)
    census.look_if_older_than(60)
    assert census.looks == 1
    census.look_if_older_than(-1)
    assert census.looks == 2


def test_a_snapshot_reads_each_thing_once(table: Table) -> None:
    snapshot = Census(table).look()
    facts = snapshot.facts(10)
    assert facts is not None
    assert snapshot.cookie(facts) == b""
    table.rows.clear()
    table.cookies.clear()
    assert snapshot.facts(10) is facts
    assert snapshot.cookie(facts) == b""


async def test_ladders_that_look_at_once_share_one_look(table: Table) -> None:
    scans = Scans(Census(table))
    scans.ladders = 5
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(scans.fresh)
    assert scans.census.looks == 1
    await scans.fresh()
    assert scans.census.looks == 2


async def test_a_look_that_fails_fails_for_all_who_share_it(table: Table) -> None:
    scans = Scans(Census(table))
    scans.ladders = 2
    failures = 0

    def out_of_descriptors() -> dict[int, int]:
        raise OSError(errno.EMFILE, "too many open files")

    table.sessions = out_of_descriptors  # type: ignore[method-assign]  # replaced

    async def look() -> None:
        nonlocal failures
        with pytest.raises(OSError, match="open files"):
            await scans.fresh()
        failures += 1

    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            nursery.start_soon(look)
    assert failures == 2
