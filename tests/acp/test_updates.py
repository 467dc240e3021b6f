"""`session/update` folded one by one, without a wire: nothing raises, and everything counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given, strategies as st

from acp_subagent.acp.turn_record import AcpTurnRecord
from acp_subagent.acp.updates import MAX_EARLIER_IDS, SessionUpdates
from acp_subagent.seam.activity import PermissionDecision, PermissionRecord, ToolKind, Usage
from acp_subagent.seam.events import Event, Snapshot, StageChanged, TextChunk, ToolCallChanged
from acp_subagent.seam.result import SubagentResult

KINDS = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "user_message_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "usage_update",
    "current_mode_update",
    "config_option_update",
    "available_commands_update",
    "session_info_update",
    "of_a_kind_to_come",
]
MEMBERS = [
    "content", "messageId", "toolCallId", "status", "kind", "title", "locations", "rawInput", "entries",
    "used", "size", "cost", "currentModeId", "configOptions", "availableCommands", "updatedAt",
]  # fmt: skip

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
text_block = st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=4))
updates = st.builds(
    lambda kind, members: {"sessionUpdate": kind, **members},
    st.sampled_from(KINDS) | junk,
    st.dictionaries(st.sampled_from(MEMBERS), junk | text_block, max_size=5),
)


class Feed:
    """Keeps what it is given."""

    wanted = True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def put(self, event: Event) -> None:
        self.events.append(event)


class Port:
    """A turn, as far as updates know one."""

    begun, ending = True, False

    def __init__(self) -> None:
        self.feed: Any = Feed()
        self.pokes = 0

    def answered(self, outcome: object) -> None: ...

    def poke(self) -> None:
        self.pokes += 1

    def pause(self) -> None: ...

    def unpause(self) -> None: ...


def begun(made: SessionUpdates) -> tuple[AcpTurnRecord, Port]:
    port = Port()
    return made.begin_turn(port, max_output_bytes=10_000, counted=made.counted), port


def tell(made: SessionUpdates, params: dict[str, Any]) -> None:
    made.on_notification("session/update", params)


def chunk(text: str, message_id: str | None = None) -> dict[str, Any]:
    more = {} if message_id is None else {"messageId": message_id}
    content = {"type": "text", "text": text}
    return {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": content, **more}}


def test_the_latest_decision_passes_over_what_nobody_decided() -> None:
    record, _ = begun(SessionUpdates(max_early_updates=0))
    record.note_permission((ToolKind.EDIT, "ask", PermissionDecision.CANCELLED, "first", None))
    assert record.latest_decision is None
    record.note_permission((ToolKind.EDIT, "ask", PermissionDecision.DENIED, "second", "no"))
    record.note_permission((ToolKind.EDIT, "ask", PermissionDecision.CANCELLED, "third", None))
    denied = PermissionRecord(ToolKind.EDIT, "ask", PermissionDecision.DENIED, "second", "no")
    assert record.latest_decision == denied
    assert [one.tool_call_id for one in record.permissions] == ["first", "second", "third"]


@given(st.lists(updates | junk, max_size=8), st.lists(updates | junk, max_size=8))
def test_whatever_an_agent_sends_nothing_raises_and_everything_is_counted(
    before: list[Any], during: list[Any]
) -> None:
    made = SessionUpdates(max_early_updates=5)
    for update in before:
        tell(made, {"sessionId": "s", "update": update})
    made.open_session("s")
    record, port = begun(made)
    for update in during:
        tell(made, {"sessionId": "s", "update": update})
    result = record.fill(SubagentResult(stop_reason="completed"))
    snapshot = record.snapshot("prompt")
    assert isinstance(snapshot, Snapshot)
    assert snapshot.messages == result.messages
    kept = min(5, sum(isinstance(update, dict) for update in before))
    valid = sum(isinstance(update, dict) for update in during)
    assert made.counted().updates == kept + valid
    assert made.counted().unknown_updates <= len(before) + len(during)
    assert not any(isinstance(event, StageChanged) for event in port.feed.events)
    made.end_turn()
    for update in during:
        tell(made, {"sessionId": "s", "update": update})


@given(st.lists(st.tuples(st.text(max_size=3), st.sampled_from([None, "a", "b"])), max_size=10))
def test_the_short_way_for_text_does_what_the_long_one_does(chunks: list[tuple[str, str | None]]) -> None:
    short, long = SessionUpdates(max_early_updates=1), SessionUpdates(max_early_updates=1)
    outcomes = []
    ways: list[tuple[SessionUpdates, Callable[[dict[str, Any]], None]]] = [
        (short, partial(tell, short)),
        (long, long._on_update),
    ]
    for made, handle in ways:
        made.open_session("s")
        record, port = begun(made)
        for text, message_id in chunks:
            handle(chunk(text, message_id))
        outcomes.append((record.output.messages(), record.output.output(), port.feed.events, made.updates))
    assert outcomes[0] == outcomes[1]


def test_the_ids_that_are_remembered_are_bounded() -> None:
    made = SessionUpdates(max_early_updates=1)
    made.begin_replay("s")
    for number in range(MAX_EARLIER_IDS + 10):
        tell(made, chunk("x", f"m{number}"))
    made.open_session("s")
    made.end_replay()
    record, port = begun(made)
    tell(made, chunk("forgotten", "m0"))
    tell(made, chunk("remembered", f"m{MAX_EARLIER_IDS}"))
    assert [event.text for event in port.feed.events if isinstance(event, TextChunk)] == ["forgotten"]
    assert made.late_updates == 1
    assert record.output.message_ids == {"m0"}


def test_the_turn_is_poked_only_when_a_tool_call_begins_or_ends_to_be_in_progress() -> None:
    made = SessionUpdates(max_early_updates=1)
    made.open_session("s")
    _, port = begun(made)
    pokes = []
    for status in ("pending", "in_progress", "in_progress", "completed", "completed"):
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status}
        tell(made, {"sessionId": "s", "update": update})
        pokes.append(port.pokes)
    assert pokes == [0, 1, 1, 2, 2]
    assert sum(isinstance(event, ToolCallChanged) for event in port.feed.events) == 5


def test_the_cost_stays_when_an_update_leaves_it_out() -> None:
    made = SessionUpdates(max_early_updates=1)
    made.open_session("s")
    for more in ({"cost": {"amount": 1, "currency": "EUR"}}, {}):
        update = {"sessionUpdate": "usage_update", "used": 5, "size": 10, **more}
        tell(made, {"sessionId": "s", "update": update})
    assert made.usage != Usage()
    assert made.usage.cost is not None
    assert made.usage.cost.amount == 1
