"""What goes when a turn says more than is kept, and what finding that out costs."""

from __future__ import annotations

import pytest

from acp_subagent.seam.content import ImageBlock, TextBlock
from acp_subagent.supervised.output import MAX_MESSAGES, MIN_SLACK_BYTES, TurnOutput, json_bytes, utf8_bytes
from tests.acp.folding import LIMIT, folded, text, texts


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
def test_the_oldest_text_goes_and_no_character_is_cut(character: str) -> None:
    width = len(character.encode())
    for limit in range(1, 4 * width + 1):
        output = folded(("a", "old"), ("a", character * 100), limit=limit)
        assert text(output) == character * (limit // width)
        assert output.dropped_bytes == 3 + width * (100 - limit // width)


def test_the_oldest_message_goes_first() -> None:
    output = folded(("a", "aaaa"), ("b", "bbbb"), ("c", "cccc"), limit=6)
    assert texts(output) == ["bb", "cccc"]
    assert output.dropped_bytes == 6


def test_a_message_that_has_gone_begins_anew() -> None:
    output = folded(("a", "aaaa"), ("b", "bbbb"), limit=4)
    assert texts(output) == ["bbbb"]
    output.add_text("a", "A")
    assert texts(output) == ["bbb", "A"]


def test_one_chunk_larger_than_the_limit_leaves_its_end() -> None:
    output = folded(("a", "x" * 1000 + "end"), limit=3)
    assert text(output) == "end"
    assert output.dropped_bytes == 1000


def test_a_character_that_does_not_fit_at_all_leaves_nothing() -> None:
    output = folded(("a", "😀"), limit=3)
    assert output.messages() == ()
    output.add_text("a", "b")
    assert text(output) == "b"


def test_other_content_goes_as_a_whole() -> None:
    output = TurnOutput(1000)
    output.add_block("a", ImageBlock("A" * 900, "image/png"))
    output.add_text("a", "x" * 900)
    assert output.output() == (TextBlock("x" * 900),)
    assert output.dropped_bytes > 900


def test_while_the_turn_runs_the_held_text_stays_near_the_limit() -> None:
    limit = 8 * MIN_SLACK_BYTES * 2
    output = TurnOutput(limit)
    held_most = 0
    for _ in range(40):
        output.add_text("a", "x" * 65_536)
        held_most = max(held_most, output._held)
    assert limit < held_most <= limit + limit // 8
    assert len(text(output)) == limit


def test_the_number_of_messages_is_bounded_too() -> None:
    output = TurnOutput(LIMIT)
    for number in range(MAX_MESSAGES + 10):
        output.add_text(f"m{number}", "x")
    assert len(output.messages()) == MAX_MESSAGES
    assert output.dropped_bytes == 10
    assert text(output) == "x"


def test_a_lone_surrogate_is_kept_and_counted() -> None:
    output = folded(("a", "\ud83d"), ("a", "x\udc00"))
    assert text(output) == "\ud83dx\udc00"
    assert utf8_bytes("\ud83d") == 3
    assert text(folded(("a", "\ud83d" * 5), limit=7)) == "\ud83d" * 2


def test_the_size_of_json_grows_with_its_strings_and_its_objects() -> None:
    assert json_bytes({"key": "é" * 100}) > 200
    assert json_bytes([[]] * 1000) > json_bytes([[]] * 10)
    nested: object = None
    for _ in range(100_000):
        nested = [nested]
    assert json_bytes(nested) > 100_000  # no recursion


def work_for(chunks: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many bytes are moved by cutting while so many chunks come, far beyond the limit."""
    moved = 0

    def counting(said: str, size_bytes: int) -> str:
        nonlocal moved
        moved += len(said)
        return said[size_bytes:]

    monkeypatch.setattr("acp_subagent.supervised.output._without_front", counting)
    output = TurnOutput(MIN_SLACK_BYTES)
    for _ in range(chunks):
        output.add_text("a", "x" * 1024)
    return moved


def test_the_cost_of_a_chunk_does_not_grow_with_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = work_for(2_000, monkeypatch), work_for(8_000, monkeypatch)
    assert many <= 5 * few
