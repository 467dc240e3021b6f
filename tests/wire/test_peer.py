"""What a peer remembers: ids, waiting requests, counters, noise; and what it encodes."""

from __future__ import annotations

import json
import math

import pytest

from acp_subagent.wire.jsonrpc import (
    NOISE_SAMPLE_BYTES,
    NOISE_SAMPLES,
    Counters,
    NoAnswer,
    Peer,
    Result,
    RpcError,
)
from tests.wire.recording import Codec, Recording

CANARY = "canary-5f1c"


def fresh() -> tuple[Peer, Recording]:
    recording = Recording()
    return Peer(recording, max_noise_lines=3), recording


def test_our_ids_count_from_zero_in_each_peer() -> None:
    for _ in range(2):
        peer, recording = fresh()
        ids = [peer.request("m", {}, recording.on_answer(0)).id for _ in range(3)]
        assert ids == [0, 1, 2]


def test_a_request_has_its_params_even_when_they_are_empty() -> None:
    peer, recording = fresh()
    frame = peer.request("session/new", {}, recording.on_answer(0)).frame
    assert frame.endswith(b"\n")
    assert json.loads(frame) == {"jsonrpc": "2.0", "method": "session/new", "params": {}, "id": 0}


def test_a_notification_has_no_id() -> None:
    peer, _ = fresh()
    message = json.loads(peer.notification("session/cancel", {"sessionId": "s"}))
    assert message == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}


@pytest.mark.parametrize("request_id", [0, -1, 2**80, "0", "", "5b0e8a3c", None])
def test_answers_echo_the_id_with_value_and_type(request_id: int | str | None) -> None:
    peer, _ = fresh()
    for frame in (peer.result(request_id, None), peer.error(request_id, -32601, "unknown method")):
        echoed = json.loads(frame)["id"]
        assert (echoed, type(echoed)) == (request_id, type(request_id))


def test_an_answer_of_null_and_an_error_have_exactly_one_of_both_members() -> None:
    peer, _ = fresh()
    assert json.loads(peer.result(1, None)) == {"jsonrpc": "2.0", "id": 1, "result": None}
    error = {"code": -32601, "message": "unknown method"}
    assert json.loads(peer.error(1, -32601, "unknown method")) == {"jsonrpc": "2.0", "id": 1, "error": error}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("line\nbreak\r\u2028", "line\nbreak\r\u2028"),
        ("ä€\U0001f600\0", "ä€\U0001f600\0"),
        ("NaN, Infinity and -Infinity as words", "NaN, Infinity and -Infinity as words"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("lone \udfff and NaN", "lone \ufffd and NaN"),
    ],
)
def test_text_is_sent_as_one_line_of_valid_utf8(text: str, read: str) -> None:
    peer, _ = fresh()
    frame = peer.notification("m", {"text": text})
    assert frame.count(b"\n") == 1
    assert json.loads(frame.decode("utf-8", errors="strict"))["params"] == {"text": read}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_no_json_is_refused_and_nothing_waits_for_an_answer(value: float) -> None:
    peer, recording = fresh()
    with pytest.raises(ValueError, match="not JSON compliant"):
        peer.request("m", {"value": value}, recording.on_answer(0))
    peer.close()
    assert recording.heard == []
    assert peer.request("m", {}, recording.on_answer(0)).id == 0


def test_an_object_that_is_no_json_is_refused() -> None:
    peer, _ = fresh()
    with pytest.raises(TypeError):
        peer.notification("m", {"value": object()})


def test_answers_may_come_in_any_order_and_the_second_one_to_an_id_is_dropped() -> None:
    codec = Codec()
    codec.take([b'{"jsonrpc":"2.0","id":1,"result":"b"}\n', b'{"jsonrpc":"2.0","id":0,"result":"a"}\n'])
    codec.take([b'{"jsonrpc":"2.0","id":1,"result":"c"}\n'])
    assert codec.recording.heard == [("answer", 1, Result("b")), ("answer", 0, Result("a"))]
    assert codec.peer.counters == Counters(frames=3, dropped_responses=1)


def test_both_sides_may_use_the_same_id_at_the_same_time() -> None:
    codec = Codec()
    codec.take([b'{"jsonrpc":"2.0","id":0,"method":"m"}\n{"jsonrpc":"2.0","id":0,"result":1}\n'])
    assert codec.recording.heard == [("request", 0, "m", {}), ("answer", 0, Result(1))]


def test_the_late_answer_to_an_abandoned_request_is_dropped_and_counted() -> None:
    codec = Codec()
    codec.peer.abandon(0)
    codec.peer.abandon(0)
    codec.take([b'{"jsonrpc":"2.0","id":0,"result":1}\n{"jsonrpc":"2.0","id":1,"result":2}\n'])
    assert codec.recording.heard == [("answer", 1, Result(2))]
    assert codec.peer.counters == Counters(frames=2, dropped_responses=1)


def test_closing_tells_every_waiting_request_once() -> None:
    codec = Codec()
    codec.peer.close()
    codec.peer.close()
    assert codec.recording.heard == [("answer", 0, NoAnswer()), ("answer", 1, NoAnswer())]
    codec.take([b'{"jsonrpc":"2.0","id":0,"result":1}\n'])
    assert codec.peer.counters == Counters(frames=1, dropped_responses=1)


def test_a_request_after_the_close_is_told_at_once() -> None:
    peer, recording = fresh()
    peer.close()
    assert peer.request("m", {}, recording.on_answer(0)).id == 0
    assert recording.heard == [("answer", 0, NoAnswer())]


def test_closing_tells_the_others_even_when_one_callback_raises() -> None:
    def fail(_: object) -> None:
        raise LookupError

    peer, recording = fresh()
    peer.request("m", {}, fail)
    peer.request("m", {}, recording.on_answer(1))
    with pytest.raises(LookupError):
        peer.close()
    assert recording.heard == [("answer", 1, NoAnswer())]


def test_an_answer_may_send_the_next_request() -> None:
    codec = Codec()

    def go_on(_: object) -> None:
        codec.peer.request("next", {}, codec.recording.on_answer(3))

    assert codec.peer.request("first", {}, go_on).id == 2
    codec.take([b'{"jsonrpc":"2.0","id":2,"result":1}\n{"jsonrpc":"2.0","id":3,"result":2}\n'])
    assert codec.recording.heard == [("answer", 3, Result(2))]


def test_more_noise_than_the_limit_before_the_first_frame_means_that_it_never_spoke() -> None:
    codec = Codec(max_noise_lines=3)
    codec.take([b"noise\n" * 3])
    assert not codec.peer.never_spoke
    codec.take([b'noise\n{"method":"m"}\n', b'{"method":"m"}\n'])
    assert codec.peer.never_spoke
    assert not codec.peer.spoken
    assert codec.recording.heard == []
    assert codec.peer.counters == Counters(noise_lines=4)


def test_noise_after_the_first_frame_is_never_fatal() -> None:
    codec = Codec(max_noise_lines=3)
    codec.take([b"noise\n" * 3 + b'{"method":"m"}\n' + b"noise\n" * 50])
    assert codec.peer.counters == Counters(frames=1, noise_lines=53)
    assert not codec.peer.never_spoke


def test_blank_lines_do_not_count_as_noise() -> None:
    codec = Codec(max_noise_lines=1)
    codec.take([b" \r\n\t\n" * 10])
    assert codec.peer.counters == Counters()


def test_the_latest_noise_is_kept_in_bounds() -> None:
    codec = Codec()
    codec.take([b"".join(b"%03d" % number + b"x" * 1000 + b"\n" for number in range(50))])
    samples = list(codec.peer.noise_samples)
    assert [sample[:3] for sample in samples] == [b"%03d" % number for number in range(30, 50)]
    assert len(samples) == NOISE_SAMPLES
    assert {len(sample) for sample in samples} == {NOISE_SAMPLE_BYTES}


def test_no_repr_shows_what_the_other_side_said() -> None:
    codec = Codec()
    codec.take([CANARY.encode() + b"\n"])
    outgoing = codec.peer.request("m", {"text": CANARY}, codec.recording.on_answer(2))
    shown = [repr(Result(CANARY)), repr(RpcError(-32603, CANARY, {CANARY: CANARY})), repr(outgoing)]
    shown += [repr(codec.peer), repr(codec.buffer), repr(codec.peer.counters)]
    assert CANARY not in "".join(shown)
    assert "code=-32603" in shown[1]


def test_an_exception_of_a_callback_comes_out_as_it_is() -> None:
    codec = Codec()

    def fail() -> None:
        raise ValueError

    codec.recording.then = fail
    with pytest.raises(ValueError, match=r"^$"):
        codec.take([b'{"method":"m"}\n'])
