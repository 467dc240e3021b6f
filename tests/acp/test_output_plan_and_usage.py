"""Plans and usage, read from whatever an agent sends."""

from __future__ import annotations

import math

import pytest

from acp_subagent.acp.tool_calls import MAX_PLAN_ENTRIES, plan_from, usage_from
from acp_subagent.seam.activity import Cost, PlanEntry, Usage

GOOD = {"content": "list files", "priority": "high", "status": "pending"}


def test_a_plan_is_read_entry_by_entry_and_bad_ones_are_left_out() -> None:
    bad: list[object] = [
        None,
        7,
        "list",
        {},
        GOOD | {"content": None},
        GOOD | {"priority": "urgent"},
        GOOD | {"status": "done"},
        GOOD | {"priority": ["high"]},
        {"content": "x", "priority": "low"},
    ]
    plan = plan_from({"entries": [*bad, GOOD, GOOD | {"status": "in_progress", "priority": "low"}]})
    assert plan == (PlanEntry("list files", "high", "pending"), PlanEntry("list files", "low", "in_progress"))


@pytest.mark.parametrize("raw", [None, 7, [], {}, {"entries": None}, {"entries": {}}, {"entries": "x"}])
def test_a_plan_that_cannot_be_read_is_empty(raw: object) -> None:
    assert plan_from(raw) == ()


def test_a_plan_is_bounded() -> None:
    assert len(plan_from({"entries": [GOOD] * (MAX_PLAN_ENTRIES + 1)})) == MAX_PLAN_ENTRIES


def test_no_repr_shows_what_the_plan_says() -> None:
    assert "secret" not in repr(plan_from({"entries": [GOOD | {"content": "secret"}]}))


def test_usage_is_read() -> None:
    raw = {"used": 812, "size": 200_000, "cost": {"amount": 0.01, "currency": "USD"}}
    assert usage_from(raw) == Usage(812, 200_000, Cost(0.01, "USD"))
    assert usage_from({"used": 0, "size": 2**64 - 1, "cost": None}) == Usage(0, 2**64 - 1, None)


@pytest.mark.parametrize("number", [None, True, -1, 2**64, 1.5, "812", [], {}])
def test_a_count_that_is_none_is_left_out(number: object) -> None:
    assert usage_from({"used": number, "size": 5}) == Usage(None, 5)


@pytest.mark.parametrize(
    "cost",
    [
        7,
        [],
        {},
        {"amount": 1},
        {"amount": None, "currency": "USD"},
        {"amount": True, "currency": "USD"},
        {"amount": "1", "currency": "USD"},
        {"amount": math.inf, "currency": "USD"},
        {"amount": math.nan, "currency": "USD"},
        {"amount": 10**400, "currency": "USD"},
        {"amount": 1, "currency": 7},
    ],
    ids=lambda cost: repr(cost)[:40],
)
def test_a_cost_that_cannot_be_read_is_left_out(cost: object) -> None:
    assert usage_from({"used": 1, "size": 2, "cost": cost}) == Usage(1, 2)
