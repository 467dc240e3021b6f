"""What happens while a run goes on: the event types, and the subscription that carries them.

Owns the types and the delivery. Events travel in batches, one batch per read of the child's output, never
one hand-over per event. A subscription that falls behind makes the reader wait (so the pipe fills and the
agent waits too), but only for a bounded time: then that subscription ends with `EventsLagged`, and nobody
else is harmed.

Event records are plain slotted dataclasses, not frozen ones (three times as dear to make, and text chunks
come by the million): treat them as read-only. Their `repr` leaves out what the agent said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import trio

from acp_subagent.seam.activity import PermissionRecord, PlanEntry, ToolCall, ToolKind, Usage
from acp_subagent.seam.content import ContentBlock


@dataclass(slots=True)
class TextChunk:
    """A piece of the agent's answer."""

    text: str = field(repr=False)
    message_id: str | None = field(default=None, repr=False)  #: the agent's id of the message, if it has one


@dataclass(slots=True)
class ThoughtChunk:
    """A piece of the agent's reasoning; no part of the answer."""

    text: str = field(repr=False)
    message_id: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class ContentChunk:
    """A piece of the answer (or of the reasoning, when `thought` is true) that is not text."""

    block: ContentBlock
    message_id: str | None = field(default=None, repr=False)
    thought: bool = False


@dataclass(slots=True)
class UserChunk:
    """The agent repeats what the user said; no part of the answer."""

    block: ContentBlock
    message_id: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class ToolCallChanged:
    """A tool call is new or has changed; `call` is the merged record."""

    call: ToolCall


@dataclass(slots=True)
class PlanChanged:
    """The agent's plan, whole."""

    entries: tuple[PlanEntry, ...]


@dataclass(slots=True)
class UsageChanged:
    """The agent reported its usage."""

    usage: Usage


@dataclass(slots=True)
class ModeChanged:
    """The session's mode changed."""

    mode_id: str = field(repr=False)


@dataclass(slots=True)
class OptionsChanged:
    """The session's configuration options, whole, as the agent sent them."""

    options: tuple[Mapping[str, object], ...] = field(repr=False)


@dataclass(slots=True)
class CommandsChanged:
    """The commands that the agent offers, whole, as it sent them."""

    commands: tuple[Mapping[str, object], ...] = field(repr=False)


@dataclass(slots=True)
class SessionInfoChanged:
    """Title or time of the session changed; only the members in `changes` did, None clears one."""

    changes: Mapping[str, object] = field(repr=False)


@dataclass(slots=True)
class PermissionRequested:
    """The agent asks whether it may go on with a tool call."""

    kind: ToolKind
    tool_call_id: str = field(repr=False)


@dataclass(slots=True)
class PermissionDecided:
    """A permission request was answered."""

    record: PermissionRecord


@dataclass(slots=True)
class StageChanged:
    """The run has come to another stage (a word of the provider)."""

    stage: str


@dataclass(slots=True)
class UnknownUpdate:
    """An update of a kind that this version does not know, as the agent sent it."""

    raw: Mapping[str, object] = field(repr=False)


@dataclass(slots=True)
class StderrLine:
    """A line that the child wrote to stderr; only for subscriptions made with `stderr=True`."""

    text: str = field(repr=False)


@dataclass(slots=True)
class Snapshot:
    """What a subscription that was made late has missed, folded together; its first event."""

    stage: str
    messages: tuple[tuple[ContentBlock, ...], ...] = field(repr=False)
    tool_calls: tuple[ToolCall, ...]
    plan: tuple[PlanEntry, ...]
    usage: Usage


@dataclass(slots=True)
class EventsLagged:
    """The subscription fell behind for too long; `count` events were not delivered. Its last event."""

    count: int


Event = (
    TextChunk
    | ThoughtChunk
    | ContentChunk
    | UserChunk
    | ToolCallChanged
    | PlanChanged
    | UsageChanged
    | ModeChanged
    | OptionsChanged
    | CommandsChanged
    | SessionInfoChanged
    | PermissionRequested
    | PermissionDecided
    | StageChanged
    | UnknownUpdate
    | StderrLine
    | Snapshot
    | EventsLagged
)


class Subscription:
    """One reader's view of a run's events: an async iterator, and a context manager that leaves early.

    It ends when the run has settled and everything before that was delivered; `await run.result()` then
    returns at once. Leaving it (`close`, the end of its block, or just dropping it) costs nothing.
    """

    def __init__(self, feed: EventFeed, *, stderr: bool) -> None:
        self._feed = feed
        self.stderr = stderr  #: whether it gets `StderrLine` events
        self._batches: deque[list[Event]] = deque()
        self._batch: list[Event] = []  # the batch being delivered
        self._next = 0  # index in it of the next event
        self._waiting = 0  # events in `_batches`
        self._closed = False
        self._arrived = trio.Event()

    @property
    def undelivered(self) -> int:
        """How many events wait for this reader."""
        return self._waiting + len(self._batch) - self._next

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._next < len(self._batch):
                event = self._batch[self._next]
                self._next += 1
                return event
            if self._batches:
                self._batch, self._next = self._batches.popleft(), 0
                self._waiting -= len(self._batch)
                self._feed.made_progress()
                continue
            if self._closed:
                raise StopAsyncIteration
            self._batch, self._next = [], 0
            await self._arrived.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave: nothing more is delivered, and the run no longer waits for this reader."""
        self._drop()
        self._feed.forget(self)

    def deliver(self, batch: list[Event]) -> None:
        """Take one batch; called by the feed."""
        if not self.stderr:
            batch = [event for event in batch if type(event) is not StderrLine]
        if batch:
            self._batches.append(batch)
            self._waiting += len(batch)
            self._wake()

    def end(self) -> None:
        """Nothing more will come; what is here can still be read. Called by the feed."""
        self._closed = True
        self._wake()

    def lag(self) -> None:
        """Give up on this reader: what it has not read becomes one `EventsLagged`. Called by the feed."""
        count = self.undelivered
        self._drop()
        self._batches.append([EventsLagged(count)])
        self._waiting = 1

    def _drop(self) -> None:
        self._batches.clear()
        self._batch, self._next, self._waiting = [], 0, 0
        self.end()

    def _wake(self) -> None:
        arrived, self._arrived = self._arrived, trio.Event()
        arrived.set()


class EventFeed:
    """Where the events of one run come in; hands them to the run's subscriptions.

    `snapshot` folds what has happened so far, for subscriptions that come late.
    """

    def __init__(self, *, buffer_events: int, stall_seconds: float, snapshot: Callable[[], Snapshot]) -> None:
        self._buffer_events = buffer_events
        self._stall_seconds = stall_seconds
        self._snapshot = snapshot
        self._subscriptions: list[Subscription] = []
        self._batch: list[Event] = []
        self._begun = False  # something was handed out (or would have been)
        self._closed = False
        self._lifted = False
        self._progress = trio.Event()

    @property
    def wanted(self) -> bool:
        """Whether it is worth making an event: somebody reads, or may still come in time to read it."""
        return bool(self._subscriptions) or not self._begun

    @property
    def wants_stderr(self) -> bool:
        """Whether a subscription asked for stderr lines."""
        return any(subscription.stderr for subscription in self._subscriptions)

    def subscribe(self, *, stderr: bool) -> Subscription:
        """A new subscription; late ones (after the first batch) first get one `Snapshot`."""
        subscription = Subscription(self, stderr=stderr)
        if self._begun or self._closed:
            subscription.deliver([self._snapshot()])
        if self._closed:
            subscription.end()
        else:
            self._subscriptions.append(subscription)
        return subscription

    def put(self, event: Event) -> None:
        """Add one event to the batch of this read; nothing is delivered before `flush`."""
        if not self._closed:
            self._batch.append(event)

    def flush(self) -> None:
        """Deliver what was put since the last time; once per read."""
        self._begun = True
        if self._batch:
            batch, self._batch = self._batch, []
            for subscription in self._subscriptions:
                subscription.deliver(batch)
            if self._lifted:
                self._drop_those_behind()

    @property
    def behind(self) -> bool:
        """Whether the reader has to wait for a subscription."""
        for subscription in self._subscriptions:
            if subscription.undelivered > self._buffer_events:
                return not self._lifted
        return False

    async def wait_for_room(self) -> None:
        """Wait until no subscription is behind.

        A subscription that takes no batch for `stall_seconds` ends with `EventsLagged`.
        """
        while self.behind:
            self._progress = trio.Event()
            with trio.move_on_after(self._stall_seconds) as stall:
                await self._progress.wait()
            if stall.cancelled_caught:
                self._drop_those_behind()

    def lift(self) -> None:
        """From now on nobody is waited for: subscriptions that are behind end with `EventsLagged`."""
        self._lifted = True
        self._drop_those_behind()
        self._progress.set()

    def close(self) -> None:
        """The run has settled: deliver the rest and end every subscription."""
        if not self._closed:
            self.flush()
            self._closed = True
            for subscription in self._subscriptions:
                subscription.end()
            self._subscriptions.clear()
            self._progress.set()

    def made_progress(self) -> None:
        """A subscription has taken a batch; called by it."""
        self._progress.set()

    def forget(self, subscription: Subscription) -> None:
        """A subscription was left; called by it."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        self._progress.set()

    def _drop_those_behind(self) -> None:
        for subscription in list(self._subscriptions):
            if subscription.undelivered > self._buffer_events:
                subscription.lag()
                self._subscriptions.remove(subscription)
