"""The deadlines of a turn, as arithmetic."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, strategies as st

from acp_subagent.supervised.clock import TurnClock, TurnLimits
from acp_subagent.supervised.ending import DeadlineName

LIMITS = TurnLimits(turn_seconds=100, idle_seconds=10, tool_idle_seconds=50)


def clock(limits: TurnLimits = LIMITS, now: float = 0) -> TurnClock:
    return TurnClock(limits, now=now)


def idle_at(made: TurnClock) -> float:
    return made.next_deadline(tool_in_progress=False)[0]


def test_silence_is_counted_from_the_prompt_and_then_from_the_last_frame() -> None:
    made = clock(now=5)
    assert made.next_deadline(tool_in_progress=False) == (15, DeadlineName.IDLE)
    made.heard(8)
    made.heard(3)  # before the turn
    assert idle_at(made) == 18


def test_a_tool_call_in_progress_swaps_in_its_own_limit() -> None:
    made = clock()
    made.heard(4)
    assert made.next_deadline(tool_in_progress=True) == (54, DeadlineName.TOOL_IDLE)
    assert made.next_deadline(tool_in_progress=False) == (14, DeadlineName.IDLE)


def test_the_turn_deadline_stands_whatever_is_heard() -> None:
    made = clock()
    made.heard(95)
    assert made.next_deadline(tool_in_progress=False) == (100, DeadlineName.TURN)
    made.pause(96)
    assert made.next_deadline(tool_in_progress=False) == (100, DeadlineName.TURN)


def test_a_pause_stops_the_idle_clock_and_it_goes_on_where_it_stood() -> None:
    made = clock()
    made.pause(4)
    assert made.next_deadline(tool_in_progress=False) == (100, DeadlineName.TURN)
    made.unpause(34)
    assert idle_at(made) == 40


def test_pauses_nest() -> None:
    made = clock()
    made.pause(2)
    made.pause(3)
    made.unpause(10)
    assert idle_at(made) == 100
    made.unpause(20)
    assert idle_at(made) == 28


def test_what_is_heard_in_a_pause_counts_from_its_end() -> None:
    made = clock()
    made.pause(4)
    made.heard(20)
    made.unpause(30)
    assert idle_at(made) == 40


@pytest.mark.parametrize("in_progress", [True, False])
def test_no_limit_is_never(in_progress: bool) -> None:
    made = clock(TurnLimits(turn_seconds=None, idle_seconds=None, tool_idle_seconds=None))
    assert made.next_deadline(tool_in_progress=in_progress)[0] == inf


@given(
    st.lists(st.tuples(st.sampled_from(["heard", "pause", "unpause"]), st.floats(0, 20)), max_size=30),
)
def test_the_idle_deadline_never_comes_before_its_length_of_counted_silence(
    deeds: list[tuple[str, float]],
) -> None:
    """A plain model beside it: silence is added up, second by second, where nothing pauses it."""
    made, now, silent, pauses = clock(), 0.0, 0.0, 0
    for deed, seconds in deeds:
        now += seconds
        silent += 0 if pauses else seconds
        if deed == "heard":
            silent = 0.0
            made.heard(now)
        elif deed == "pause":
            pauses += 1
            made.pause(now)
        elif pauses:
            pauses -= 1
            made.unpause(now)
    if not pauses and now < 80:
        at, name = made.next_deadline(tool_in_progress=False)
        expected = min(100.0, now + 10 - silent)
        assert at == pytest.approx(expected)
        assert name is (DeadlineName.TURN if expected == 100 else DeadlineName.IDLE)
