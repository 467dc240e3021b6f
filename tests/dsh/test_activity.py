"""Where an activity begins and ends, whatever order its messages come in."""

from __future__ import annotations

import pytest

from acp_subagent.dsh.activity import MAX_EARLY_RECEIPTS, Activity, TurnEnd

DONE = TurnEnd("completed")
FAILED = TurnEnd("error")


def played(*steps: str) -> Activity:
    """An activity that was told this: `answer`, `receipt`, `other receipt`, `done`, `failed`, `idle`."""
    activity = Activity()
    for step in steps:
        match step:
            case "answer":
                activity.accepted("ours")
            case "receipt":
                activity.inserted(["ours"])
            case "other receipt":
                activity.inserted(["other"])
            case "done":
                activity.turn_ended(DONE)
            case "failed":
                activity.turn_ended(FAILED)
            case "idle":
                activity.idle()
    return activity


@pytest.mark.parametrize(
    "steps",
    [
        ("answer", "receipt", "done", "idle"),
        ("receipt", "answer", "done", "idle"),
        ("receipt", "done", "answer", "idle"),
        ("receipt", "done", "idle", "answer"),
        ("answer", "done", "idle"),
        ("failed", "idle", "receipt", "answer", "done", "idle"),
        ("failed", "idle", "answer", "receipt", "done", "idle"),
        ("other receipt", "failed", "idle", "receipt", "done", "idle", "answer"),
        ("receipt", "other receipt", "failed", "done", "idle", "answer"),
        ("answer", "failed", "done", "idle"),
        ("answer", "done", "idle", "failed", "idle"),
        ("receipt", "done", "idle", "failed", "idle", "answer"),
    ],
)
def test_the_last_turn_between_receipt_and_idleness_counts(steps: tuple[str, ...]) -> None:
    activity = played(*steps)
    assert activity.over
    assert activity.turn_end == DONE


@pytest.mark.parametrize(
    "steps",
    [
        (),
        ("answer",),
        ("receipt", "done", "idle"),
        ("done", "idle", "receipt", "answer"),
        ("done", "idle", "answer", "receipt"),
        ("answer", "done"),
        ("other receipt", "done", "idle", "answer"),
    ],
)
def test_it_is_not_over_without_a_receipt_and_idleness_after_it(steps: tuple[str, ...]) -> None:
    assert not played(*steps).over


def test_idleness_without_the_end_of_a_turn_has_none() -> None:
    activity = played("failed", "idle", "receipt", "answer", "idle")
    assert activity.over
    assert activity.turn_end is None


def test_what_is_kept_before_the_answer_is_bounded() -> None:
    activity = played("receipt")
    for number in range(2 * MAX_EARLY_RECEIPTS):
        activity.inserted([f"message {number}"])
    assert len(activity._early) == MAX_EARLY_RECEIPTS
    activity.accepted("ours")
    assert activity._early == []
    activity.idle()
    assert activity.over


def test_its_repr_shows_no_word_of_the_runtime() -> None:
    assert "CANARY" not in repr(TurnEnd("CANARY", "CANARY"))
