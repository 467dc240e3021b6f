"""How a conversation ends: once, after what was read was handled, and everybody is told."""

from __future__ import annotations

import trio
import trio.testing

from acp_subagent.wire.connection import Connection, Ending, WireLimits
from acp_subagent.wire.jsonrpc import Answer, NoAnswer, Result
from tests.wire.lines import REQUEST, UPDATE, Gate, line
from tests.wire.recording import Recording


async def test_at_eof_the_last_frame_needs_no_newline_and_is_handled_before_the_end_is_told() -> None:
    async with line() as wire:
        at_the_end: list[int] = []

        async def watch() -> None:
            await wire.connection.ended.wait()
            at_the_end.append(len(wire.recording.heard))

        wire.nursery.start_soon(watch)
        await wire.says(UPDATE % 1 + (UPDATE % 2).rstrip())
        assert wire.numbers() == [1]
        await wire.far.send_eof()
        await wire.connection.ended.wait()
        assert wire.connection.ending is Ending.EOF
        assert wire.numbers() == [1, 2]
        await trio.testing.wait_all_tasks_blocked()
        assert at_the_end == [2]


async def test_the_end_wakes_every_waiter_and_later_requests_do_not_wait() -> None:
    async with line() as wire:
        answers: list[Answer] = []

        async def ask() -> None:
            answers.append(await wire.connection.request("ask", {}))

        wire.nursery.start_soon(ask)
        wire.nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await wire.far.send_eof()
        await wire.connection.ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert await wire.connection.request("ask", {}) == NoAnswer()
        assert answers == [NoAnswer(), NoAnswer()]


async def test_a_last_frame_with_an_answer_reaches_its_request_before_the_end() -> None:
    async with line() as wire:
        wire.connection.send_request("ask", {}, wire.recording.on_answer(0))
        await wire.says(b'{"jsonrpc":"2.0","id":0,"result":1}')
        await wire.far.send_eof()
        await wire.connection.ended.wait()
        assert wire.recording.heard == [("answer", 0, Result(1))]


async def test_a_stream_closed_under_the_reader_is_an_ending_and_no_exception() -> None:
    near, far = trio.testing.memory_stream_pair()
    recording = Recording()
    connection = Connection(near.receive_stream, near.send_stream, recording, WireLimits())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.read)
        await trio.testing.wait_all_tasks_blocked()
        near.receive_stream.close()
    assert connection.ending is Ending.READ_BROKEN
    assert connection.error is None
    await far.aclose()


async def test_a_frame_over_the_limit_ends_it_after_the_frames_before() -> None:
    async with line(WireLimits(max_frame_bytes=60)) as wire:
        await wire.says(UPDATE % 1 + b"x" * 61 + b"\n" + UPDATE % 2)
        assert wire.connection.ending is Ending.FRAME_TOO_LARGE
        assert wire.numbers() == [1]


async def test_noise_over_the_limit_before_the_first_frame_ends_it() -> None:
    async with line(WireLimits(max_noise_lines=2)) as wire:
        await wire.says(b"one\ntwo\n")
        assert wire.connection.ending is None
        await wire.says(b"three\n" + UPDATE % 1)
        assert wire.connection.ending is Ending.NEVER_SPOKE
        assert not wire.connection.spoken
        assert list(wire.connection.noise_samples) == [b"one", b"two", b"three"]


async def test_after_a_fatal_ending_what_comes_is_discarded_and_eof_ends_the_reader() -> None:
    async with line(WireLimits(max_frame_bytes=60)) as wire:
        await wire.says(b"x" * 61)
        await wire.says(b"\n" + UPDATE % 1)
        await wire.far.send_eof()
        await trio.testing.wait_all_tasks_blocked()
        assert wire.connection.ending is Ending.FRAME_TOO_LARGE
        assert wire.recording.heard == []


async def test_a_callback_that_raises_ends_it_and_the_exception_is_kept() -> None:
    async with line() as wire:
        error = LookupError()

        def fail() -> None:
            raise error

        wire.connection.send_request("ask", {}, wire.recording.on_answer(0))
        wire.recording.then = fail
        await wire.says(UPDATE % 1 + UPDATE % 2)
        assert wire.connection.ending is Ending.UNEXPECTED
        assert wire.connection.error is error
        assert wire.numbers() == [1]
        assert wire.recording.heard[-1] == ("answer", 0, NoAnswer())


async def test_a_waiter_that_raises_at_the_end_does_not_keep_the_others_waiting() -> None:
    async with line() as wire:
        error = LookupError()

        def fail(_: Answer) -> None:
            raise error

        wire.connection.send_request("ask", {}, fail)
        wire.connection.send_request("ask", {}, wire.recording.on_answer(1))
        await wire.far.send_eof()
        await wire.connection.ended.wait()
        assert wire.recording.heard == [("answer", 1, NoAnswer())]
        assert (wire.connection.ending, wire.connection.error) == (Ending.EOF, error)


async def test_back_pressure_that_raises_is_an_ending_and_no_exception() -> None:
    class Broken(Gate):
        async def wait(self) -> None:
            raise LookupError

    async with line(before_read=Broken()) as wire:
        await wire.connection.ended.wait()
        assert wire.connection.ending is Ending.UNEXPECTED
        assert isinstance(wire.connection.error, LookupError)


async def test_stop_ends_a_reader_that_waits_for_back_pressure() -> None:
    async with line(before_read=Gate()) as wire:
        await trio.testing.wait_all_tasks_blocked()
        wire.connection.stop()
        assert wire.connection.ending is Ending.STOPPED
        assert wire.connection.ended.is_set()


async def test_being_write_blocked_ends_a_reader_that_waits_for_back_pressure_and_discards() -> None:
    near, far = trio.testing.lockstep_stream_pair()
    recording = Recording()
    limits = WireLimits(max_unsent_bytes=0)
    connection = Connection(near.receive_stream, near.send_stream, recording, limits, before_read=Gate())
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.read)
            nursery.start_soon(connection.write)
            await trio.testing.wait_all_tasks_blocked()
            connection.notify("one", {})
            assert connection.ending is None
            connection.notify("two", {})
            assert connection.ending is Ending.WRITE_BLOCKED
            # Sending over a lockstep stream returns when it was read.
            await far.send_all(UPDATE % 1)
            await far.send_all(UPDATE % 2)
            connection.stop()
    assert recording.heard == []
    assert connection.unsent_bytes == 0


async def test_being_write_blocked_in_a_callback_is_told_after_the_frames_of_the_read() -> None:
    near, far = trio.testing.memory_stream_pair()
    recording = Recording()
    connection = Connection(near.receive_stream, near.send_stream, recording, WireLimits(max_unsent_bytes=0))
    still_open: list[bool] = []

    def answer() -> None:
        connection.respond(0, None)
        still_open.append(connection.ending is None)

    recording.then = answer
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.read)  # and no writer
            await far.send_all(REQUEST % 1 + REQUEST % 2 + REQUEST % 3)
            await connection.ended.wait()
            connection.stop()
    assert still_open == [True, True, True]
    assert connection.ending is Ending.WRITE_BLOCKED


async def test_the_first_ending_stays() -> None:
    async with line() as wire:
        await wire.far.send_eof()
        await wire.connection.ended.wait()
        wire.connection.stop()
        wire.connection.stop()
        assert wire.connection.ending is Ending.EOF


async def test_closing_the_writer_at_once_after_sending_drops_the_frame_silently() -> None:
    async with line() as wire:
        await trio.testing.wait_all_tasks_blocked()
        wire.connection.notify("m", {})
        wire.connection.close_writer()
        await trio.testing.wait_all_tasks_blocked()
        assert wire.connection.unsent_bytes == 0


async def test_a_far_end_that_reads_no_more_breaks_the_writer_and_not_the_reader() -> None:
    async with line() as wire:
        wire.far.receive_stream.close()
        wire.connection.notify("m", {})
        await wire.connection.write_broken.wait()
        wire.connection.notify("m", {})
        assert wire.connection.unsent_bytes == 0
        await wire.says(UPDATE % 1)
        assert wire.numbers() == [1]
        assert wire.connection.ending is None


async def test_the_end_is_told_once_after_everybody_who_waits_for_an_answer() -> None:
    near, far = trio.testing.memory_stream_pair()
    recording, heard_before = Recording(), []
    connection = Connection(
        near.receive_stream,
        near.send_stream,
        recording,
        WireLimits(),
        on_end=lambda: heard_before.append(len(recording.heard)),
    )
    connection.send_request("ask", {}, recording.on_answer(0))
    await far.send_stream.aclose()
    with trio.fail_after(10):
        await connection.read()
    connection.stop()
    assert heard_before == [1]


async def test_closing_the_send_stream_ends_the_writer_silently() -> None:
    near, _far = trio.testing.lockstep_stream_pair()
    connection = Connection(near.receive_stream, near.send_stream, Recording(), WireLimits())
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.write)
            connection.notify("m", {})
            await trio.testing.wait_all_tasks_blocked()
            await near.send_stream.aclose()
    assert not connection.write_broken.is_set()
