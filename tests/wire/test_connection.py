"""The pump over in-memory streams: asking, answering, order, back-pressure. Time that passes is virtual."""

from __future__ import annotations

import trio
import trio.testing

from acp_subagent.wire.jsonrpc import Answer, Result
from tests.wire.lines import REQUEST, UPDATE, Gate, line


async def test_a_request_gets_its_answer() -> None:
    async with line() as wire:
        answers: list[Answer] = []

        async def ask() -> None:
            answers.append(await wire.connection.request("ask", {"a": 1}))

        wire.nursery.start_soon(ask)
        sent = {"jsonrpc": "2.0", "id": 0, "method": "ask", "params": {"a": 1}}
        assert await wire.heard_by_far() == [sent]
        await wire.says(b'{"jsonrpc":"2.0","id":0,"result":{"b":2}}\n')
        assert answers == [Result({"b": 2})]


async def test_the_answer_to_a_cancelled_request_is_dropped_and_counted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with line() as wire:
        with trio.move_on_after(1):
            await wire.connection.request("ask", {})
        await wire.says(b'{"jsonrpc":"2.0","id":0,"result":1}\n')
        assert wire.connection.counters.dropped_responses == 1
        assert wire.connection.ending is None


async def test_frames_of_one_read_are_handled_in_order_and_without_a_checkpoint_between() -> None:
    async with line() as wire:

        class Steps(trio.abc.Instrument):
            def before_task_step(self, task: trio.lowlevel.Task) -> None:
                seen_at.append(len(wire.recording.heard))

        seen_at: list[int] = []
        instrument = Steps()
        trio.lowlevel.add_instrument(instrument)
        await wire.says(b"".join(UPDATE % number for number in range(500)))
        trio.lowlevel.remove_instrument(instrument)
        assert wire.numbers() == list(range(500))
        assert set(seen_at) == {0, 500}


async def test_a_request_may_be_answered_while_it_is_handled() -> None:
    async with line() as wire:
        wire.recording.then = lambda: wire.connection.respond(7, {"ok": True})
        await wire.says(REQUEST % 7)
        assert await wire.heard_by_far() == [{"jsonrpc": "2.0", "id": 7, "result": {"ok": True}}]


async def test_invalid_requests_are_answered_without_the_receiver() -> None:
    async with line() as wire:
        await wire.says(b'{"id":"a","method":"m","params":[]}\n{"id":0,"method":null}\n')
        codes = [(one["id"], one["error"]) for one in await wire.heard_by_far()]
        assert [(id_, error["code"]) for id_, error in codes if isinstance(error, dict)] == [
            ("a", -32602),
            (0, -32600),
        ]
        assert wire.recording.heard == []


async def test_notifications_and_errors_are_sent_in_order() -> None:
    async with line() as wire:
        wire.connection.notify("one", {})
        wire.connection.respond_error("x", -32601, "unknown method")
        assert [list(one) for one in await wire.heard_by_far()] == [
            ["jsonrpc", "method", "params"],
            ["jsonrpc", "id", "error"],
        ]
        assert wire.connection.unsent_bytes == 0


async def test_the_tap_sees_every_line_of_both_directions_in_order() -> None:
    seen: list[tuple[str, bytes]] = []
    async with line(tap=lambda direction, shown: seen.append((direction, shown))) as wire:
        wire.recording.then = lambda: wire.connection.respond(7, None)
        await wire.says(b"noise\n" + REQUEST % 7 + REQUEST % 8)
        answer = ("sent", b'{"jsonrpc":"2.0","id":7,"result":null}')
        assert seen == [
            ("received", b"noise"),
            ("received", (REQUEST % 7).rstrip()),
            answer,
            ("received", (REQUEST % 8).rstrip()),
            answer,
        ]


async def test_a_tap_that_raises_changes_nothing() -> None:
    error = LookupError()

    def fail(direction: str, shown: bytes) -> None:
        raise error

    async with line(tap=fail) as wire:
        await wire.says(UPDATE % 1)
        wire.connection.notify("m", {})
        assert len(await wire.heard_by_far()) == 1
        assert wire.numbers() == [1]
        assert (wire.connection.ending, wire.connection.error) == (None, None)
        assert wire.connection.tap_error is error


async def test_the_reader_waits_for_back_pressure_between_reads() -> None:
    gate = Gate()
    gate.opened.set()
    async with line(before_read=gate) as wire:
        await trio.testing.wait_all_tasks_blocked()
        gate.opened = trio.Event()
        await wire.says(UPDATE % 1 + UPDATE % 2)
        await wire.says(UPDATE % 3)
        assert wire.numbers() == [1, 2]
        gate.opened.set()
        await trio.testing.wait_all_tasks_blocked()
        assert wire.numbers() == [1, 2, 3]
        assert gate.waits == 1


async def test_back_pressure_that_is_ready_is_never_waited_for() -> None:
    gate = Gate()
    gate.opened.set()
    async with line(before_read=gate) as wire:
        for number in range(10):
            await wire.says(UPDATE % number)
        assert gate.waits == 0


async def test_only_frames_count_as_a_sign_of_life(autojump_clock: trio.testing.MockClock) -> None:
    async with line() as wire:
        began = wire.connection.last_inbound
        await trio.sleep(5)
        await wire.says(b"noise\n\n")
        assert wire.connection.last_inbound == began
        await wire.says(UPDATE % 1)
        assert wire.connection.last_inbound >= began + 5


async def test_the_repr_shows_the_state_and_nothing_that_was_said() -> None:
    async with line() as wire:
        await wire.says(b'{"method":"canary-5f1c"}\ncanary-5f1c\n')
        assert repr(wire.connection) == "<Connection open frames=1 unsent_bytes=0>"
        wire.connection.stop()
        assert repr(wire.connection) == "<Connection stopped frames=1 unsent_bytes=0>"
