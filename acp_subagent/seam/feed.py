"""How events reach those who read them: the subscription, and the feed of one run.

Events travel in batches, one batch per read of the child's output, never one hand-over per event. A
subscription that falls behind makes the reader wait (so the pipe fills and the agent waits too), but only for
a bounded time: then that subscription ends with `EventsLagged`, and nobody else is harmed. A subscription
that was left, or that nobody holds any more, is never waited for.

The classes of events are imported where one is made: an agent is started without them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import ref

import trio

if TYPE_CHECKING:
    from acp_subagent.seam.events import Event, Snapshot

_log = logging.getLogger("acp_subagent.seam")

#: A subscription is behind also when what waits for it came in more bytes than this: events can be large.
BUFFER_BYTES = 16 * 1024 * 1024


class Subscription:
    """One reader's view of a run's events: an async iterator, and a context manager that leaves early.

    It ends when the run has settled and everything before that was delivered; `await run.result()` then
    returns at once. Leaving it (`close`, the end of its block, or just dropping it) costs nothing.
    Tasks may read one together: each event comes to one of them.
    """

    def __init__(self, feed: EventFeed, *, stderr: bool) -> None:
        self._feed = feed
        self.stderr = stderr  #: whether it gets `StderrLine` events
        self._batches: deque[tuple[list[Event], int]] = deque()  # with the bytes that they came in
        self._batch: list[Event] = []  # the batch being delivered
        self._batch_bytes = 0
        self._next = 0  # index in it of the next event
        self._waiting = 0  # events in `_batches`
        self._waiting_bytes = 0
        self._delivered = 0  # events of the batches before
        self._lost_lines = 0  # lines of stderr that passed it by since the last one
        self._closed = False
        self._arrived = trio.Event()
        self._stalled_at = -1  # what `_taken` was when the reader last looked
        self._stalled_since = 0.0

    def __repr__(self) -> str:
        return f"<Subscription {self.undelivered} undelivered>"

    @property
    def undelivered(self) -> int:
        """How many events wait for this reader."""
        return self._waiting + len(self._batch) - self._next

    def behind(self, buffer_events: int) -> bool:
        """Whether more waits for this reader than it may be behind."""
        return self.undelivered > buffer_events or self._waiting_bytes + self._batch_bytes > BUFFER_BYTES

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._next < len(self._batch):
                event = self._batch[self._next]
                self._next += 1
                return event
            self._leave_batch()
            if self._batches:
                await trio.lowlevel.checkpoint()
                self._take_batch()
            elif self._closed:
                raise StopAsyncIteration
            else:
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

    # -- the feed's side

    def deliver(self, batch: list[Event], size_bytes: int) -> None:
        """Take one batch that came in so many bytes."""
        self._batches.append((batch, size_bytes))
        self._waiting += len(batch)
        self._waiting_bytes += size_bytes
        self._wake()

    def deliver_stderr(self, lines: list[str], buffer_events: int) -> None:
        """Take lines of stderr, as long as this reader is not behind."""
        batch: list[Event] = []
        from acp_subagent.seam.events import StderrLine  # noqa: PLC0415  start-up time, see above

        room = 0 if self.behind(buffer_events) else buffer_events - self.undelivered
        for text in lines[:room]:
            batch.append(StderrLine(text, self._lost_lines))
            self._lost_lines = 0
        self._lost_lines += max(0, len(lines) - room)
        if batch:
            self.deliver(batch, sum(map(len, lines[:room])))

    def end(self) -> None:
        """Nothing more will come; what is here can still be read."""
        self._closed = True
        self._wake()

    def lag(self) -> None:
        """Give up on this reader: what it has not read becomes one `EventsLagged`."""
        from acp_subagent.seam.events import EventsLagged  # noqa: PLC0415  start-up time, see above

        count = self.undelivered
        _log.info("a subscription fell behind and was ended; %d events were not delivered", count)
        self._drop()
        self._batches.append(([EventsLagged(count)], 0))
        self._waiting = 1

    def stalls_at(self, stall_seconds: float) -> float:
        """When this reader counts as stalled, if it takes nothing more until then."""
        taken = self._delivered + self._next
        if taken != self._stalled_at:
            self._stalled_at, self._stalled_since = taken, trio.current_time()
        return self._stalled_since + stall_seconds

    def _take_batch(self) -> None:
        if self._next < len(self._batch):
            return  # another task that reads here has taken one in the meantime
        self._leave_batch()
        if self._batches:  # it may have been left in the meantime
            self._batch, self._batch_bytes = self._batches.popleft()
            self._next = 0
            self._waiting -= len(self._batch)
            self._waiting_bytes -= self._batch_bytes
            self._feed.made_progress()

    def _leave_batch(self) -> None:
        if self._batch:
            self._delivered += len(self._batch)
            self._batch, self._next, self._batch_bytes = [], 0, 0
            self._feed.made_progress()

    def _drop(self) -> None:
        self._batches.clear()
        self._batch, self._next, self._batch_bytes = [], 0, 0
        self._waiting = self._waiting_bytes = 0
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
        # Weak, so that a subscription that was just dropped is gone.
        self._subscriptions: list[ref[Subscription]] = []
        self._batch: list[Event] = []
        self._accounted_bytes: int | None = None  # of what the child has sent
        self._begun = False  # something was handed out (or would have been)
        #: Whether it is worth making an event: somebody reads, or may still come in time to read it. A plain
        #: attribute, since it is asked for every update.
        self.wanted = True
        self._closed = False
        self._lifted = False
        self._progress = trio.Event()

    @property
    def wants_stderr(self) -> bool:
        """Whether a subscription asked for stderr lines."""
        return any(subscription.stderr for subscription in self._live())

    def subscribe(self, *, stderr: bool) -> Subscription:
        """A new subscription; late ones (after the first batch) first get one `Snapshot`."""
        subscription = Subscription(self, stderr=stderr)
        if self._begun or self._closed:
            self.flush()  # what the snapshot tells must not be told again
            subscription.deliver([self._snapshot()], 0)
        if self._closed:
            subscription.end()
        else:
            self._keep([*self._subscriptions, ref(subscription, self._dropped)])
        return subscription

    def put(self, event: Event) -> None:
        """Add one event to the batch of this read; nothing is delivered before `flush`."""
        if not self._closed:
            self._batch.append(event)

    def put_stderr(self, lines: list[str]) -> None:
        """Deliver lines of stderr to those who asked for them."""
        self.flush()
        for subscription in self._live():
            if subscription.stderr:
                subscription.deliver_stderr(lines, self._buffer_events)

    def flush(self, received_bytes: int | None = None) -> None:
        """Deliver what was put since the last time; once per read.

        `received_bytes` is how much the child has sent so far; it tells how large the events are.
        """
        if not self._begun:
            self._begun = True
            self._keep(self._subscriptions)
        size_bytes = 0
        if received_bytes is not None and (self._batch or not self._subscriptions):
            if self._accounted_bytes is not None:
                size_bytes = received_bytes - self._accounted_bytes
            self._accounted_bytes = received_bytes
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        for subscription in self._live():
            subscription.deliver(batch, size_bytes)
        if self._lifted:
            self._drop_those_behind()

    @property
    def behind(self) -> bool:
        """Whether the reader has to wait for a subscription."""
        if self._lifted or not self._subscriptions:
            return False
        return any(subscription.behind(self._buffer_events) for subscription in self._live())

    async def wait_for_room(self) -> None:
        """Wait until no subscription is behind.

        A subscription that takes no event for `stall_seconds` meanwhile ends with `EventsLagged`.
        """
        while self.behind:
            stalled_at = self._first_stall()
            if stalled_at <= trio.current_time():
                self._drop_those_stalled()
                continue
            self._progress = trio.Event()
            with trio.move_on_at(stalled_at):
                await self._progress.wait()

    def lift(self) -> None:
        """From now on nobody is waited for: subscriptions that are behind end with `EventsLagged`."""
        self._lifted = True
        self._drop_those_behind()
        self._progress.set()

    def close(self) -> None:
        """The run has settled: deliver the rest and end every subscription."""
        if not self._closed:
            try:
                self.flush()
            finally:  # whatever becomes of the last batch, nobody waits for another
                self._closed = True
                for subscription in self._live():
                    subscription.end()
                self._keep([])
                self._progress.set()

    def made_progress(self) -> None:
        """A subscription has taken or finished a batch; called by it."""
        self._progress.set()

    def forget(self, subscription: Subscription) -> None:
        """A subscription was left; called by it."""
        self._keep([one for one in self._subscriptions if one() is not subscription])
        self._progress.set()

    def _dropped(self, gone: ref[Subscription]) -> None:
        """Nobody holds a subscription any more."""
        self._keep([one for one in self._subscriptions if one is not gone])
        self._progress.set()

    def _keep(self, subscriptions: list[ref[Subscription]]) -> None:
        self._subscriptions = subscriptions
        self.wanted = bool(subscriptions) or not self._begun

    def _live(self) -> Iterator[Subscription]:
        for one in self._subscriptions:
            subscription = one()
            if subscription is not None:
                yield subscription

    # The two below keep no subscription alive while somebody waits: they return before that.

    def _first_stall(self) -> float:
        behind = (one for one in self._live() if one.behind(self._buffer_events))
        return min(one.stalls_at(self._stall_seconds) for one in behind)

    def _drop_those_stalled(self) -> None:
        now = trio.current_time()
        for subscription in list(self._live()):
            if (
                subscription.behind(self._buffer_events)
                and subscription.stalls_at(self._stall_seconds) <= now
            ):
                subscription.lag()
                self.forget(subscription)

    def _drop_those_behind(self) -> None:
        for subscription in list(self._live()):
            if subscription.behind(self._buffer_events):
                subscription.lag()
                self.forget(subscription)
