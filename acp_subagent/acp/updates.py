"""`session/update`: which turn an update belongs to, what it changes, and which event it makes.

Owns the dispatch by kind and what outlives a turn: usage, and the ids of earlier turns, by which a late
update is known; what the session itself has come to, `session_state` keeps. Called by the reader for every
frame: text chunks take a short way. What is replayed of an old session is no turn's: only its ids and the
session's state are kept. Unknown kinds are counted and handed on raw. Nothing that an agent sends raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acp_subagent.acp.session_state import CHANGES, SessionState
from acp_subagent.acp.tool_calls import note_call, plan_from, usage_from
from acp_subagent.acp.turn_record import AcpTurnRecord
from acp_subagent.seam.activity import ToolCall, Usage
from acp_subagent.seam.content import TextBlock, block_from_json
from acp_subagent.seam.events import (
    ContentChunk,
    Event,
    PlanChanged,
    SessionChange,
    TextChunk,
    ThoughtChunk,
    ToolCallChanged,
    UnknownUpdate,
    UsageChanged,
    UserChunk,
)
from acp_subagent.seam.result import Counters
from acp_subagent.supervised.conversation import TurnPort
from acp_subagent.supervised.tool_calls import ToolCalls, TrackedCall

#: ids of messages and tool calls of earlier turns that are remembered; the oldest go
MAX_EARLIER_IDS = 10_000

Raw = dict[str, object]


class SessionUpdates:
    """Folds the updates of one session; at most one turn at a time is open."""

    def __init__(self, *, max_early_updates: int) -> None:
        self._max_early_updates = max_early_updates
        self._early: list[tuple[object, Raw]] = []  # before the session was known
        self._earlier_ids: dict[str, None] = {}  # of messages
        self._earlier_calls: dict[str, None] = {}  # of tool calls that the present turn has not taken up
        self._thought_ids: dict[str, None] = {}  # of the present turn; its other ids are in its record
        self._replaying: str | None = None  # the session whose history is being told
        self._state = SessionState()
        self._port: TurnPort | None = None
        self._handlers: dict[object, Callable[[Raw], None]] = {
            "agent_message_chunk": self._on_message_chunk,
            "agent_thought_chunk": self._on_thought_chunk,
            "user_message_chunk": self._on_user_chunk,
            "tool_call": self._on_tool_call,
            "tool_call_update": self._on_tool_call,
            "plan": self._on_plan,
            "usage_update": self._on_usage,
            **dict.fromkeys(CHANGES, self._on_session_change),
        }
        self.session_id: str | None = None  #: the open session; None until it is known
        self.record: AcpTurnRecord | None = None  #: the open turn
        self.usage = Usage()  #: the last that was reported
        self.updates = 0
        self.unknown_updates = 0
        self.late_updates = 0
        self.early_updates_dropped = 0

    # -- the session and its turns

    @property
    def session_changes(self) -> tuple[SessionChange, ...]:
        """What the session's mode, options, commands and info last changed to."""
        return self._state.latest

    def is_other_session(self, session_id: object) -> bool:
        """Whether the session is known and this is another one."""
        return self.session_id is not None and session_id != self.session_id

    def begin_replay(self, session_id: str) -> None:
        """An existing session is asked for: what comes for it before the answer is its history."""
        self._replaying = session_id

    def end_replay(self) -> None:
        """The answer is there, or will not come."""
        self._replaying = None

    def open_session(self, session_id: str) -> None:
        """The session is known: handle what came for it before."""
        self.session_id = session_id
        early, self._early = self._early, []
        for its_id, update in early:
            if its_id == session_id:
                self._handle(update)

    def begin_turn(
        self, port: TurnPort, *, max_output_bytes: int, counted: Callable[[], Counters]
    ) -> AcpTurnRecord:
        """From now on updates belong to this turn. What it was not told of the session, it is told now."""
        self.record = record = AcpTurnRecord(
            max_output_bytes=max_output_bytes,
            usage=lambda: self.usage,
            counted=counted,
            session=lambda: self.session_changes,
        )
        self._port = port
        for change in self._state.take_untold():
            self._emit(change)
        return record

    def end_turn(self) -> None:
        """The turn has settled; what still comes of it is late."""
        if self.record is not None:
            _remember(self._earlier_ids, *self.record.output.message_ids, *self._thought_ids)
            _remember(self._earlier_calls, *(call.id for call in self.record.tool_calls.all()))
        self._thought_ids.clear()
        self.record = self._port = None

    def counted(self) -> Counters:
        """The counters of this room so far."""
        return Counters(
            updates=self.updates,
            unknown_updates=self.unknown_updates,
            late_updates=self.late_updates,
            early_updates_dropped=self.early_updates_dropped,
        )

    # -- what comes

    def on_notification(self, method: str, params: Raw) -> None:
        """One notification; all but updates are ignored, as the protocol asks.

        The usual one, a chunk of the answer, takes the short way: subscripts, and a fault sends it the long
        way. `_on_update` knows all of them.
        """
        if method != "session/update":
            return
        record = self.record
        if record is not None:
            try:
                update = params["update"]
                content = update["content"]  # type: ignore[index]  # what is no object raises TypeError
                text = content["text"]
                usual = (
                    update["sessionUpdate"] == "agent_message_chunk"  # type: ignore[index]  # the same
                    and content["type"] == "text"
                    and params["sessionId"] == self.session_id
                    and type(text) is str
                )
            except (KeyError, TypeError):
                usual = False
            if usual:
                message_id = update.get("messageId")  # type: ignore[attr-defined]  # an object, or it were not usual
                if message_id is None or (type(message_id) is str and message_id not in self._earlier_ids):
                    self.updates += 1
                    record.output.add_text(message_id, text)
                    feed = self._port.feed  # type: ignore[union-attr]  # there with the record
                    if feed.wanted and text:
                        feed.put(TextChunk(text, message_id))
                    return
        self._on_update(params)

    def _on_update(self, params: Raw) -> None:
        update = params.get("update")
        session_id = params.get("sessionId")
        if type(update) is not dict:
            self.unknown_updates += 1
        elif session_id != self.session_id or session_id is None:
            self._keep_early(session_id, update)
        else:
            self._handle(update)

    def _keep_early(self, session_id: object, update: Raw) -> None:
        """Updates of a session that is not known yet are kept, up to the limit; later ones are not ours."""
        if self.session_id is not None:
            return
        if self._replaying is not None and session_id == self._replaying:
            self._on_history(update)
            return
        if len(self._early) >= self._max_early_updates:
            self.early_updates_dropped += 1
            return
        self._early.append((session_id, update))

    def _on_history(self, update: Raw) -> None:
        """An update that is replayed: remember what it was about, and what the session has come to."""
        kind, message_id, call_id = (update.get(key) for key in ("sessionUpdate", "messageId", "toolCallId"))
        if isinstance(message_id, str):
            _remember(self._earlier_ids, message_id)
        if isinstance(call_id, str):
            _remember(self._earlier_calls, call_id)
        if isinstance(kind, str) and kind in CHANGES:
            self._on_session_change(update)

    def _handle(self, update: Raw) -> None:
        self.updates += 1
        kind = update.get("sessionUpdate")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        (handler or self._unknown)(update)

    def _unknown(self, update: Raw) -> None:
        self.unknown_updates += 1
        self._emit(UnknownUpdate(update))

    def _on_message_chunk(self, update: Raw) -> None:
        message_id, content = _message_id(update), update.get("content")
        if self._late(message_id) or self.record is None:
            return
        if not isinstance(content, dict):
            self._unknown(update)
            return
        block = block_from_json(content)
        self.record.output.add_block(message_id, block)
        if not isinstance(block, TextBlock):
            self._emit(ContentChunk(block, message_id))
        elif block.text:
            self._emit(TextChunk(block.text, message_id))

    def _on_thought_chunk(self, update: Raw) -> None:
        message_id, content = _message_id(update), update.get("content")
        if self._late(message_id) or self.record is None:
            return
        if message_id is not None:
            _remember(self._thought_ids, message_id)
        if not isinstance(content, dict):
            self._unknown(update)
            return
        block = block_from_json(content)
        if isinstance(block, TextBlock):
            self._emit(ThoughtChunk(block.text, message_id))
        else:
            self._emit(ContentChunk(block, message_id, thought=True))

    def _on_user_chunk(self, update: Raw) -> None:
        content = update.get("content")
        if isinstance(content, dict):
            self._emit(UserChunk(block_from_json(content), _message_id(update)))
        else:
            self._unknown(update)

    def _on_tool_call(self, update: Raw) -> None:
        call_id = update.get("toolCallId")
        if not isinstance(call_id, str):
            self._unknown(update)
            return
        if call_id in self._earlier_calls:
            if update.get("sessionUpdate") != "tool_call":
                self.late_updates += 1
                return
            del self._earlier_calls[call_id]  # it begins anew: agents exist that count from 1 in each turn
        if self.record is not None and self._port is not None:
            self._note_call(update, self.record, self._port)

    def on_permission_call(self, raw: object) -> TrackedCall:
        """The tool call that a permission is asked for; it may be the first mention of it."""
        record, port = self.record, self._port
        if record is None or port is None:
            return note_call(ToolCalls(), raw)
        call_id = raw.get("toolCallId") if isinstance(raw, dict) else None
        if isinstance(call_id, str):
            self._earlier_calls.pop(call_id, None)  # the agent waits for it now
        before = record.tool_calls.get(call_id) if port.feed.wanted else None
        return self._note_call(raw, record, port, unless=before)

    def _note_call(
        self, raw: object, record: AcpTurnRecord, port: TurnPort, *, unless: ToolCall | None = None
    ) -> TrackedCall:
        """Merge one mention of a tool call; it is told unless it changed nothing of `unless`."""
        was_in_progress = record.tool_calls.in_progress
        tracked = record.note_tool_call(raw)
        if port.feed.wanted and tracked.call != unless:
            port.feed.put(ToolCallChanged(tracked.call))
        if record.tool_calls.in_progress is not was_in_progress:
            port.poke()
        return tracked

    def _on_plan(self, update: Raw) -> None:
        if self.record is not None:
            self.record.plan = plan_from(update)
            self._emit(PlanChanged(self.record.plan))

    def _on_usage(self, update: Raw) -> None:
        usage = usage_from(update)
        # The cost may be left out of an update; it is the session's, so the last one stays true.
        self.usage = usage if usage.cost is not None else replace(usage, cost=self.usage.cost)
        self._emit(UsageChanged(self.usage))

    def _on_session_change(self, update: Raw) -> None:
        """The session itself has changed: tell it now or when the next turn begins."""
        change = CHANGES[str(update["sessionUpdate"])](update)
        if change is None:
            self._unknown(update)
            return
        self._state.note(change, told=self._port is not None)
        self._emit(change)

    def _late(self, its_id: str | None) -> bool:
        """Whether the id is one of an earlier turn; then the update is counted, and dropped."""
        late = its_id is not None and its_id in self._earlier_ids
        self.late_updates += late
        return late

    def _emit(self, event: Event) -> None:
        if self._port is not None and self._port.feed.wanted:
            self._port.feed.put(event)


def _remember(ids: dict[str, None], *more: str) -> None:
    """Add ids to those that are remembered, the oldest of which go."""
    ids |= dict.fromkeys(more)
    while len(ids) > MAX_EARLIER_IDS:
        del ids[next(iter(ids))]


def _message_id(update: Raw) -> str | None:
    message_id = update.get("messageId")
    return message_id if isinstance(message_id, str) else None
