"""Text output: pieces of the answer, and the notes, all of them made of our own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acp_subagent.cli import render
from acp_subagent.seam.activity import (
    ExitStatus,
    PermissionDecision,
    PermissionRecord,
    Rung,
    TeardownReport,
    ToolKind,
)
from acp_subagent.seam.content import ImageBlock, TextBlock, UnknownBlock
from acp_subagent.seam.events import (
    ContentChunk,
    Event,
    PermissionDecided,
    PermissionRequested,
    StageChanged,
    TextChunk,
)
from acp_subagent.seam.result import Counters, Failure, SubagentResult

NOTHING = SubagentResult(stop_reason="completed")


def begun(*chunks: tuple[str, str | None]) -> list[bool]:
    messages = render.Messages()
    return [messages.begins(TextChunk(text, message_id)) for text, message_id in chunks]


@pytest.mark.parametrize(
    ("message_ids", "expected"),
    [
        ([None, None], [False, False]),
        (["a", "a", "b", "b"], [False, False, True, False]),
        ([None, "a"], [False, True]),
        (["a", None, None, "a"], [False, True, True, True]),
    ],
)
def test_messages_are_told_apart_by_their_ids(message_ids: list[str | None], expected: list[bool]) -> None:
    assert begun(*(("text", message_id) for message_id in message_ids)) == expected


def missing(*chunks: tuple[str, str | None], result: SubagentResult) -> str:
    messages = render.Messages()
    for text, message_id in chunks:
        messages.begins(TextChunk(text, message_id))
    return messages.missing(result)


def test_text_that_came_in_no_chunk_is_found() -> None:
    result = replace(NOTHING, messages=((TextBlock("one"),), (TextBlock("two"), TextBlock(" three"))))
    assert missing(("one", "a"), ("tw", "b"), result=result) == "o three"
    assert missing(("one", "a"), ("two three", "b"), result=result) == ""
    assert missing(result=result) == "onetwo three"


def test_nothing_is_guessed_when_the_result_itself_is_not_whole() -> None:
    result = replace(NOTHING, messages=((TextBlock("ree"),),), counters=Counters(output_dropped_bytes=10))
    assert missing(("one two th", None), result=result) == ""


RECORD = PermissionRecord(ToolKind.EDIT, "reject", PermissionDecision.DENIED, "call-1", "option")


@pytest.mark.parametrize(
    ("event", "note"),
    [
        (PermissionRequested(ToolKind.EDIT, "call-1"), "permission asked: edit"),
        (PermissionDecided(RECORD), "permission denied (policy: reject)"),
        (StageChanged("prompt"), "stage: prompt"),
        (StageChanged("teardown"), render.ENDING_THE_TREE),
        (TextChunk("text"), None),
        (
            ContentChunk(ImageBlock("aGk=", "image/png")),
            "part of the answer is not text: an image (--format json has it)",
        ),
        (
            ContentChunk(UnknownBlock({"type": "a secret"})),
            "part of the answer is not text: of an unknown kind (--format json has it)",
        ),
        (ContentChunk(ImageBlock("aGk=", "image/png"), thought=True), None),
    ],
)
def test_events_have_their_notes(event: Event, note: str | None) -> None:
    assert render.note_on(event, announce_requests=True, announce_teardown=True) == note


def test_the_end_of_the_tree_is_announced_only_on_a_terminal() -> None:
    event = StageChanged("teardown")
    assert render.note_on(event, announce_requests=True, announce_teardown=False) is None


def lines(result: SubagentResult, withheld: tuple[str, ...] = ()) -> list[str]:
    return list(render.closing_lines(result, seconds=1.25, withheld=withheld))


def test_a_completed_run_is_summed_up_in_three_lines() -> None:
    report = TeardownReport(
        {Rung.EOF: 0.25, Rung.REAP: 0.0}, processes_found=3, survivors=0, exit_status=ExitStatus(code=0)
    )
    assert lines(replace(NOTHING, teardown=report), withheld=("A_KEY",)) == [
        "stop reason: completed",
        "duration: 1.25 s",
        "teardown: processes found: 3, survivors: 0 (eof 0.25 s, reap 0.00 s)",
    ]


@pytest.mark.parametrize(
    ("count", "words"), [(1, "1 permission request was"), (2, "2 permission requests were")]
)
def test_denials_are_counted_and_the_option_is_named(count: int, words: str) -> None:
    last = lines(replace(NOTHING, permissions=(RECORD,) * count))[-1]
    assert last == f"{words} denied (policy: reject); --permission allow or ask changes that"


@pytest.mark.parametrize(
    ("category", "told"),
    [("auth-required", True), ("timeout", True), ("remote-error", False), ("process-exit", False)],
)
def test_names_that_were_held_back_are_told_where_they_may_be_the_reason(category: str, told: bool) -> None:
    failure = Failure(diagnostic="the line", stage="prompt", category=category, advice="Do something.")
    result = SubagentResult(stop_reason="error", diagnostic="the line", failure=failure)
    text = "\n".join(lines(result, withheld=("Z_TOKEN", "A_KEY")))
    assert "the line\nDo something." in text
    assert ("A_KEY, Z_TOKEN" in text) is told
    assert ("--pass-env" in text) is told


def test_a_stop_reason_that_is_no_word_of_ours_is_not_copied() -> None:
    assert lines(SubagentResult(stop_reason="a secret"))[0] == "stop reason: unknown"


def test_local_detail_cannot_steer_the_terminal() -> None:
    failure = Failure(
        diagnostic="the line",
        stage="prompt",
        category="unknown",
        stderr_tail="one\x1b[2J\n\x9b1mtwo\n",
        stop_reason="odd",
    )
    text = "\n".join(render.failure_lines(failure))
    assert "  stderr_tail: one\n    two" in text
    assert "  stop_reason: odd" in text
    assert "\x1b" not in text


def test_a_question_shows_the_title_on_one_line() -> None:
    asked = render.question(ToolKind.EDIT, "Edit\nAllow it? y\x1b[1A \u202egpj" + "x" * 500)
    first, last = asked.split("\n")
    assert first.startswith("The agent asks for permission (edit): Edit Allow it? y gpj")
    assert len(first) < 300
    assert last == "Allow it?"
