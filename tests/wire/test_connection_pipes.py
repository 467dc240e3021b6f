"""The pump over real pipes: writing without waiting, broken pipes, and the exit of the leader. Real time."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trio
import trio.testing

from acp_subagent.wire.connection import MEBIBYTE, STOP_READ_BYTES, Connection, Ending, WireLimits
from acp_subagent.wire.jsonrpc import Result
from acp_subagent.wire.outflow import Outflow
from tests.wire.lines import Gate
from tests.wire.recording import Recording

UPDATE = b'{"jsonrpc":"2.0","method":"update","params":{"n":%d}}\n'
TEN_SECONDS = 10


@dataclass
class Pipes:
    """A connection over two pipes, and the far ends of them."""

    connection: Connection
    recording: Recording
    near_in: trio.lowlevel.FdStream
    near_out: trio.lowlevel.FdStream
    far_in: trio.lowlevel.FdStream
    far_out: trio.lowlevel.FdStream

    async def read_by_far(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = await self.far_in.receive_some(size - len(data))
            assert piece
            data += piece
        return bytes(data)


@asynccontextmanager
async def pipes(limits: WireLimits = WireLimits(), gate: Gate | None = None) -> AsyncIterator[Pipes]:  # noqa: B008
    near_in, far_out = map(trio.lowlevel.FdStream, os.pipe())
    far_in, near_out = map(trio.lowlevel.FdStream, os.pipe())
    recording = Recording()
    connection = Connection(near_in, near_out, recording, limits, before_read=gate)
    try:
        with trio.fail_after(TEN_SECONDS):
            yield Pipes(connection, recording, near_in, near_out, far_in, far_out)
    finally:
        for stream in (near_in, near_out, far_in, far_out):
            stream.close()


async def test_a_frame_is_in_the_pipe_when_send_returns() -> None:
    async with pipes() as wire:
        wire.connection.notify("m", {})
        assert json.loads(os.read(wire.far_in.fileno(), 1000)) == {
            "jsonrpc": "2.0",
            "method": "m",
            "params": {},
        }
        assert wire.connection.unsent_bytes == 0


async def test_frames_larger_than_the_pipe_arrive_whole_and_in_order() -> None:
    async with pipes() as wire:
        expected = b"".join(
            json.dumps(
                {"jsonrpc": "2.0", "method": "m", "params": {"n": number, "text": "x" * size}},
                separators=(",", ":"),
            ).encode()
            + b"\n"
            for number, size in enumerate((10, 300_000, 20, 100_000, 0))
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wire.connection.write)
            for number, size in enumerate((10, 300_000, 20, 100_000, 0)):
                wire.connection.notify("m", {"n": number, "text": "x" * size})
            assert wire.connection.unsent_bytes > 300_000
            assert await wire.read_by_far(len(expected)) == expected
            await trio.testing.wait_all_tasks_blocked()
            assert wire.connection.unsent_bytes == 0
            wire.connection.notify("at once again", {})
            assert b"at once again" in os.read(wire.far_in.fileno(), 1000)
            wire.connection.close_writer()


async def test_both_sides_may_send_more_than_a_pipe_holds_at_the_same_time() -> None:
    async with pipes() as wire:
        wire.recording.then = lambda: wire.connection.notify("echo", {"text": "y" * 10_000})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wire.connection.write)
            nursery.start_soon(wire.connection.read)
            await wire.far_out.send_all(b"".join(UPDATE % number for number in range(2000)))
            wire.far_out.close()
            await wire.connection.ended.wait()
            assert len(wire.recording.heard) == 2000
            wire.connection.close_writer()


async def test_more_unsent_bytes_than_the_limit_and_one_frame_end_it() -> None:
    async with pipes(WireLimits(max_unsent_bytes=100_000)) as wire:
        wire.connection.notify("a frame of any size", {"text": "x" * 500_000})
        assert wire.connection.unsent_bytes > 400_000
        assert wire.connection.ending is None
        wire.connection.notify("one more", {})
        assert wire.connection.ending is Ending.WRITE_BLOCKED
        assert wire.connection.unsent_bytes == 0


async def test_after_being_write_blocked_the_far_end_can_still_write() -> None:
    async with pipes(WireLimits(max_unsent_bytes=0)) as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.write)
        nursery.start_soon(wire.connection.read)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            wire.connection.notify("m", {"text": "x" * 200_000})
        assert wire.connection.ending is Ending.WRITE_BLOCKED
        await wire.far_out.send_all(UPDATE % 1 * 20_000)
        wire.far_out.close()
        assert wire.recording.heard == []


async def test_an_answer_already_in_the_pipe_is_read_after_the_far_end_stopped_reading() -> None:
    async with pipes() as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.write)
        wire.connection.send_request("ask", {}, wire.recording.on_answer(0))
        await wire.far_out.send_all(b'{"jsonrpc":"2.0","id":0,"result":1}\n')
        wire.far_in.close()
        wire.connection.notify("m", {})
        assert wire.connection.write_broken.is_set()
        assert wire.connection.ending is None
        nursery.start_soon(wire.connection.read)
        await trio.testing.wait_all_tasks_blocked()
        assert wire.recording.heard == [("answer", 0, Result(1))]
        wire.connection.stop()


@pytest.mark.parametrize("broken", [False, True], ids=["a full pipe", "a broken pipe"])
async def test_the_writer_is_asked_for_once_and_only_when_it_is_needed(broken: bool) -> None:
    async with pipes() as wire:
        asked: list[bool] = []
        outflow = Outflow(wire.near_out, MEBIBYTE, on_backlog=lambda: asked.append(True))
        outflow.send(b"short\n")
        assert asked == []
        if broken:
            wire.far_in.close()
        for _ in range(2):
            outflow.send(b"x" * 200_000)
        assert asked == [True]
        with trio.fail_after(5):
            if broken:
                await outflow.run()  # there is nothing more to do
        assert outflow.broken.is_set() == broken


async def test_a_pipe_that_breaks_while_the_writer_waits_is_noticed() -> None:
    async with pipes() as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.write)
        wire.connection.notify("m", {"text": "x" * 200_000})
        await trio.testing.wait_all_tasks_blocked()
        wire.far_in.close()
        await wire.connection.write_broken.wait()
        assert wire.connection.unsent_bytes == 0


@pytest.mark.parametrize(
    "waiting", [True, False], ids=["the writer waits for the pipe", "the writer is idle"]
)
async def test_closing_the_send_stream_is_silent(waiting: bool) -> None:
    async with pipes() as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.write)
        if waiting:
            wire.connection.notify("m", {"text": "x" * 200_000})
        await trio.testing.wait_all_tasks_blocked()
        await wire.near_out.aclose()
        wire.connection.notify("m", {})
        await trio.testing.wait_all_tasks_blocked()
        assert wire.connection.unsent_bytes == 0
        assert not wire.connection.write_broken.is_set()


async def test_no_frame_is_written_into_a_descriptor_that_was_reused() -> None:
    async with pipes() as wire:
        wire.near_out.close()
        reused_in, reused_out = map(trio.lowlevel.FdStream, os.pipe())
        wire.connection.notify("m", {})
        with pytest.raises(BlockingIOError):
            os.read(reused_in.fileno(), 1000)
        reused_in.close()
        reused_out.close()


async def test_stop_handles_what_is_in_the_pipe_before_it_returns() -> None:
    async with pipes() as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.read)
        await trio.testing.wait_all_tasks_blocked()
        wire.connection.send_request("ask", {}, wire.recording.on_answer(0))
        os.write(wire.far_out.fileno(), UPDATE % 1 + b'{"jsonrpc":"2.0","id":0,"result":1}')
        wire.connection.stop()
        assert wire.recording.heard == [("notification", "update", {"n": 1}), ("answer", 0, Result(1))]
        assert wire.connection.ending is Ending.STOPPED


async def test_stop_joins_what_was_read_before_with_what_is_in_the_pipe() -> None:
    async with pipes() as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.read)
        frame = UPDATE % 1
        await wire.far_out.send_all(frame[:20])
        await trio.testing.wait_all_tasks_blocked()
        os.write(wire.far_out.fileno(), frame[20:])
        wire.connection.stop()
        assert wire.recording.heard == [("notification", "update", {"n": 1})]


async def test_stop_does_not_mind_back_pressure() -> None:
    async with pipes(gate=Gate()) as wire, trio.open_nursery() as nursery:
        nursery.start_soon(wire.connection.read)
        await trio.testing.wait_all_tasks_blocked()
        os.write(wire.far_out.fileno(), UPDATE % 1)
        wire.connection.stop()
        assert wire.recording.heard == [("notification", "update", {"n": 1})]


async def test_stop_works_when_the_reader_never_ran_and_when_the_pipe_is_closed() -> None:
    async with pipes() as wire:
        os.write(wire.far_out.fileno(), UPDATE % 1)
        wire.connection.stop()
        await wire.connection.read()
        assert len(wire.recording.heard) == 1
    async with pipes() as wire:
        wire.near_in.close()
        wire.connection.stop()
        assert wire.connection.ending is Ending.STOPPED


async def test_stop_keeps_to_a_fatal_ending_found_in_the_pipe() -> None:
    async with pipes(WireLimits(max_frame_bytes=60)) as wire:
        os.write(wire.far_out.fileno(), UPDATE % 1 + b"x" * 100)
        wire.connection.stop()
        assert wire.connection.ending is Ending.FRAME_TOO_LARGE
        assert len(wire.recording.heard) == 1


async def test_stop_returns_although_a_grandchild_holds_the_pipe() -> None:
    # The leader leaves behind a process that keeps its stdout until we close its stdin.
    script = """exec 3<&0; cat <&3 & printf '{"method":"last"}'"""
    async with pipes() as wire:
        leader = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=wire.far_out.fileno()
        )
        assert leader.stdin is not None
        async with leader.stdin:
            wire.far_out.close()
            await leader.wait()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wire.connection.read)
                await trio.testing.wait_all_tasks_blocked()
                assert wire.connection.ending is None
                wire.connection.stop()
            assert wire.connection.ending is Ending.STOPPED
            assert wire.recording.heard == [("notification", "last", {})]
        # The pipe's end says that the grandchild is gone.
        assert await wire.near_in.receive_some() == b""


async def test_stop_returns_although_a_process_writes_without_end() -> None:
    async with pipes() as wire:
        writer = await trio.lowlevel.open_process(["yes", '{"method":"m"}'], stdout=wire.far_out.fileno())
        try:
            # It has begun when the pipe can be read.
            await trio.lowlevel.wait_readable(wire.near_in.fileno())
            wire.connection.stop()
        finally:
            writer.kill()
            with trio.CancelScope(shield=True):
                await writer.wait()
        assert wire.connection.ending is Ending.STOPPED
        assert 0 < len(wire.recording.heard) <= STOP_READ_BYTES // len('{"method":"m"}\n')
