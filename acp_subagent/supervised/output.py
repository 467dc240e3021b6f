"""What the agent said in one turn: chunks folded into messages, within a bound.

Owns which chunks make up one message, which message is the output, and which text goes when there is too much
of it. Pure: fed one chunk at a time, in wire order, and read at any moment. Chunks that do not belong to the
turn (start-up banners, replayed history, thoughts) are kept away by the caller.

One message id is one message, whatever comes in between; messages are in the order in which their first
content came. Once a chunk of the turn has an id, every chunk without one is a message of its own: agents send
warnings so. While none has an id, all is one message.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import cast

from acp_subagent.seam.content import ContentBlock, TextBlock, block_to_json

#: Parts of a message that are kept apart before they are joined to one string. A list of all the parts of a
#: million small chunks would cost four times their text.
JOIN_PARTS = 256

#: Parts of this many characters on average stay as they are: joining them would copy much to save little.
LARGE_PART_CHARACTERS = 1024

#: While the turn runs, at most this much (or an eighth of the limit, if that is more) is held above the
#: limit, so that the oldest text is cut once in a while and not at every chunk. What is read is always exact.
MIN_SLACK_BYTES = 64 * 1024

#: Messages kept of one turn; the oldest goes. Thousands of model calls in one turn are no task but a loop.
MAX_MESSAGES = 4096

#: a longer message id is taken for none
MAX_ID_CHARACTERS = 1024

#: added to the size of everything but text, for what such an object costs beside its strings
OBJECT_BYTES = 64

_Part = str | ContentBlock

#: the id that no chunk has
_NOBODY = object()


class TurnOutput:
    """The messages of one turn, at most `max_output_bytes` (UTF-8) of them; the oldest content goes first."""

    __slots__ = (
        "_ceiling",
        "_current",
        "_current_id",
        "_dropped",
        "_finished",
        "_has_ids",
        "_held",
        "_limit",
        "_messages",
        "_unnamed",
    )

    def __init__(self, max_output_bytes: int) -> None:
        self._limit = max_output_bytes
        self._ceiling = max_output_bytes + max(MIN_SLACK_BYTES, max_output_bytes // 8)
        self._held = 0
        self._dropped = 0
        self._has_ids = False
        self._finished = False
        self._unnamed = 0  #: how many messages without an id there were, once some have one
        #: by the agent's id; a message without one has a number of ours, 0 while no chunk has an id
        self._messages: OrderedDict[str | int, _Message] = OrderedDict()
        self._current = _Message()
        self._current_id: object = _NOBODY

    def __repr__(self) -> str:
        return f"<TurnOutput {len(self._messages)} messages, {self._held} bytes>"

    def add_text(self, message_id: str | None, text: str) -> None:
        """Append the text of one chunk. Called once for each update of the agent: keep it short."""
        if not text:
            # It adds nothing, and still tells that this agent names its messages.
            self._usable_id(message_id)
            return
        if message_id != self._current_id:
            self._select(message_id)
        parts = self._current.parts
        parts.append(text)
        self._held += len(text) if text.isascii() else utf8_bytes(text)
        if len(parts) >= JOIN_PARTS:
            self._current.settle()
        if self._held > self._ceiling:
            self._trim()

    def add_block(self, message_id: str | None, block: ContentBlock) -> None:
        """Append a content block that is not text (one that is, is appended as text)."""
        if isinstance(block, TextBlock):
            self.add_text(message_id, block.text)
            return
        if message_id != self._current_id:
            self._select(message_id)
        message = self._current
        message.parts.append(block)
        message.has_blocks = True
        self._held += _part_bytes(block)
        if len(message.parts) >= JOIN_PARTS:
            message.settle()
        if self._held > self._ceiling:
            self._trim()

    def messages(self) -> tuple[tuple[ContentBlock, ...], ...]:
        """Every message that has content, in order; adjacent text is one block."""
        self._trim()
        return tuple(map(self._content, self._messages.values()))

    def output(self) -> tuple[ContentBlock, ...]:
        """The content of the last message that has any; one without id counts only when none has an id."""
        self._trim()
        for key in reversed(self._messages):
            if isinstance(key, str):
                return self._content(self._messages[key])
        return self._content(next(reversed(self._messages.values()))) if self._messages else ()

    def finish(self) -> None:
        """Nothing more will be added: what is read from now on is joined for good, once."""
        self._finished = True

    @property
    def dropped_bytes(self) -> int:
        """How much has gone because there was too much of it."""
        self._trim()
        return self._dropped

    @property
    def message_ids(self) -> frozenset[str]:
        """The agent's ids of the messages that are held."""
        return frozenset(key for key in self._messages if isinstance(key, str))

    def _content(self, message: _Message) -> tuple[ContentBlock, ...]:
        # An id may still come and make the chunks so far messages of their own: reading must not join them.
        return message.content(keep_apart=not (self._has_ids or self._finished))

    def _select(self, message_id: str | None) -> None:
        """Make the message that a chunk with this id belongs to the current one."""
        message_id = self._usable_id(message_id)
        if message_id is not None:
            self._current = self._messages.get(message_id) or self._begin(message_id)
            self._current_id = message_id
        elif self._has_ids:
            self._current = self._begin_unnamed()
            self._current_id = _NOBODY  # the next one without an id is another message
        else:
            self._current = self._messages.get(0) or self._begin(0)
            self._current_id = None

    def _usable_id(self, message_id: str | None) -> str | None:
        """The id if it can be used; the first one of a turn splits what came without."""
        if message_id is None or len(message_id) > MAX_ID_CHARACTERS:
            return None
        if not self._has_ids:
            self._has_ids = True
            self._current_id = _NOBODY
            unnamed = self._messages.pop(0, None)
            for parts in unnamed.split() if unnamed else ():
                self._begin_unnamed().settled = deque(parts)
        return message_id

    def _begin_unnamed(self) -> _Message:
        self._unnamed += 1
        return self._begin(self._unnamed)

    def _begin(self, key: str | int) -> _Message:
        message = self._messages[key] = _Message()
        if len(self._messages) > MAX_MESSAGES:
            _, oldest = self._messages.popitem(last=False)
            self._count_dropped(oldest.drop(self._held))
        return message

    def _trim(self) -> None:
        """Drop the oldest content until what is held is within the limit."""
        while self._held > self._limit:
            key, oldest = next(iter(self._messages.items()))
            self._count_dropped(oldest.drop(self._held - self._limit))
            if not oldest.has_content:
                del self._messages[key]
                if oldest is self._current:
                    self._current_id = _NOBODY

    def _count_dropped(self, size_bytes: int) -> None:
        self._held -= size_bytes
        self._dropped += size_bytes


class _Message:
    """One message: settled parts, then the latest ones as they came."""

    __slots__ = ("_read", "has_blocks", "parts", "settled")

    def __init__(self) -> None:
        # A deque needs 600 bytes even when it is empty, and most messages are short.
        self.settled: deque[_Part] | tuple[()] = ()
        self.parts: list[_Part] = []  #: fewer than JOIN_PARTS
        self.has_blocks = False  #: some of `parts` are not text
        self._read: tuple[int, tuple[ContentBlock, ...]] | None = None  # how many parts were read, as what

    @property
    def has_content(self) -> bool:
        """Whether anything is held of it."""
        return bool(self.settled or self.parts)

    def settle(self) -> None:
        """Join the latest parts, where that is worth it."""
        settled = self.settled if isinstance(self.settled, deque) else deque()
        if self.has_blocks:
            settled.extend(_joined(self.parts))
        else:
            texts = cast("list[str]", self.parts)
            if sum(map(len, texts)) < LARGE_PART_CHARACTERS * len(texts):
                settled.append("".join(texts))
            else:
                settled.extend(texts)
        self.settled = settled
        self.parts.clear()
        self.has_blocks = False
        self._read = None

    def split(self) -> list[list[_Part]]:
        """Its parts as messages of their own; those that have been joined already stay together."""
        joined = [list(self.settled)] if self.settled else []
        return joined + [[part] for part in self.parts]

    def content(self, *, keep_apart: bool) -> tuple[ContentBlock, ...]:
        """Its blocks. They are joined for good, so that they need their memory once, however often read.

        `keep_apart` leaves the parts as they are, unless they are so many that some have been joined already.
        """
        if keep_apart and not self.settled:
            if self._read is None or self._read[0] != len(self.parts):
                self._read = len(self.parts), _blocks(_joined(self.parts))
            return self._read[1]
        self.settle()
        self.settled = deque(_joined(self.settled))
        return _blocks(self.settled)

    def drop(self, size_bytes: int) -> int:
        """Drop at least this much from the front, or everything; return how much it was."""
        self._read = None
        dropped = 0
        while dropped < size_bytes and self.has_content:
            oldest = self.settled or self.parts
            part = oldest[0]
            del oldest[0]
            size = _part_bytes(part)
            if isinstance(part, str) and dropped + size > size_bytes:
                rest = _without_front(part, size_bytes - dropped)
                size -= utf8_bytes(rest)
                if rest:
                    oldest.insert(0, rest)
            dropped += size
        return dropped


def utf8_bytes(text: str) -> int:
    """How many bytes `text` has in UTF-8; a lone surrogate counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def json_bytes(value: object) -> int:
    """About how much memory a value from JSON needs: its strings, and a little for each object in it."""
    total = 0
    waiting = [value]
    while waiting:  # no recursion: the agent chooses the depth
        item = waiting.pop()
        total += OBJECT_BYTES
        if isinstance(item, str):
            total += utf8_bytes(item)
        elif isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
    return total


def _part_bytes(part: _Part) -> int:
    return utf8_bytes(part) if isinstance(part, str) else json_bytes(block_to_json(part))


def _joined(parts: Iterable[_Part]) -> Iterator[_Part]:
    """The parts with adjacent text joined."""
    for kind, run in groupby(parts, key=type):
        if kind is str:
            yield "".join(cast("Iterable[str]", run))
        else:
            yield from run


def _blocks(parts: Iterable[_Part]) -> tuple[ContentBlock, ...]:
    return tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)


def _without_front(text: str, size_bytes: int) -> str:
    """`text` without its first `size_bytes` bytes, and without the rest of a character cut by that."""
    if text.isascii():
        return text[size_bytes:]
    data = text.encode("utf-8", "surrogatepass")
    start = size_bytes
    while start < len(data) and data[start] & 0xC0 == 0x80:  # inside a character
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")
