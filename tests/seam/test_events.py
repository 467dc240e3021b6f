"""The delivery of events: early, late, slow, stopped and dropped subscriptions, on a virtual clock."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from acp_subagent.seam.activity import Usage
from acp_subagent.seam.events import Event, EventsLagged, Snapshot, StderrLine, TextChunk
from acp_subagent.seam.feed import BUFFER_BYTES, EventFeed, Subscription

SNAPSHOT = Snapshot("prompt", (), (), (), Usage())


def a_feed(*, buffer_events: int = 10, stall_seconds: float = 30.0) -> EventFeed:
    return EventFeed(buffer_events=buffer_events, stall_seconds=stall_seconds, snapshot=lambda: SNAPSHOT)


def say(feed: EventFeed, *texts: str) -> None:
    for text in texts:
        feed.put(TextChunk(text))
    feed.flush()


async def rest_of(subscription: Subscription) -> list[Event]:
    return [event async for event in subscription]


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextChunk)]


async def seconds_of(wait: Callable[[], Awaitable[object]]) -> float:
    began = trio.current_time()
    await wait()
    return trio.current_time() - began


async def test_an_early_subscription_gets_everything_and_no_snapshot() -> None:
    feed = a_feed()
    early = feed.subscribe(stderr=False)
    say(feed, "a", "b")
    say(feed, "c")
    feed.close()
    assert texts(await rest_of(early)) == ["a", "b", "c"]


async def test_a_late_subscription_gets_one_snapshot_and_nothing_twice() -> None:
    feed = a_feed()
    early = feed.subscribe(stderr=False)
    say(feed, "a")
    feed.put(TextChunk("b"))  # in the snapshot already, and not handed out yet
    late = feed.subscribe(stderr=False)
    say(feed, "c")
    feed.close()
    after = feed.subscribe(stderr=False)
    assert texts(await rest_of(early)) == ["a", "b", "c"]
    first, *others = await rest_of(late)
    assert first is SNAPSHOT
    assert texts(others) == ["c"]
    assert await rest_of(after) == [SNAPSHOT]


@pytest.mark.parametrize("when", ["before", "while they wait"])
async def test_tasks_that_share_a_subscription_lose_nothing_and_get_nothing_twice(when: str) -> None:
    feed, got = a_feed(buffer_events=1000), list[Event]()
    shared = feed.subscribe(stderr=False)
    expected = [str(number) for number in range(60)]

    def say_all() -> None:
        for first in range(0, 60, 3):
            say(feed, *expected[first : first + 3])
        feed.close()

    async def read() -> None:
        async for event in shared:
            got.append(event)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(read)
        if when == "while they wait":
            await wait_all_tasks_blocked()
        say_all()
    assert sorted(texts(got), key=int) == expected


async def test_events_are_wanted_only_while_somebody_may_read_them() -> None:
    feed = a_feed()
    assert feed.wanted
    feed.flush()
    assert not feed.wanted
    subscription = feed.subscribe(stderr=False)
    assert feed.wanted
    subscription.close()
    assert not feed.wanted


async def test_the_reader_waits_for_a_slow_subscription_until_it_has_caught_up(
    autojump_clock: MockClock,
) -> None:
    feed = a_feed(buffer_events=2)
    slow = feed.subscribe(stderr=False)
    say(feed, "a", "b", "c", "d", "e")
    got: list[Event] = []

    async def read_slowly() -> None:
        async for event in slow:
            await trio.sleep(20)
            got.append(event)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_slowly)
        assert feed.behind
        # One batch that is larger than the buffer: nothing is taken, events are. That is progress.
        assert await seconds_of(feed.wait_for_room) == 60
        say(feed, "f")
        feed.close()
    assert texts(got) == ["a", "b", "c", "d", "e", "f"]


async def test_a_subscription_that_stalls_ends_with_what_it_missed(autojump_clock: MockClock) -> None:
    feed = a_feed(buffer_events=2)
    stalled, other = feed.subscribe(stderr=False), feed.subscribe(stderr=False)
    say(feed, "a", "b", "c")
    assert isinstance(await anext(stalled), TextChunk)
    assert texts([await anext(other) for _ in range(3)]) == ["a", "b", "c"]
    say(feed, "d", "e")
    assert await seconds_of(feed.wait_for_room) == 30
    assert await rest_of(stalled) == [EventsLagged(4)]
    say(feed, "f")
    feed.close()
    assert texts(await rest_of(other)) == ["d", "e", "f"]


async def test_a_busy_subscription_does_not_hide_a_stalled_one(autojump_clock: MockClock) -> None:
    feed = a_feed(buffer_events=1)
    stalled, busy = feed.subscribe(stderr=False), feed.subscribe(stderr=False)
    for number in range(20):
        say(feed, str(number))

    async def read() -> None:
        async for _ in busy:
            await trio.sleep(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        with trio.move_on_after(31):
            await feed.wait_for_room()
        assert await rest_of(stalled) == [EventsLagged(20)]
        await feed.wait_for_room()  # the busy one is waited for as long as it takes something
        assert busy.undelivered <= 1
        feed.close()


@pytest.mark.parametrize("leave", ["close", "block", "drop"])
async def test_leaving_frees_the_reader_at_once(leave: str, autojump_clock: MockClock) -> None:
    feed = a_feed(buffer_events=1)
    subscriptions = [feed.subscribe(stderr=False)]
    say(feed, "a", "b", "c")

    async def leaves() -> None:
        await trio.sleep(5)
        if leave == "close":
            subscriptions[0].close()
        elif leave == "block":
            async with subscriptions[0] as subscription:
                await anext(subscription)
        else:
            subscriptions.clear()
            gc.collect()  # for interpreters that do not count references

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leaves)
        assert await seconds_of(feed.wait_for_room) == 5
    assert not feed.wanted


async def test_a_loop_that_is_broken_off_leaves() -> None:
    feed = a_feed()
    say(feed, "a")

    async def read_one() -> None:
        async for _ in feed.subscribe(stderr=False):
            break

    await read_one()
    gc.collect()
    assert not feed.wanted


async def test_lifting_ends_those_behind_at_once_and_nobody_is_waited_for_again(
    autojump_clock: MockClock,
) -> None:
    feed = a_feed(buffer_events=2)
    slow, quick = feed.subscribe(stderr=False), feed.subscribe(stderr=False)
    say(feed, "a", "b", "c")
    assert texts([await anext(quick) for _ in range(3)]) == ["a", "b", "c"]

    async def lift() -> None:
        await trio.sleep(7)
        feed.lift()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lift)
        assert await seconds_of(feed.wait_for_room) == 7
    assert await rest_of(slow) == [EventsLagged(3)]
    say(feed, "d")
    assert not feed.behind
    assert texts([await anext(quick)]) == ["d"]
    say(feed, "e", "f", "g")
    assert not feed.behind
    assert await rest_of(quick) == [EventsLagged(3)]


async def test_a_few_large_events_make_a_subscription_fall_behind_too() -> None:
    feed = a_feed()
    feed.flush(0)
    subscription = feed.subscribe(stderr=False)
    feed.put(TextChunk("small"))
    feed.flush(1000)
    assert not feed.behind
    feed.put(TextChunk("large"))
    feed.flush(1000 + BUFFER_BYTES)
    assert feed.behind
    assert isinstance(await anext(subscription), Snapshot)
    assert texts([await anext(subscription) for _ in range(2)]) == ["small", "large"]
    feed.put(TextChunk("small"))
    feed.flush(1010 + BUFFER_BYTES)
    with trio.move_on_after(0):
        for _ in range(2):
            await anext(subscription)
    assert not feed.behind


async def test_stderr_comes_only_to_those_who_asked_and_never_piles_up() -> None:
    feed = a_feed(buffer_events=3)
    plain, asked = feed.subscribe(stderr=False), feed.subscribe(stderr=True)
    assert feed.wants_stderr
    feed.put_stderr(["1", "2"])
    feed.put_stderr(["3", "4"])
    feed.put_stderr(["5"] * 1000)
    got = [await anext(asked) for _ in range(3)]
    assert got == [StderrLine("1"), StderrLine("2"), StderrLine("3")]
    feed.put_stderr(["6"])
    feed.close()
    assert await rest_of(asked) == [StderrLine("6", lost=1001)]
    assert await rest_of(plain) == []


async def test_nothing_comes_after_the_end() -> None:
    feed = a_feed()
    subscription = feed.subscribe(stderr=True)
    feed.close()
    feed.close()
    say(feed, "late")
    feed.put_stderr(["late"])
    feed.lift()
    assert await rest_of(subscription) == []
    assert await rest_of(subscription) == []
    assert not feed.wants_stderr


async def test_a_cancelled_reader_loses_nothing() -> None:
    feed = a_feed()
    subscription = feed.subscribe(stderr=False)
    say(feed, "a", "b")
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(subscription)
    assert scope.cancelled_caught
    feed.close()
    assert texts(await rest_of(subscription)) == ["a", "b"]


async def test_no_event_shows_what_the_agent_said() -> None:
    for event in (TextChunk("SECRET", "SECRET"), StderrLine("SECRET")):
        assert "SECRET" not in repr(event)
