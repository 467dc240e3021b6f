"""Bytes to callbacks: each case whole, byte by byte, cut at every byte, and with a second frame behind it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from acp_subagent.wire.jsonrpc import Counters, Malformed, Result, RpcError
from tests.wire.recording import Codec

BEHIND = b'{"jsonrpc":"2.0","method":"behind","params":{"n":1}}\n'
HEARD_BEHIND = ("notification", "behind", {"n": 1})


@dataclass(frozen=True)
class Case:
    """What one line leads to; `counters` without what BEHIND adds."""

    name: str
    line: bytes
    heard: tuple[tuple[object, ...], ...] = ()
    outbox: tuple[bytes, ...] = ()
    counters: Counters = field(default_factory=lambda: Counters(frames=1))


def told(method: str, params: dict[str, object]) -> tuple[object, ...]:
    return ("notification", method, params)


def asked(
    request_id: object, method: str = "m", params: dict[str, object] | None = None
) -> tuple[object, ...]:
    return ("request", request_id, method, {} if params is None else params)


def answered(number: int, answer: object) -> tuple[object, ...]:
    return ("answer", number, answer)


def refused(request_id: bytes, code: int, message: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s"}}\n' % (
        request_id,
        code,
        message.encode(),
    )


NOISE = Counters(noise_lines=1)
REPAIRED = Counters(frames=1, repaired_frames=1)
DROPPED = Counters(frames=1, dropped_responses=1)
NO_OBJECT = "params must be an object"
NO_STRING = "method must be a string"

CALLS = [
    Case("a notification", b'{"jsonrpc":"2.0","method":"m","params":{"a":[1]}}', (told("m", {"a": [1]}),)),
    Case("a notification without params", b'{"jsonrpc":"2.0","method":"m"}', (told("m", {}),)),
    Case(
        "a notification with null params", b'{"jsonrpc":"2.0","method":"m","params":null}', (told("m", {}),)
    ),
    Case("members in any order", b'{"params":{},"id":7,"method":"m","jsonrpc":"2.0"}', (asked(7),)),
    Case(
        "unknown members", b'{"jsonrpc":"2.0","method":"m","params":{},"_meta":null,"x":1}', (told("m", {}),)
    ),
    Case("no jsonrpc member", b'{"method":"m","params":{}}', (told("m", {}),)),
    Case("id 0", b'{"jsonrpc":"2.0","id":0,"method":"m","params":{}}', (asked(0),)),
    Case("a negative id", b'{"jsonrpc":"2.0","id":-1,"method":"m"}', (asked(-1),)),
    Case("a string id", b'{"jsonrpc":"2.0","id":"1","method":"m"}', (asked("1"),)),
    Case("an empty string id", b'{"jsonrpc":"2.0","id":"","method":"m"}', (asked(""),)),
    Case(
        "a UUID id",
        b'{"jsonrpc":"2.0","id":"5b0e8a3c-6f57-4e1e-9d0c-2f8b1f0f7a11","method":"m"}',
        (asked("5b0e8a3c-6f57-4e1e-9d0c-2f8b1f0f7a11"),),
    ),
    Case("an id beyond 64 bits", b'{"jsonrpc":"2.0","id":%d,"method":"m"}' % 2**80, (asked(2**80),)),
    Case("a null id", b'{"jsonrpc":"2.0","id":null,"method":"m"}', (asked(None),)),
    Case("the last of two equal keys", b'{"jsonrpc":"2.0","method":"a","method":"b"}', (told("b", {}),)),
    Case(
        "the protocol's newline escape", b'{"method":"m","params":{"t":"a\\nb"}}', (told("m", {"t": "a\nb"}),)
    ),
    Case(
        "line separators inside a string",
        '{"method":"m","params":{"t":"a\u2028b\u2029c\u0085d"}}'.encode(),
        (told("m", {"t": "a\u2028b\u2029c\u0085d"}),),
    ),
    Case("an escaped NUL", b'{"method":"m","params":{"t":"\\u0000"}}', (told("m", {"t": "\0"}),)),
    Case(
        "a surrogate pair",
        b'{"method":"m","params":{"t":"\\ud83d\\ude00"}}',
        (told("m", {"t": "\U0001f600"}),),
    ),
    Case("a carriage return at the end", b'{"method":"m","params":{}}\r', (told("m", {}),)),
    Case("spaces around", b'  {"method":"m","params":{}}\t ', (told("m", {}),)),
]

REFUSALS = [
    Case(
        "a request with params in an array",
        b'{"id":3,"method":"m","params":[1]}',
        (),
        (refused(b"3", -32602, NO_OBJECT),),
    ),
    Case(
        "a request with text as params",
        b'{"id":"3","method":"m","params":"x"}',
        (),
        (refused(b'"3"', -32602, NO_OBJECT),),
    ),
    Case(
        "a request with false as params",
        b'{"id":0,"method":"m","params":false}',
        (),
        (refused(b"0", -32602, NO_OBJECT),),
    ),
    Case(
        "a request with a number as method", b'{"id":3,"method":1}', (), (refused(b"3", -32600, NO_STRING),)
    ),
    Case(
        "a request with null as method",
        b'{"id":null,"method":null}',
        (),
        (refused(b"null", -32600, NO_STRING),),
    ),
    Case("a request with id true", b'{"jsonrpc":"2.0","id":true,"method":"m"}', counters=NOISE),
    Case("a request with a fraction as id", b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', counters=NOISE),
    Case("a request with 1.0 as id", b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', counters=NOISE),
    Case("a request with an object as id", b'{"jsonrpc":"2.0","id":{},"method":"m"}', counters=NOISE),
    Case(
        "a notification with params in an array",
        b'{"jsonrpc":"2.0","method":"m","params":[]}',
        counters=NOISE,
    ),
    Case("a notification with a number as method", b'{"jsonrpc":"2.0","method":1}', counters=NOISE),
]

ANSWERS = [
    Case("a result", b'{"jsonrpc":"2.0","id":0,"result":{"a":1}}', (answered(0, Result({"a": 1})),)),
    Case("a null result", b'{"jsonrpc":"2.0","id":1,"result":null}', (answered(1, Result(None)),)),
    Case("a result with the id last", b'{"result":[],"jsonrpc":"2.0","id":0}', (answered(0, Result([])),)),
    Case("a result without jsonrpc", b'{"id":0,"result":0}', (answered(0, Result(0)),)),
    Case(
        "an error",
        b'{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no","data":["x"]}}',
        (answered(0, RpcError(-32000, "no", ["x"])),),
    ),
    Case("an error without message", b'{"id":0,"error":{"code":1}}', (answered(0, RpcError(1, "", None)),)),
    Case(
        "an error whose message is no text",
        b'{"id":0,"error":{"code":1,"message":{}}}',
        (answered(0, RpcError(1, "", None)),),
    ),
    Case("neither result nor error", b'{"jsonrpc":"2.0","id":0}', (answered(0, Malformed()),)),
    Case("result and error", b'{"id":0,"result":null,"error":{}}', (answered(0, Malformed()),)),
    Case("an error that is null", b'{"id":0,"error":null}', (answered(0, Malformed()),)),
    Case("an error that is text", b'{"id":0,"error":"no"}', (answered(0, Malformed()),)),
    Case("an error without code", b'{"id":0,"error":{"message":"no"}}', (answered(0, Malformed()),)),
    Case(
        "an error with a text as code",
        b'{"id":0,"error":{"code":"-1","message":""}}',
        (answered(0, Malformed()),),
    ),
    Case(
        "an error with true as code",
        b'{"id":0,"error":{"code":true,"message":""}}',
        (answered(0, Malformed()),),
    ),
    Case("an answer to an id that is unknown", b'{"jsonrpc":"2.0","id":9,"result":{}}', counters=DROPPED),
    Case("an answer to our id as text", b'{"jsonrpc":"2.0","id":"0","result":{}}', counters=DROPPED),
    Case("an answer to id true", b'{"jsonrpc":"2.0","id":true,"result":{}}', counters=DROPPED),
    Case("an answer to id 1.0", b'{"jsonrpc":"2.0","id":1.0,"result":{}}', counters=DROPPED),
    Case("an answer to an array", b'{"jsonrpc":"2.0","id":[0],"result":{}}', counters=DROPPED),
    Case(
        "an error with a null id",
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}',
        counters=DROPPED,
    ),
    Case("an error without id", b'{"jsonrpc":"2.0","error":{"code":-32601,"message":""}}', counters=DROPPED),
    Case("a broken answer", b'{"id":0,"result":"\xff"}', (answered(0, Result("\ufffd")),), counters=REPAIRED),
]

BROKEN = [
    Case(
        "bad UTF-8",
        b'{"method":"m","params":{"t":"a\xffb"}}',
        (told("m", {"t": "a\ufffdb"}),),
        counters=REPAIRED,
    ),
    Case(
        "cut UTF-8",
        b'{"method":"m","params":{"t":"\xe2\x82"}}',
        (told("m", {"t": "\ufffd"}),),
        counters=REPAIRED,
    ),
    Case(
        "a lone surrogate",
        b'{"method":"m","params":{"\\ud800":"x\\udfffy"}}',
        (told("m", {"\ufffd": "x\ufffdy"}),),
        counters=REPAIRED,
    ),
    Case(
        "a lone surrogate in an id", b'{"id":"\\ud800","method":"m"}', (asked("\ufffd"),), counters=REPAIRED
    ),
    Case("text", b"Starting agent on port 3000 ...", counters=NOISE),
    Case("control sequences", b"\x1b[32mready\x1b[0m", counters=NOISE),
    Case("control sequences before a frame", b'\x1b[0m{"method":"m"}', counters=NOISE),
    Case("a frame with text behind it", b'{"method":"m"} done', counters=NOISE),
    Case("half a frame", b'{"jsonrpc":"2.0","method":"m', counters=NOISE),
    Case("a raw NUL", b'{"method":"m","params":{"t":"\x00"}}', counters=NOISE),
    Case("NULs", b"\x00\x00", counters=NOISE),
    Case("bytes that are no text", b"\xff\xfe\xfd", counters=NOISE),
    Case("a number", b"42", counters=NOISE),
    Case("null", b"null", counters=NOISE),
    Case("a string", b'"method"', counters=NOISE),
    Case("an array of frames", b'[{"jsonrpc":"2.0","id":3,"method":"m"}]', counters=NOISE),
    Case("an empty object", b"{}", counters=NOISE),
    Case("a log line as an object", b'{"level":"error","id":"a1","error":"ECONNREFUSED"}', counters=NOISE),
    Case("an integer that is too long", b'{"id":%s,"method":"m"}' % (b"9" * 5000), counters=NOISE),
    Case("a line of spaces", b"  \t ", counters=Counters()),
]


def check(case: Case, pieces: list[bytes], *, behind: bool) -> None:
    codec = Codec()
    codec.take(pieces)
    expected = [*case.heard, *([HEARD_BEHIND] if behind else [])]
    # By their texts: True equals 1 and 1.0, but is another id.
    assert [repr(one) for one in codec.recording.heard] == [repr(one) for one in expected]
    assert codec.recording.heard == expected
    assert codec.peer.outbox == list(case.outbox)
    counters = codec.peer.counters
    assert (counters.frames - behind, counters.repaired_frames) == (
        case.counters.frames,
        case.counters.repaired_frames,
    )
    assert counters.noise_lines == case.counters.noise_lines
    assert counters.dropped_responses == case.counters.dropped_responses
    assert codec.peer.spoken == (counters.frames > 0)


def sampled(length: int) -> range:
    """Every place of a line; of a very long one, some hundred."""
    return range(0, length + 1, max(1, length // 400))


@pytest.mark.parametrize("case", [*CALLS, *REFUSALS, *ANSWERS, *BROKEN], ids=lambda case: case.name)
def test_a_line_means_the_same_however_it_is_cut(case: Case) -> None:
    data = case.line + b"\n"
    check(case, [data], behind=False)
    check(case, [case.line], behind=False)
    check(case, [data[i : i + 1] for i in range(len(data))], behind=False)
    check(case, [data + BEHIND], behind=True)
    for place in sampled(len(data)):
        check(case, [data[:place], data[place:] + BEHIND], behind=True)


def nested(depth: int) -> bytes:
    return b'{"method":"m","params":{"a":' + b"[" * depth + b"]" * depth + b"}}"


def test_nesting_deeper_than_the_fast_parser_takes_is_still_read() -> None:
    codec = Codec()
    codec.take([nested(400)])
    assert codec.peer.counters == Counters(frames=1, repaired_frames=1)


def test_nesting_without_end_is_noise_and_the_next_frame_is_read() -> None:
    codec = Codec()
    codec.take([nested(200_000) + b"\n" + BEHIND])
    assert codec.recording.heard == [HEARD_BEHIND]
    assert codec.peer.counters == Counters(frames=1, noise_lines=1)


def test_a_number_that_is_none_is_read_as_a_float() -> None:
    codec = Codec()
    codec.take([b'{"method":"m","params":{"a":NaN,"b":-Infinity}}'])
    assert repr(codec.recording.heard) == "[('notification', 'm', {'a': nan, 'b': -inf})]"


@settings(deadline=None)  # no timed assertion
@given(
    st.lists(st.sampled_from([*CALLS, *REFUSALS, *BROKEN]), max_size=6),
    st.lists(st.integers(0, 900), max_size=8),
)
def test_frames_in_a_row_cut_at_random_places_come_in_order(cases: list[Case], cuts: list[int]) -> None:
    data = b"".join(case.line + b"\n" for case in cases)
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    codec = Codec()
    codec.take([data[start:end] for start, end in itertools.pairwise(places)])
    assert codec.recording.heard == [one for case in cases for one in case.heard]
    assert codec.peer.outbox == [one for case in cases for one in case.outbox]


@settings(deadline=None)  # no timed assertion
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_at_all_raise(lines: list[bytes]) -> None:
    Codec().take([b"\n".join(lines)])
