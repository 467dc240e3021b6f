"""Every built-in scenario is run, and does what its name says. All frames are judged, except where breaking
is the point.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_acp_server import builtin
from fake_acp_server.scenario import Scenario
from tests.fake.driver import Fake, LifeSocket
from tests.fake.visitor import Visit, leave
from tests.support.marks import end_marked

Start = Callable[..., Fake]

#: Scenario -> how a plain conversation with it ends. What is not here ends with end_turn.
ENDS = {
    "login": "new: error -32000",
    "endless": "prompt: cancelled",
    "start-exit": "initialize: exit 3",
    "start-exit-at-once": "initialize: exit 1",
    "start-exit-clean": "initialize: exit 0",
    "start-killed": "initialize: signal 9",
    "start-closes-stdout": "initialize: closed",
    "start-auth-required": "initialize: error -32000",
    "start-error": "initialize: error -32603",
    "start-noise": "initialize: silent",
    "start-malformed": "initialize: malformed",
    "start-huge-frame": "initialize: huge",
    "start-silent": "initialize: silent",
    "session-exit": "new: exit 3",
    "session-killed": "new: signal 11",
    "session-closes-stdout": "new: closed",
    "session-auth-required": "new: error -32000",
    "session-error": "new: error -32603",
    "session-no-id": "new: malformed",
    "session-bad-id": "new: malformed",
    "session-malformed": "new: malformed",
    "session-huge-frame": "new: huge",
    "session-silent": "new: silent",
    "end-max-tokens": "prompt: max_tokens",
    "end-max-turn-requests": "prompt: max_turn_requests",
    "end-refusal": "prompt: refusal",
    "end-cancelled": "prompt: cancelled",
    "end-unknown-reason": "prompt: sunspots",
    "end-no-reason": "prompt: None",
    "end-bad-reason": "prompt: 7",
    "end-null-result": "prompt: malformed",
    "end-error": "prompt: error -32603",
    "end-odd-error": "prompt: error 4711",
    "end-auth-required": "prompt: error -32000",
    "end-exit": "prompt: exit 3",
    "end-exit-clean": "prompt: exit 0",
    "end-killed": "prompt: signal 9",
    "end-crash": "prompt: signal 6",
    "end-closes-stdout": "prompt: closed",
    "end-closes-stdin": "prompt: silent",
    "end-stops-reading": "prompt: silent",
    "end-huge-frame": "prompt: huge",
    "end-silent": "prompt: silent",
    "end-silent-tool": "prompt: silent",
    "end-half-frame": "prompt: exit 1",
    "end-exec": "prompt: exit 0",
    "wire-split-frames": "prompt: end_turn",
    "wire-result-and-error": "prompt: malformed",
    "wire-late-answer": "prompt: silent",
    "turn-cancel": "prompt: cancelled",
    "turn-cancel-error": "prompt: error -32603",
    "turn-cancel-slow": "prompt: silent",
    "turn-cancel-never": "prompt: silent",
    "turn-cancel-never-tool": "prompt: silent",
    "turn-cancel-permission-never": "prompt: silent",
    "turn-permission-then-fails": "prompt: error -32603",
    "turn-cancel-flood": "prompt: flood",
    "turn-cancel-exit": "prompt: exit 0",
    "turn-cancel-ignored": "prompt: silent",
    "turn-cancel-tail": "prompt: cancelled",
    "turn-cancel-spoils-next": "prompt: error -32603",
    "turn-cancel-before-permission": "prompt: cancelled",
    "turn-cancel-permission": "prompt: cancelled",
    "turn-tool-outlives-cancel": "prompt: cancelled",
    "turn-model-error": "prompt: error -32603",
    "turn-model-retries-silently": "prompt: silent",
    "process-eof-waits-for-turn": "prompt: silent",
}

#: Scenarios in which frames are wrong on purpose.
BROKEN = {
    "start-version-text", "start-malformed", "session-no-id", "session-bad-id", "session-malformed",
    "end-unknown-reason", "end-no-reason", "end-bad-reason", "end-null-result",
    "wire-unknown-methods", "wire-idless-errors", "wire-extra-fields", "wire-permission-no-options",
    "wire-json-noise", "wire-crlf", "wire-nulls", "wire-unknown-variants", "wire-bad-utf8",
    "wire-foreign-answer", "wire-wrong-id-type", "wire-result-and-error",
}  # fmt: skip

#: Scenarios whose frames are right, and so long that judging them takes long.
HUGE = {"wire-huge-answer"}

#: Scenarios with a part that only a cancel shows.
CANCELLED = [name for name in builtin.purposes() if name.startswith("turn-cancel")]
CANCELLED += ["turn-tool-outlives-cancel", "endless", "wire-late-answer"]

#: Wire scenarios whose answer is another text.
WITHOUT_THE_WORD = ("wire-glued-frames", "wire-line-separators", "wire-long-lines", "wire-result-and-error")

#: Scenarios that take longer than a patient client waits for a word; run for themselves below.
SLOW = {"process-slow-start", "turn-model-retries", "turn-cancel-flood"}

NAMES = [name for name in builtin.purposes() if name not in SLOW]


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment that marks what a fake leaves behind; whoever carries it is ended with the test."""
    yield {"FAKE_TEST": str(tmp_path)}
    end_marked(f"FAKE_TEST={tmp_path}")


@pytest.mark.parametrize("name", NAMES)
def test_a_builtin_ends_as_its_name_says(
    start: Start, start_faulty: Start, mark: dict[str, str], name: str
) -> None:
    fake = (start_faulty if name in BROKEN or name in HUGE else start)(name, environment=mark)
    expected = ENDS.get(name, "prompt: end_turn")
    visit = Visit(fake, cancel_at_text=name in CANCELLED, ends=expected)
    assert visit.run() == expected
    if name.startswith("wire-") and name not in (*ENDS, *WITHOUT_THE_WORD):
        assert "answer" in visit.answer  # the odd habit lost nothing


def test_names_and_purposes_are_one_line_each() -> None:
    for name, purpose in builtin.purposes().items():
        assert purpose == purpose.strip()
        assert 10 < len(purpose) < 110, name
        assert builtin.find(name) is not None
        assert Scenario(builtin.everything()[name]).name == name
    assert set(ENDS) | BROKEN | SLOW <= set(builtin.purposes())
    assert builtin.find("no-such") is None


def test_a_slow_start_takes_its_time(start: Start) -> None:
    fake = start("process-slow-start")
    begun = time.monotonic()
    fake.open_session()
    assert time.monotonic() - begun > 2
    assert leave(fake) == 0


def test_retries_are_told_by_notifications_and_a_cancel_ends_them(start: Start) -> None:
    fake = start("turn-model-retries")
    session = fake.open_session()
    prompt = fake.prompt(session)
    fake.read_until(lambda frame: frame.get("method") == "_session/retrying")
    fake.notify("session/cancel", {"sessionId": session})
    assert fake.read_answer(prompt)["result"] == {"stopReason": "cancelled"}


def test_a_flood_after_a_cancel_has_no_end(start: Start) -> None:
    fake = start("turn-cancel-flood")
    session = fake.open_session()
    fake.prompt(session)
    fake.read_until(lambda frame: "method" in frame)
    fake.notify("session/cancel", {"sessionId": session})
    for _ in range(3000):
        assert "method" in fake.read()


def test_a_rejected_permission_can_end_the_turn(start: Start) -> None:
    assert Visit(start("turn-reject-ends"), allow=False).run() == "prompt: cancelled"
    assert Visit(start("turn-permission"), allow=False).run() == "prompt: end_turn"


def test_a_disobedient_agent_completes_what_was_denied(start: Start) -> None:
    fake = start("turn-disobeys")
    prompt = fake.prompt(fake.open_session())
    fake.select_option(fake.read_request(), "reject-once")
    fake.read_answer(prompt)
    assert fake.updates("tool_call_update")[-1]["status"] == "completed"


def test_the_prompt_after_a_spoilt_cancel_only_says_queued(start: Start) -> None:
    fake = start("turn-cancel-spoils-next")
    session = fake.open_session()
    prompt = fake.prompt(session)
    fake.read_until(lambda frame: "method" in frame)
    fake.notify("session/cancel", {"sessionId": session})
    assert fake.read_answer(prompt)["error"]["code"] == -32603
    assert fake.read_answer(fake.prompt(session))["result"] == {"stopReason": "end_turn"}
    assert "Queued" in fake.text()


def test_a_permission_is_called_off_after_the_cancelled_answer(start: Start) -> None:
    fake = start("turn-cancel-before-permission")
    session = fake.open_session()
    prompt = fake.prompt(session)
    request = fake.read_request()
    fake.notify("session/cancel", {"sessionId": session})
    assert fake.read_answer(prompt)["result"] == {"stopReason": "cancelled"}
    called_off = fake.read_until(lambda frame: frame.get("method") == "$/cancel_request")
    assert called_off["params"] == {"requestId": request["id"]}
    fake.answer(request, {"outcome": {"outcome": "cancelled"}})


@pytest.mark.parametrize(("name", "code"), [("demo", 0), ("process-exit-code", 1), ("process-slow-eof", 0)])
def test_the_end_of_stdin_ends_it_with_its_code(start: Start, name: str, code: int) -> None:
    fake = start(name)
    fake.open_session()
    assert leave(fake) == code


@pytest.mark.parametrize(("name", "survives"), [("process-cleans-up", False), ("process-own-session", True)])
def test_a_child_is_left_behind_or_ended(start: Start, life: LifeSocket, name: str, survives: bool) -> None:
    fake = start(name, environment={"FAKE_ACP_CHILD_SOCKET": life.path})
    fake.read_answer(fake.prompt(fake.open_session()))
    connection, said = life.accept()
    leave(fake)
    if survives:
        import os
        import signal

        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
        os.kill(int(said.split()[1]), signal.SIGKILL)
        connection.settimeout(20)
    assert connection.recv(1) == b""
