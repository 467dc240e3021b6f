"""Bytes to lines, however the bytes are cut."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given, settings, strategies as st

from acp_subagent.wire.frames import FrameBuffer, Line

CAP = 10


def lines_of(pieces: list[bytes], cap: int = 1000) -> tuple[list[Line], bool]:
    buffer = FrameBuffer(cap)
    lines = [line for piece in pieces for line in buffer.feed(piece)]
    return lines + buffer.finish(), buffer.too_large


CASES = [
    pytest.param(b"", [], id="nothing"),
    pytest.param(b"one\n", [b"one"], id="one line"),
    pytest.param(b"one\ntwo\n", [b"one", b"two"], id="two lines"),
    pytest.param(b"one", [b"one"], id="a last line without newline"),
    pytest.param(b"one\ntwo", [b"one", b"two"], id="a second line without newline"),
    pytest.param(b"one\r\ntwo\r\n", [b"one", b"two"], id="carriage returns before the newline"),
    pytest.param(b"one\r", [b"one"], id="a last line with only a carriage return"),
    pytest.param(b"o\rne\n", [b"o\rne"], id="a carriage return inside a line stays"),
    pytest.param(b"\n\n\r\n\none\n\n", [b"one"], id="blank lines"),
    pytest.param("a\u2028b\u2029c\u0085d\n".encode(), ["a\u2028b\u2029c\u0085d".encode()], id="other breaks"),
    pytest.param(b"a\x0bb\x0cc\x1cd\x00e\n", [b"a\x0bb\x0cc\x1cd\x00e"], id="control characters"),
]


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_lines_are_the_same_however_the_bytes_are_cut(data: bytes, expected: list[bytes]) -> None:
    whole = [data]
    single = [data[i : i + 1] for i in range(len(data))]
    halves = [[data[:i], data[i:]] for i in range(len(data) + 1)]
    for pieces in (whole, single, *halves):
        assert lines_of(pieces) == (expected, False)


@settings(deadline=None)  # no timed assertion
@given(
    data=st.lists(st.sampled_from([b"\n", b"\r", b"{", b"a", b"\xff", b"\r\n"]), max_size=60).map(b"".join),
    cuts=st.lists(st.integers(0, 80), max_size=12),
    cap=st.integers(1, 12),
)
def test_random_cuts_change_neither_the_lines_nor_the_verdict(data: bytes, cuts: list[int], cap: int) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert lines_of(pieces, cap) == lines_of([data], cap)


@settings(deadline=None)  # no timed assertion
@given(st.lists(st.binary(max_size=30).filter(lambda line: not {10, 13} & set(line)), max_size=20))
def test_what_was_joined_with_newlines_comes_apart_again(lines: list[bytes]) -> None:
    assert lines_of([b"\n".join(lines)]) == ([line for line in lines if line], False)


def test_a_line_of_exactly_the_cap_passes() -> None:
    assert lines_of([b"x" * CAP + b"\n"], CAP) == ([b"x" * CAP], False)


def test_lines_before_the_one_that_is_too_large_still_come_out() -> None:
    buffer = FrameBuffer(CAP)
    assert buffer.feed(b"one\ntwo\n" + b"x" * (CAP + 1) + b"\nfour\n") == [b"one", b"two"]
    assert buffer.too_large


def test_an_unfinished_line_is_too_large_before_its_newline_comes() -> None:
    buffer = FrameBuffer(CAP)
    assert buffer.feed(b"one\n" + b"x" * CAP) == [b"one"]
    assert not buffer.too_large
    assert buffer.feed(b"x") == []
    assert buffer.too_large


def test_nothing_comes_out_and_nothing_is_kept_after_a_line_was_too_large() -> None:
    buffer = FrameBuffer(CAP)
    buffer.feed(b"x" * (CAP + 1))
    assert buffer.feed(b"\none\n") == []
    assert buffer.finish() == []
    assert not buffer._tail


def test_many_short_lines_may_together_be_longer_than_the_cap() -> None:
    assert lines_of([b"one\n" * 100], CAP) == ([b"one"] * 100, False)


class Scanned(bytes):
    """Bytes that count how many of them were searched for newlines."""

    total = 0

    def split(self, *args: object, **kwargs: object) -> list[bytes]:
        Scanned.total += len(self)
        return bytes(self).split(b"\n")


@pytest.mark.parametrize("piece_bytes", [1, 7, 4096, 100_000])
def test_every_byte_of_a_long_line_is_scanned_once(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scanned, "total", 0)
    data = b"x" * 100_000 + b"\n"
    buffer = FrameBuffer(1_000_000)
    lines = []
    for start in range(0, len(data), piece_bytes):
        lines += buffer.feed(Scanned(data[start : start + piece_bytes]))
    assert lines == [data[:-1]]
    assert Scanned.total == len(data)


def test_a_line_that_comes_byte_by_byte_needs_little_more_memory_than_it_has_bytes() -> None:
    buffer = FrameBuffer(1_000_000)
    for _ in range(20_000):
        buffer.feed(b"x")
    assert sys.getsizeof(buffer._tail) < 1.2 * 20_000
    assert buffer.finish() == [b"x" * 20_000]


def test_a_long_line_is_handed_out_without_another_copy_of_it() -> None:
    buffer = FrameBuffer(1_000_000)
    buffer.feed(b"x" * 500_000)
    collected = buffer._tail
    assert buffer.feed(b"x\n")[0] is collected
