"""What the runtime says of its sessions: what belongs to the run, what it changes, and which event it makes.

Owns the reading of `session.event` and `session.status`. Only the root session counts: what its descendants
do never takes the place of what it says. Called by the reader for every frame; nothing that a runtime sends
raises here: junk is counted and passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acp_subagent.dsh.activity import Activity, TurnEnd
from acp_subagent.dsh.tool_calls import call_begun, calls_ended
from acp_subagent.dsh.turn_record import DshTurnRecord
from acp_subagent.dsh.vocabulary import EventKind, Status
from acp_subagent.seam.activity import Usage
from acp_subagent.seam.events import (
    Event,
    TextChunk,
    ThoughtChunk,
    ToolCallChanged,
    UnknownUpdate,
    UsageChanged,
)
from acp_subagent.seam.result import Counters
from acp_subagent.supervised.conversation import TurnPort
from acp_subagent.supervised.output import MAX_ID_CHARACTERS
from acp_subagent.supervised.reading import count, word

Raw = dict[str, object]


class SessionEvents:
    """Folds what is said of one root session, `session_id`, into the record of its one activity."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.activity = Activity()
        self._record: DshTurnRecord | None = None
        self._port: TurnPort | None = None
        self._told_live = False  # the message that comes next was told in pieces
        self._updates = self._unknown = self._late = 0
        self._handlers: dict[str, Callable[[Raw, DshTurnRecord], None]] = {
            EventKind.INBOX: self._on_inbox,
            EventKind.TURN_END: self._on_turn_end,
            EventKind.MESSAGE: self._on_message,
            EventKind.CHUNK: self._on_chunk,
            EventKind.ATTEMPT: self._on_attempt,
            EventKind.RETRY: self._on_retry,
            EventKind.MODEL: self._on_model,
            EventKind.TOOL_CALL: self._on_tool_call,
            EventKind.TOOL_RESULT: self._on_tool_result,
        }

    def begin_turn(self, record: DshTurnRecord, port: TurnPort) -> None:
        """From now on what is said belongs to this record."""
        self._record, self._port = record, port

    def end_turn(self) -> None:
        """The run has settled; what still comes is late."""
        self._record = self._port = None

    def counted(self) -> Counters:
        """What was counted so far."""
        return Counters(updates=self._updates, unknown_updates=self._unknown, late_updates=self._late)

    # -- what comes

    def on_status(self, params: Raw) -> None:
        """One `session.status`."""
        if params.get("sessionId") == self.session_id and params.get("status") == Status.IDLE:
            self.activity.idle()

    def on_event(self, params: Raw) -> None:
        """One `session.event`."""
        if params.get("sessionId") != self.session_id:
            return
        if self._record is None or self.activity.over:
            self._late += 1
            return
        self._updates += 1
        event = _object(params.get("event"))
        kind = event.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(_object(event.get("data")), self._record)
        else:
            self._unknown += 1
            self._emit(UnknownUpdate(event))

    def _on_inbox(self, data: Raw, record: DshTurnRecord) -> None:
        ids = (message.get("id") for message in _objects(data.get("inserted")))
        usable = (its_id for its_id in ids if isinstance(its_id, str) and len(its_id) <= MAX_ID_CHARACTERS)
        self.activity.inserted(usable)

    def _on_turn_end(self, data: Raw, record: DshTurnRecord) -> None:
        reason = _object(data.get("reason"))
        cause = _object(reason.get("reason"))
        self.activity.turn_ended(TurnEnd(word(reason.get("kind")), word(cause.get("kind"))))

    def _on_message(self, data: Raw, record: DshTurnRecord) -> None:
        message = data.get("message")
        owner = message if isinstance(message, dict) else data
        message_id = owner.get("id")
        usable_id = message_id if isinstance(message_id, str) else None
        text = ""
        for block in _objects(owner.get("content")):
            piece = _text(block)
            if block.get("type") == "text":
                text += piece
            elif block.get("type") == "reasoning" and piece and not self._told_live:
                self._emit(ThoughtChunk(piece, usable_id))
        record.add_message(text)
        if text and not self._told_live:
            self._emit(TextChunk(text, usable_id))
        self._told_live = False
        used = count(_object(data.get("usage")).get("totalTokens"))
        if used is not None:
            self._note_usage(record, Usage(used, record.usage.size_tokens))

    def _on_chunk(self, data: Raw, record: DshTurnRecord) -> None:
        self._told_live = True
        self._add_piece(_object(data.get("chunk")), record)

    def _on_attempt(self, data: Raw, record: DshTurnRecord) -> None:
        """A failed model call; what it had said is told here, unless it was told live."""
        if not self._told_live:
            for item in _objects(data.get("stream")):
                for chunk in _chunks(item):
                    self._add_piece(chunk, record)
        self._told_live = False

    def _on_retry(self, data: Raw, record: DshTurnRecord) -> None:
        record.give_up_message()

    def _on_model(self, data: Raw, record: DshTurnRecord) -> None:
        size = count(data.get("contextWindow"))
        if size is not None:
            self._note_usage(record, Usage(record.usage.used_tokens, size))

    def _on_tool_call(self, data: Raw, record: DshTurnRecord) -> None:
        begun = call_begun(data)
        if begun is not None:
            self._emit(ToolCallChanged(record.tool_calls.note(*begun).call))

    def _on_tool_result(self, data: Raw, record: DshTurnRecord) -> None:
        for call_id, mention in calls_ended(data):
            self._emit(ToolCallChanged(record.tool_calls.note(call_id, mention).call))

    # -- small things

    def _add_piece(self, chunk: Raw, record: DshTurnRecord) -> None:
        text = _text(chunk)
        if text and chunk.get("type") == "text-delta":
            record.add_piece(text)
            self._emit(TextChunk(text))
        elif text and chunk.get("type") == "reasoning-delta":
            self._emit(ThoughtChunk(text))

    def _note_usage(self, record: DshTurnRecord, usage: Usage) -> None:
        if usage != record.usage:
            record.usage = usage
            self._emit(UsageChanged(usage))

    def _emit(self, event: Event) -> None:
        if self._port is not None and self._port.feed.wanted:
            self._port.feed.put(event)


def _chunks(item: Raw) -> Iterator[Raw]:
    """The pieces in one item of the record of a model call; those of a kind are kept together there."""
    if item.get("type") == "chunk":
        yield _object(item.get("chunk"))
    texts = item.get("texts")
    if item.get("type") == "text-chunks" and isinstance(texts, list):
        for text in texts:
            yield {"type": "text-delta", "text": text}


def _text(block: Raw) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _object(value: object) -> Raw:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Raw]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
