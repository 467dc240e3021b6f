"""Which chunks are one message, and which message is the output."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, strategies as st

from acp_subagent.seam.content import ContentBlock, ImageBlock, TextBlock, UnknownBlock
from acp_subagent.supervised.output import (
    JOIN_PARTS,
    LARGE_PART_CHARACTERS,
    MAX_ID_CHARACTERS,
    TurnOutput,
    utf8_bytes,
)
from tests.acp.folding import LIMIT, Chunk, folded, text, texts

IMAGE = ImageBlock("AAAA", "image/png")


def test_nothing_said_is_no_message_and_no_output() -> None:
    assert folded().messages() == ()
    assert folded().output() == ()
    assert folded().dropped_bytes == 0


def test_chunks_with_one_id_are_one_message() -> None:
    output = folded(("a", "Two "), ("a", "modules."))
    assert output.messages() == ((TextBlock("Two modules."),),)
    assert output.output() == (TextBlock("Two modules."),)


def test_a_changed_id_is_a_new_message_and_the_last_one_is_the_output() -> None:
    output = folded(("a", "Let me look."), ("b", "Two modules."))
    assert texts(output) == ["Let me look.", "Two modules."]
    assert text(output) == "Two modules."


def test_interleaved_chunks_still_go_to_their_own_message() -> None:
    output = folded(("a", "1"), ("b", "2"), ("a", "3"), (None, "!"), ("b", "4"), ("a", "5"))
    assert texts(output) == ["135", "24", "!"]
    assert text(output) == "24"


def test_without_any_id_everything_is_one_message() -> None:
    output = folded((None, "one "), (None, "two "), (None, "three"))
    assert output.messages() == ((TextBlock("one two three"),),)


def test_once_there_is_an_id_every_chunk_without_one_is_a_message_of_its_own() -> None:
    output = folded((None, "warning"), (None, "again"), ("a", "answer"), (None, "late"), (None, "later"))
    assert texts(output) == ["warning", "again", "answer", "late", "later"]


def test_a_chunk_without_id_counts_only_when_no_message_with_an_id_has_content() -> None:
    assert text(folded(("a", "answer"), (None, "warning"))) == "answer"
    assert text(folded(("a", ""), (None, "first"), (None, "second"))) == "second"


def test_an_empty_chunk_makes_no_message_and_still_tells_that_there_are_ids() -> None:
    output = folded((None, "one"), (None, "two"), ("a", ""))
    assert texts(output) == ["one", "two"]
    assert text(output) == "two"
    assert folded(("a", ""), (None, "")).messages() == ()


def test_the_last_message_that_has_content_is_the_output() -> None:
    assert text(folded(("a", "answer"), ("b", ""))) == "answer"


def test_white_space_is_content() -> None:
    assert text(folded(("a", "answer"), ("b", "\n"))) == "\n"


def test_an_overlong_id_is_taken_for_none() -> None:
    long = "i" * (MAX_ID_CHARACTERS + 1)
    assert texts(folded((long, "one"), (long, "two"))) == ["onetwo"]
    assert texts(folded(("a", "x"), (long, "one"), (long, "two"))) == ["x", "one", "two"]
    assert texts(folded(("a" * MAX_ID_CHARACTERS, "one"), ("a" * MAX_ID_CHARACTERS, "two"))) == ["onetwo"]


def test_the_ids_of_the_messages_can_be_asked_for() -> None:
    assert folded(("a", "1"), (None, "2"), ("b", "3"), ("c", "")).message_ids == {"a", "b"}


def test_other_content_stands_where_it_came_and_text_around_it_is_joined() -> None:
    output = TurnOutput(LIMIT)
    for block in (TextBlock("a"), TextBlock("b"), IMAGE, TextBlock("c"), IMAGE, IMAGE, TextBlock("d")):
        output.add_block("m", block)
    blocks: tuple[ContentBlock, ...] = (
        TextBlock("ab"),
        IMAGE,
        TextBlock("c"),
        IMAGE,
        IMAGE,
        TextBlock("d"),
    )
    assert output.messages() == (blocks,)
    assert output.output() == blocks


def test_other_content_makes_a_message_non_empty() -> None:
    output = folded(("a", "text"), ("b", ""))
    output.add_block("b", IMAGE)
    assert output.output() == (IMAGE,)


def test_other_content_without_an_id_follows_the_same_rule() -> None:
    output = folded((None, "x"))
    output.add_block(None, IMAGE)
    assert output.messages() == ((TextBlock("x"), IMAGE),)
    output.add_text("a", "answer")
    output.add_block(None, IMAGE)
    assert output.messages() == ((TextBlock("x"),), (IMAGE,), (TextBlock("answer"),), (IMAGE,))


def test_reading_in_mid_turn_changes_nothing() -> None:
    output = folded(("a", "one "))
    assert output.messages() == ((TextBlock("one "),),)
    output.add_text("a", "two")
    output.add_text("b", "three")
    assert output.messages() == output.messages() == ((TextBlock("one two"),), (TextBlock("three"),))


def test_a_million_small_chunks_are_kept_as_few_strings() -> None:
    output = TurnOutput(LIMIT)
    for number in range(JOIN_PARTS * 20 + 3):
        output.add_text("a", str(number % 10))
    assert text(output) == "".join(str(number % 10) for number in range(JOIN_PARTS * 20 + 3))


def test_large_chunks_are_not_copied_before_they_are_read() -> None:
    chunks = [str(number % 10) * LARGE_PART_CHARACTERS for number in range(JOIN_PARTS * 3 + 3)]
    output = TurnOutput(LIMIT)
    tracemalloc.start()
    try:
        for chunk in chunks:
            output.add_text("a", chunk)
        copied_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert copied_bytes < JOIN_PARTS * LARGE_PART_CHARACTERS / 2
    assert text(output) == "".join(chunks)


def test_more_early_chunks_without_id_than_are_kept_apart_stay_together() -> None:
    output = folded(*[(None, "x")] * JOIN_PARTS, (None, "y"), (None, "z"), ("a", "answer"))
    assert texts(output) == ["x" * JOIN_PARTS, "y", "z", "answer"]


def test_reading_in_mid_turn_does_not_join_what_an_id_will_split() -> None:
    output = folded((None, "one"), (None, "two"))
    assert texts(output) == ["onetwo"]
    output.add_text("a", "answer")
    assert texts(output) == ["one", "two", "answer"]


def test_what_is_cut_before_the_first_id_is_still_split_by_it() -> None:
    output = folded((None, "one"), (None, "two"), (None, "six"), limit=7)
    assert texts(output) == ["etwosix"]
    output.add_text("a", "")
    assert texts(output) == ["e", "two", "six"]


def test_messages_and_output_share_one_text() -> None:
    output = folded(*[("a", "x" * 100)] * 1000)
    (message,) = output.messages()
    (block,) = output.output()
    assert isinstance(block, TextBlock)
    assert isinstance(message[0], TextBlock)
    assert block.text is message[0].text


def reference(chunks: list[Chunk]) -> list[str]:
    """The same rule, written for clarity alone."""
    named = any(message_id is not None for message_id, _ in chunks)
    messages: dict[object, str] = {}
    for number, (message_id, said) in enumerate(chunks):
        key: object = message_id if message_id is not None else (number if named else None)
        if said:
            messages[key] = messages.get(key, "") + said
    return list(messages.values())


CHUNKS = st.lists(
    st.tuples(st.sampled_from([None, None, "a", "b", "c"]), st.text(alphabet="ab\né€😀", max_size=4)),
    max_size=60,
)


@given(CHUNKS)
def test_any_chunks_are_folded_as_the_rule_says(chunks: list[Chunk]) -> None:
    assert texts(folded(*chunks)) == reference(chunks)


@given(CHUNKS, st.integers(min_value=1, max_value=40))
def test_any_chunks_are_held_to_the_limit_with_the_newest_kept(chunks: list[Chunk], limit: int) -> None:
    output = folded(*chunks, limit=limit)
    kept, everything = texts(output), reference(chunks)
    assert sum(map(utf8_bytes, kept)) <= limit
    assert output.dropped_bytes == utf8_bytes("".join(everything)) - utf8_bytes("".join(kept))
    assert "".join(everything).endswith("".join(kept))
    if output.dropped_bytes:
        # At most the rest of one character is lost beside what had to go.
        assert sum(map(utf8_bytes, kept)) > limit - 4


def test_no_repr_shows_what_was_said() -> None:
    output = folded(("secret-id", "secret-text"))
    assert "secret" not in repr(output)


def test_unknown_content_is_kept_and_counted() -> None:
    output = TurnOutput(LIMIT)
    block = UnknownBlock({"type": "hologram", "data": "x" * 100})
    output.add_block("a", block)
    assert output.output() == (block,)


def test_what_is_read_twice_needs_its_memory_once() -> None:
    output = folded((None, "Two "), (None, "modules."))
    assert output.messages()[0][0] is output.output()[0]
    output.add_text(None, " Or three.")
    assert text(output) == "Two modules. Or three."


def test_a_finished_turn_holds_its_text_in_one_piece() -> None:
    output = folded((None, "Two "), (None, "modules."))
    output.finish()
    first, second = output.output()[0], output.messages()[0][0]
    assert isinstance(first, TextBlock)
    assert isinstance(second, TextBlock)
    assert first.text is second.text
    assert first.text == "Two modules."
