"""What the runtime says of its sessions, folded: output, usage, events, and whatever junk may come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from acp_subagent.dsh.events import SessionEvents
from acp_subagent.dsh.turn_record import DshTurnRecord
from acp_subagent.dsh.vocabulary import EventKind
from acp_subagent.seam.activity import ToolCall, ToolKind, ToolStatus, Usage
from acp_subagent.seam.content import TextBlock
from acp_subagent.seam.events import TextChunk, ThoughtChunk, ToolCallChanged, UnknownUpdate, UsageChanged
from acp_subagent.seam.result import Counters, SubagentResult
from acp_subagent.supervised.conversation import Outcome


class Feed:
    """Keeps the events."""

    wanted = True

    def __init__(self) -> None:
        self.events: list[object] = []

    def put(self, event: object) -> None:
        self.events.append(event)


class Port:
    """A turn that is under way."""

    begun = True
    ending = False

    def __init__(self) -> None:
        self.feed: Any = Feed()

    def answered(self, outcome: Outcome) -> None:
        raise AssertionError

    def poke(self) -> None: ...
    def pause(self) -> None: ...
    def unpause(self) -> None: ...


class Room:
    """A session whose events are folded."""

    def __init__(self, max_output_bytes: int = 1000) -> None:
        self.session = SessionEvents("root")
        self.record = DshTurnRecord(max_output_bytes=max_output_bytes, counted=self.session.counted)
        self.port = Port()
        self.session.begin_turn(self.record, self.port)
        self.session.activity.accepted("ours")

    def tell(self, kind: object, data: object, session: object = "root") -> None:
        self.session.on_event({"sessionId": session, "event": {"type": kind, "data": data}})

    def say(self, *texts: str, id: object = "m", **more: object) -> None:
        content = [{"type": "text", "text": text} for text in texts]
        self.tell("assistant/message", {"message": {"id": id, "content": content}, **more})

    def piece(self, text: str, kind: str = "text-delta") -> None:
        self.tell("assistant/chunk", {"chunk": {"type": kind, "text": text}})

    @property
    def result(self) -> SubagentResult:
        return self.record.fill(SubagentResult(stop_reason="completed"))

    @property
    def events(self) -> list[object]:
        events: list[object] = self.port.feed.events
        return events


def attempt(*texts: str) -> dict[str, object]:
    return {
        "stream": [
            {"type": "chunk", "chunk": {"type": "block-start"}},
            {"type": "text-chunks", "texts": [*texts]},
        ]
    }


def test_the_output_is_the_last_message_with_content() -> None:
    room = Room()
    room.say("first", id=1)
    room.say("se", "cond")
    room.say()
    room.tell("assistant/message", {"message": {"content": [{"type": "tool-call", "name": "bash"}]}})
    assert room.result.text == "second"
    assert [message[0] for message in room.result.messages] == [TextBlock("first"), TextBlock("second")]
    assert room.events == [TextChunk("first"), TextChunk("second", "m")]


def test_two_messages_of_one_id_stay_two() -> None:
    room = Room()
    room.say("first")
    room.say("second")
    assert room.result.text == "second"


def test_pieces_are_the_output_while_there_is_no_message() -> None:
    room = Room()
    room.piece("let me ")
    room.piece("thi")
    assert room.result.text == "let me thi"
    assert room.events == [TextChunk("let me "), TextChunk("thi")]


def test_a_message_takes_the_place_of_its_pieces_and_is_not_told_twice() -> None:
    room = Room()
    room.piece("hel")
    room.piece("lo")
    room.say("hello")
    assert room.result.messages == ((TextBlock("hello"),),)
    assert room.events == [TextChunk("hel"), TextChunk("lo")]


def test_a_message_that_was_not_finished_comes_after_the_whole_ones_and_is_no_output() -> None:
    room = Room()
    room.say("whole")
    room.piece("unfin")
    assert room.result.text == "whole"
    assert room.result.messages == ((TextBlock("whole"),), (TextBlock("unfin"),))


def test_what_a_failed_model_call_had_said_is_partial_output() -> None:
    room = Room()
    room.tell("assistant/attempt", attempt("cut", " off"))
    assert room.result.text == "cut off"


def test_another_try_takes_the_place_of_the_failed_one() -> None:
    room = Room()
    room.tell("assistant/attempt", attempt("cut"))
    room.tell("llm/retry-started", {})
    assert room.result.text == "cut"
    room.tell("assistant/attempt", attempt("cut off"))
    assert room.result.text == "cut off"


def test_an_attempt_that_was_told_live_is_not_told_again() -> None:
    room = Room()
    room.piece("cut")
    room.tell("assistant/attempt", attempt("cut"))
    assert room.result.text == "cut"


def test_thoughts_are_no_output() -> None:
    room = Room()
    room.piece("hm", "reasoning-delta")
    room.say("yes")
    room.tell("assistant/message", {"message": {"content": [{"type": "reasoning", "text": "aha"}]}})
    assert room.result.text == "yes"
    assert room.events == [ThoughtChunk("hm"), ThoughtChunk("aha")]


def test_descendants_and_strangers_change_nothing() -> None:
    room = Room()
    room.say("ours")
    for session in ("child", "", None, 5, ["root"]):
        room.tell(
            "assistant/message", {"message": {"content": [{"type": "text", "text": "theirs"}]}}, session
        )
        room.tell("turn/end", {"reason": {"kind": "error"}}, session)
        room.session.on_status({"sessionId": session, "status": "idle"})
    assert room.result.text == "ours"
    assert not room.session.activity.over
    assert room.session.activity.turn_end is None
    assert room.result.counters == Counters(updates=1)


def test_what_comes_after_the_end_of_the_activity_is_late() -> None:
    room = Room()
    room.say("ours")
    room.session.on_status({"sessionId": "root", "status": "running"})
    room.session.on_status({"sessionId": "root", "status": "idle"})
    room.say("of the next activity")
    assert room.result.text == "ours"
    assert room.result.counters.late_updates == 1


def test_usage_is_that_of_the_last_model_call_and_the_size_of_its_context() -> None:
    room = Room()
    room.tell("request/context", {"contextWindow": 1000})
    room.say("a", usage={"totalTokens": 10})
    room.say("b", usage={"totalTokens": True})
    assert room.result.usage == Usage(10, 1000)
    assert [event for event in room.events if isinstance(event, UsageChanged)] == [
        UsageChanged(Usage(None, 1000)),
        UsageChanged(Usage(10, 1000)),
    ]


def test_events_of_other_kinds_are_handed_on_as_they_came() -> None:
    room = Room()
    room.tell("session/title", {"title": "A"})
    assert room.events == [UnknownUpdate({"type": "session/title", "data": {"title": "A"}})]
    assert room.result.counters == Counters(updates=1, unknown_updates=1)


def called(name: str, call_id: object = "call_1", arguments: object = "{}") -> dict[str, object]:
    return {"turn": 1, "step": 1, "callId": call_id, "name": name, "arguments": arguments}


def brought(*content: object, call_id: object = "call_1", failed: bool = False) -> dict[str, object]:
    block = {"type": "tool-result", "toolCallId": call_id, "content": [*content], "isError": failed}
    return {"message": {"role": "user", "content": [block]}}


@pytest.mark.parametrize(
    ("failed", "status"), [(False, ToolStatus.COMPLETED), (True, ToolStatus.FAILED)], ids=["well", "badly"]
)
def test_a_tool_call_is_told_when_it_begins_and_when_it_ends(failed: bool, status: ToolStatus) -> None:
    room = Room()
    room.tell("tool/call", called("bash", arguments='{"command": "pwd"}'))
    room.tell("tool/result", brought({"type": "text", "text": "/a"}, failed=failed))
    begun = ToolCall(
        "call_1", "bash", ToolKind.EXECUTE, ToolStatus.IN_PROGRESS, raw_input='{"command": "pwd"}'
    )
    ended = replace(begun, status=status, content=({"type": "text", "text": "/a"},))
    assert room.events == [ToolCallChanged(begun), ToolCallChanged(ended)]
    assert room.record.snapshot("session-run").tool_calls == room.result.tool_calls == (ended,)
    assert room.result.counters == Counters(updates=2)


@pytest.mark.parametrize(("name", "kind"), [("edit", ToolKind.EDIT), ("my_own", ToolKind.OTHER)])
def test_the_kind_of_a_call_is_that_of_the_runtimes_tool(name: str, kind: ToolKind) -> None:
    room = Room()
    room.tell("tool/call", called(name))
    assert [call.kind for call in room.result.tool_calls] == [kind]


def test_a_call_whose_end_never_came_is_cancelled_with_the_turn() -> None:
    room = Room()
    room.tell("tool/call", called("bash"))
    assert [call.status for call in room.result.tool_calls] == [ToolStatus.CANCELLED]


def test_a_call_id_that_is_used_again_begins_anew() -> None:
    room = Room()
    room.tell("tool/call", called("bash"))
    room.tell("tool/result", brought("old"))
    room.tell("tool/call", called("read"))
    (call,) = room.record.snapshot("session-run").tool_calls
    assert (call.title, call.status, call.content) == ("read", ToolStatus.IN_PROGRESS, ())


@pytest.mark.parametrize("call_id", [None, 7, "", "x" * 10_000], ids=["none", "number", "empty", "long"])
def test_a_call_without_a_usable_id_is_not_kept(call_id: object) -> None:
    room = Room()
    room.tell("tool/call", called("bash", call_id))
    room.tell("tool/result", brought(call_id=call_id))
    assert room.result.tool_calls == ()


def test_the_tool_calls_of_a_descendant_are_its_own() -> None:
    room = Room()
    room.tell("tool/call", called("bash"), session="child")
    assert (room.events, room.result.tool_calls) == ([], ())


def test_output_is_bounded_and_what_went_is_counted() -> None:
    room = Room(max_output_bytes=10)
    room.say("0123456789ABCDEF")
    room.piece("x" * 30)
    assert room.result.text == "6789ABCDEF"
    assert room.result.counters.output_dropped_bytes == 6 + 20


def test_a_late_subscriber_gets_what_there_is() -> None:
    room = Room()
    room.say("whole")
    room.piece("unfin")
    snapshot = room.record.snapshot("session-run")
    assert snapshot.messages == ((TextBlock("whole"),), (TextBlock("unfin"),))
    assert snapshot.stage == "session-run"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
#: the members that are read, in the places where they are read, with anything in them
MEMBERS = [
    "inserted", "reason", "message", "content", "usage", "chunk", "stream", "contextWindow", "id", "kind",
    "texts", "text", "type", "totalTokens", "callId", "name", "arguments", "toolCallId", "isError",
]  # fmt: skip
DATA = st.recursive(
    JSON,
    lambda inner: st.dictionaries(st.sampled_from(MEMBERS), inner | st.lists(inner, max_size=2), max_size=4),
    max_leaves=6,
)


@given(kind=st.sampled_from(list(EventKind)) | JSON, data=DATA)
def test_nothing_that_a_runtime_sends_raises(kind: object, data: object) -> None:
    room = Room()
    room.tell(kind, data)
    room.session.on_event({"sessionId": "root", "event": data})
    room.session.on_status({"sessionId": "root", "status": data})
    assert room.session.counted().updates == 2


@pytest.mark.parametrize("kind", EventKind)
def test_an_event_without_data_is_counted_and_nothing_else(kind: EventKind) -> None:
    room = Room()
    room.session.on_event({"sessionId": "root", "event": {"type": kind}})
    assert room.session.counted() == Counters(updates=1)
    assert room.result.output == ()
