"""A short soak; `python -m tests.soak` runs longer ones."""

from __future__ import annotations

from tests.soak import BAD_STARTS, KINDS, soak


async def test_a_thousand_turns_with_faults_at_random_all_settle_right() -> None:
    tally = await soak(turns=1000, seed=14)
    assert tally.wrong == []
    assert tally.turns >= 1000
    assert tally.children >= 50
    assert tally.outcomes.keys() == KINDS.keys() | BAD_STARTS.keys()
    assert (tally.tasks_left, tally.processes_left) == (0, 0)
    failed = sum(number for name, number in tally.outcomes.items() if name in EXPECTED_FAILURES)
    assert len(tally.failures) == failed


#: What is told to the host, each once.
EXPECTED_FAILURES = {
    "errs",
    "idles",
    "says nonsense",
    "exits",
    "is killed",
    "hangs up",
    "leaves one that holds its stdout",
    "leaves at once",
    "wants a login",
    "speaks another version",
    "never answers",
}
