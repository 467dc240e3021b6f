"""What a frame costs, in function calls: the same for the first and the hundred-thousandth."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from acp_subagent.wire.frames import FrameBuffer
from acp_subagent.wire.jsonrpc import Peer, RequestId

READ_BYTES = 65536


class Sink:
    """Takes everything and does nothing."""

    def on_request(self, id: RequestId, method: str, params: dict[str, object]) -> None:
        pass

    def on_notification(self, method: str, params: dict[str, object]) -> None:
        pass


def calls_of(work: Callable[[], object]) -> int:
    """How many functions, of Python and of C, are called while `work` runs."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def updates(start: int, count: int) -> bytes:
    line = (
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
        b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%06d"}}}}\n'
    )
    return b"".join(line % number for number in range(start, start + count))


def pump(buffer: FrameBuffer, peer: Peer, data: bytes) -> None:
    for start in range(0, len(data), READ_BYTES):
        peer.feed(buffer.feed(data[start : start + READ_BYTES]))


def test_a_later_frame_costs_as_many_calls_as_an_early_one() -> None:
    buffer, peer = FrameBuffer(10**6), Peer(Sink(), max_noise_lines=1)
    early = calls_of(lambda: pump(buffer, peer, updates(0, 1000)))
    pump(buffer, peer, updates(1000, 50_000))
    late = calls_of(lambda: pump(buffer, peer, updates(51_000, 1000)))
    # The frames that a read cuts differ by a few.
    assert abs(late - early) <= 0.02 * early
    assert peer.counters.frames == 52_000


def test_an_update_costs_a_handful_of_calls() -> None:
    buffer, peer = FrameBuffer(10**6), Peer(Sink(), max_noise_lines=1)
    data = updates(0, 2000)
    assert calls_of(lambda: pump(buffer, peer, data)) / 2000 < 8


def test_the_calls_for_a_long_line_grow_with_its_reads_only() -> None:
    def calls_for(reads: int) -> int:
        buffer, peer = FrameBuffer(10**9), Peer(Sink(), max_noise_lines=1)
        frame = b'{"method":"m","params":{"t":"%s"}}\n' % (b"x" * reads * READ_BYTES)
        return calls_of(lambda: pump(buffer, peer, frame))

    shorter, longer = calls_for(16), calls_for(64)
    assert longer <= 4.2 * shorter
