"""No secret gets out where a start is aborted, a session is lost, or the end of a tree fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from acp_subagent import (
    SessionRef,
    SubagentAbortedError,
    SubagentResult,
    SubagentStartError,
    SubagentTeardownError,
)
from tests.process.test_spawn import descriptors_left
from tests.run.canaries import FAULT, poisoned, secret
from tests.run.rows import line
from tests.run.waiting import until_exists
from tests.run.watching import AcpWatch, conduct

SURVIVORS = line("stage: teardown; category: survivors")
STAYS: dict[str, Any] = {"on_eof": {"ignore": True}, "lifetime_seconds": 60}
IMPATIENT: dict[str, Any] = {"eof_grace_seconds": 0.2, "term_grace_seconds": 0.2, "kill_grace_seconds": 0.3}
FAULTY_START = {"session_new": {"error": {"code": -32603, "message": ""}}}


@asynccontextmanager
async def aborted_when_asked(watch: AcpWatch, scenario: dict[str, Any]) -> AsyncIterator[trio.Event]:
    """An abort that is set once the agent, which does not answer, was asked for a session."""
    abort, asked = trio.Event(), watch.folder / "asked"
    scenario["session_new"] = {"before_answer": [{"touch_file": str(asked)}], "no_answer": True}

    async def abort_when_asked() -> None:
        await until_exists(asked)
        abort.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(abort_when_asked)
        yield abort


@pytest.mark.parametrize(
    ("scenario", "first"),
    [
        (FAULTY_START, line("stage: new-session; category: remote-error; rpc code: -32603")),
        ({"turns": [[{"error": {"code": -32603, "message": ""}}]]}, None),
        ({"turns": [[]]}, None),
    ],
    ids=["failed start", "failed turn", "completed turn"],
)
async def test_survivors_keep_every_secret(
    scenario: dict[str, Any], first: str | None, watch: AcpWatch, nobody_is_killed: None
) -> None:
    outcome = await conduct(watch, watch.provider(poisoned({**STAYS, **scenario}), **IMPATIENT))
    assert isinstance(outcome, SubagentStartError if first else SubagentTeardownError)
    assert str(outcome) == (f"{first}\n{SURVIVORS}" if first else SURVIVORS)


async def test_an_aborted_start_keeps_every_secret(watch: AcpWatch) -> None:
    scenario: dict[str, Any] = {}
    async with aborted_when_asked(watch, scenario) as abort:
        outcome = await conduct(watch, watch.provider(poisoned(scenario)), abort=abort)
    assert isinstance(outcome, SubagentAbortedError)


async def test_a_failed_clean_up_after_an_abort_keeps_every_secret(
    watch: AcpWatch, nobody_is_killed: None
) -> None:
    scenario = dict(STAYS)
    async with aborted_when_asked(watch, scenario) as abort:
        outcome = await conduct(watch, watch.provider(poisoned(scenario), **IMPATIENT), abort=abort)
    assert isinstance(outcome, SubagentTeardownError)
    assert str(outcome) == SURVIVORS


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({"error": {"code": -32002, **FAULT}}, "; rpc code: -32002"),
        ({"result": [secret("session-answer")]}, ""),
        (None, ""),
    ],
    ids=["refused", "malformed", "not advertised"],
)
async def test_a_lost_session_keeps_every_secret(answer: Any, fields: str, watch: AcpWatch) -> None:
    scenario = {"session_load": answer, "capabilities": {"loadSession": True}} if answer else {}
    session = SessionRef("fake", str(watch.cwd), secret("session-token"))
    outcome = await conduct(watch, watch.provider(poisoned(scenario)), session=session)
    assert isinstance(outcome, SubagentStartError)
    assert str(outcome) == line(f"stage: new-session; category: session-lost{fields}")


async def test_a_start_without_a_descriptor_left_keeps_every_secret(watch: AcpWatch) -> None:
    assert isinstance(await conduct(watch, watch.provider(poisoned({})), reaper=False), SubagentResult)
    with descriptors_left(2):
        outcome = await conduct(watch, watch.provider(poisoned({})), reaper=False)
    assert isinstance(outcome, SubagentStartError)
    assert outcome.failure.reason == "out-of-descriptors"
