"""What interrupts us from inside: Ctrl-C in the middle of our own code, a callback that leaves, bugs of ours.

Whatever it is, it comes out plain, in time, and nothing is left.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from acp_subagent import (
    Failure,
    Parent,
    RunEnded,
    RunStarted,
    SessionEndedError,
    SubagentRequest,
    SubagentRun,
    SubagentStartError,
    SubagentTeardownError,
    SupportsResume,
    open_subagents,
)
from acp_subagent.acp.conversation import AcpConversation
from acp_subagent.process.child import Child
from acp_subagent.process.tree import Tree
from acp_subagent.process.watchdog import Watchdog
from acp_subagent.seam.feed import EventFeed
from acp_subagent.supervised.line import Line
from acp_subagent.supervised.turn import Turn
from tests.run.stage import BOUND_SECONDS, Kill, Stage

#: An agent that writes to stderr all the time, so that our drain of it is at work all the time.
TALKER = {"turns": [[{"stderr": "busy"}, {"text": "Hello."}, {"wait_cancel": {}}]]}
UNKNOWN = "category: unknown"


def children() -> set[int]:
    """Our own children, zombies too."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(map(int, file.read().split()))


def once(real: Callable[..., Any], strike: Callable[[], None], *, at: int = 1) -> Callable[..., Any]:
    """`real`, but its call number `at` strikes first."""
    calls = 0

    def replacement(*args: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            strike()
        return real(*args, **keywords)

    return replacement


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def fail() -> None:
    raise RuntimeError("a bug")


async def delegate(stage: Stage, scenario: Any, **settings: Any) -> None:
    """Start a run and read its events until it settles."""
    with trio.fail_after(BOUND_SECONDS):
        async with open_subagents() as subagents:
            subagents.register(stage.provider(scenario, faulty=True, **settings))
            async with await subagents.start("fake", stage.request()) as run:
                async for _ in run.events(stderr=True):
                    pass
                await run.result()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Child, "_take_stderr"),
        (Child, "see_exit"),
        (Turn, "poke"),
        (Turn, "settle"),
        (EventFeed, "flush"),
        (EventFeed, "lift"),
        (AcpConversation, "cancel_turn"),
        (Tree, "look"),
        (Watchdog, "aclose"),
    ],
)
def test_an_interrupt_from_the_keyboard_comes_out_plain_wherever_it_comes_and_leaves_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    before = children()
    monkeypatch.setattr(owner, name, once(getattr(owner, name), interrupt))
    with pytest.raises(KeyboardInterrupt):
        trio.run(partial(delegate, stage, TALKER, turn_timeout_seconds=0.5))
    assert children() == before


def leave(*_: object) -> None:
    raise SystemExit(7)


async def leave_in_a_task(*_: object) -> None:
    raise SystemExit(7)


async def use_a_host_that_leaves(stage: Stage, scenario: str, where: type) -> None:
    def heed(event: object) -> None:
        if isinstance(event, where):
            leave()

    with trio.fail_after(BOUND_SECONDS):
        async with open_subagents(on_failure=heed) as subagents:
            subagents.observe(heed)
            handler = leave_in_a_task if where is SubagentRun else None
            settings = {"permission": "ask", "permission_handler": handler} if handler else {}
            subagents.register(stage.provider(scenario, faulty=True, **settings))
            await subagents.run("fake", stage.request())
            await trio.sleep_forever()


@pytest.mark.parametrize(
    ("where", "scenario"),
    [
        (Failure, "session-exit"),
        (Failure, "end-exit"),
        (RunStarted, "echo"),
        (RunEnded, "echo"),
        (SubagentRun, "turn-permission"),
    ],
    ids=["failed-start", "failed-turn", "started", "ended", "permission-handler"],
)
def test_a_callback_of_the_host_that_leaves_the_program_ends_it_plainly_and_leaves_nothing(
    stage: Stage, where: type, scenario: str
) -> None:
    before = children()
    with pytest.raises(SystemExit) as left:
        trio.run(use_a_host_that_leaves, stage, scenario, where)
    assert left.value.code == 7
    assert children() == before


async def test_a_service_that_a_handler_has_left_does_not_sit_out_the_time_to_hurry(stage: Stage) -> None:
    provider = stage.provider(
        "turn-permission", faulty=True, permission="ask", permission_handler=leave_in_a_task
    )
    began = trio.current_time()
    with pytest.raises(SystemExit):
        async with open_subagents(hurry_seconds=BOUND_SECONDS) as subagents:
            subagents.register(provider)
            await subagents.run("fake", stage.request())
    assert trio.current_time() < began + BOUND_SECONDS


async def test_a_callback_that_leaves_while_another_has_made_the_run_break_down_leaves_nothing(
    stage: Stage,
) -> None:
    provider = stage.provider(
        "turn-permission", faulty=True, permission="ask", permission_handler=leave_in_a_task
    )
    descriptors = set(os.listdir("/proc/self/fd"))
    with pytest.raises(SystemExit):
        async with open_subagents() as subagents:
            subagents.register(provider)
            run = await subagents.start("fake", stage.request())
            run.when_settled(leave)
            await trio.sleep_forever()
    assert set(os.listdir("/proc/self/fd")) <= descriptors


async def test_a_callback_that_leaves_when_the_child_has_gone_is_no_fault_of_the_ladder(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        async with open_subagents() as subagents:
            subagents.register(stage.provider("echo", faulty=True))
            await subagents.run("fake", stage.request(), on_ready=lambda run: run.when_settled(leave))
            await trio.sleep_forever()
    assert "ladder-ended" not in caplog.text


def test_an_interrupt_during_a_cancellation_is_not_lost_in_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AcpConversation, "cancel_turn", once(AcpConversation.cancel_turn, interrupt))

    async def cancel_a_body_with_a_nursery() -> None:
        with trio.CancelScope() as scope:
            async with open_subagents() as subagents, trio.open_nursery() as nursery:
                subagents.register(stage.provider("end-silent", faulty=True))
                await subagents.start("fake", stage.request())
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked(0.1)
                scope.cancel()

    with pytest.raises(KeyboardInterrupt):
        trio.run(cancel_a_body_with_a_nursery)


async def test_a_body_that_fails_when_it_is_cancelled_does_not_hide_that_a_handler_has_left(
    stage: Stage,
) -> None:
    provider = stage.provider(
        "turn-permission", faulty=True, permission="ask", permission_handler=leave_in_a_task
    )
    with pytest.raises(SystemExit):
        async with open_subagents() as subagents:
            subagents.register(provider)
            try:
                await subagents.run("fake", stage.request())
                await trio.sleep_forever()
            finally:
                fail()


def test_an_interrupt_while_a_failed_body_is_cleaned_up_is_not_lost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AcpConversation, "cancel_turn", once(AcpConversation.cancel_turn, interrupt))

    async def fail_in_the_body() -> None:
        with suppress(RuntimeError):
            async with open_subagents() as subagents:
                subagents.register(stage.provider("end-silent", faulty=True))
                await subagents.start("fake", stage.request())
                await trio.testing.wait_all_tasks_blocked(0.1)
                fail()

    with pytest.raises(KeyboardInterrupt):
        trio.run(fail_in_the_body)


async def test_a_turn_whose_first_events_cannot_be_handed_out_settles_as_unexpected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.service("echo", faulty=True) as subagents:
        monkeypatch.setattr(EventFeed, "flush", once(EventFeed.flush, fail))
        result = await subagents.run("fake", stage.request())
    assert result.stop_reason == "error"
    assert UNKNOWN in (result.diagnostic or "")
    assert len(stage.failures) == 1


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_turn_that_cannot_begin_settles_as_unexpected_and_the_child_is_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    begin = AcpConversation.begin_turn
    monkeypatch.setattr(AcpConversation, "begin_turn", once(begin, fail, at=turn))
    async with stage.service("echo", faulty=True) as subagents:
        run = await subagents.start("fake", stage.request())
        ended: Any = run
        if turn == 2:
            await run.result()
            assert isinstance(run, SupportsResume)
            ended = await run.resume("again")
        result = await ended.result()
        report = await run.dispose()
        assert isinstance(run, SupportsResume)
        with pytest.raises(SessionEndedError):
            await run.resume("once more")
    assert result.stop_reason == "error"
    assert UNKNOWN in (result.diagnostic or "")
    assert (report.survivors, len(stage.failures)) == (0, 1)


@pytest.mark.parametrize("owner", [Tree, Child])
async def test_a_child_that_nobody_can_own_is_not_left_behind(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, owner: type
) -> None:
    before = children()
    monkeypatch.setattr(owner, "__init__", once(owner.__init__, fail))  # type: ignore[misc]  # replaced
    async with stage.service("echo", faulty=True) as subagents:
        with pytest.raises(SubagentStartError, match=UNKNOWN):
            await subagents.start("fake", SubagentRequest(prompt="x", parent=Parent(cwd="/")))
    assert children() == before


@pytest.mark.parametrize("survivors", [False, True])
async def test_a_teardown_that_cannot_be_judged_holds_nobody_up_and_hides_nothing(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    replace_kill: Callable[[Kill], None],
    survivors: bool,
) -> None:
    def classify_teardown(*_: object) -> None:
        raise RuntimeError("CANARY")

    monkeypatch.setattr(AcpConversation, "classify_teardown", classify_teardown)
    scenario: dict[str, Any] = {"turns": [[{"text": "said"}]]}
    graces: dict[str, Any] = {}
    if survivors:
        replace_kill(lambda table, number, processes, groups: None)
        scenario |= {"on_eof": {"ignore": True}, "lifetime_seconds": 60}
        graces = {"eof_grace_seconds": 0.2, "term_grace_seconds": 0.2, "kill_grace_seconds": 0.3}
    async with stage.service(scenario, **graces) as subagents:
        if not survivors:
            assert (await subagents.run("fake", stage.request())).text == "said"
            return
        with pytest.raises(SubagentTeardownError) as caught:
            await subagents.run("fake", stage.request())
    assert str(caught.value) == "Subagent failure (provider: ACP; stage: teardown; category: unknown)"
    assert caught.value.report is not None
    assert caught.value.report.survivors == 1
    assert str(caught.value.failure.cause) == "CANARY"
    assert stage.failures == [caught.value.failure]


@pytest.mark.parametrize(
    ("owner", "name"), [(EventFeed, "flush"), (EventFeed, "close"), (Turn, "settle"), (Line, "close")]
)
async def test_what_raises_whenever_it_is_called_ends_its_own_run_and_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: type, name: str
) -> None:
    before, real, broken = children(), getattr(owner, name), list[object]()
    real_init: Any = owner.__init__  # type: ignore[misc]  # replaced

    def replacement(self: object, *args: Any) -> Any:
        if any(self is one for one in broken):
            raise RuntimeError("CANARY")
        return real(self, *args)

    def init(self: object, *args: Any, **keywords: Any) -> None:
        broken.append(self)
        real_init(self, *args, **keywords)

    monkeypatch.setattr(owner, name, replacement)
    async with stage.service("turn-cancel", faulty=True) as subagents:
        other = await subagents.start("fake", stage.request())
        monkeypatch.setattr(owner, "__init__", init)
        run = await subagents.start("fake", stage.request())
        run.cancel()
        never_known = name in {"settle", "close"}  # nobody can wait for that
        with trio.move_on_after(2 if never_known else 20) as patience:
            async for _ in run.events():
                pass
        assert not patience.cancelled_caught or never_known
        other.cancel()
        assert (await other.result()).stop_reason == "aborted"
        await other.dispose()
        with suppress(SubagentTeardownError):  # of a run that broke down
            await run.dispose()
    assert children() == before
    assert "CANARY" not in caplog.text
