"""Nothing that an agent says, and no value of a variable, is ever on our stderr."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.driver import (
    NOTHING_IS_KILLED,
    THE_EXIT_IS_COLLECTED,
    THE_KILL_RAISES,
    CommandLine,
    Ended,
    Scenario,
    arguments,
    environment,
    run,
    turn,
)
from tests.fake.driver import LifeSocket

#: every word of the agent below begins with this
CANARY = "canary"

EVERYTHING: list[object] = [
    {"raw": {"text": f"{CANARY}-noise\n"}},
    {"stderr": f"{CANARY}-stderr"},
    {"thought": f"{CANARY}-thought"},
    {"plan": [{"content": f"{CANARY}-plan", "priority": "high", "status": "pending"}]},
    {
        "tool_call": {
            "toolCallId": f"{CANARY}-call",
            "title": f"{CANARY}-title",
            "kind": f"{CANARY}-kind",
            "status": f"{CANARY}-status",
            "locations": [{"path": f"/{CANARY}-path"}],
            "rawInput": {CANARY: f"{CANARY}-input"},
        }
    },
    {
        "permission": {
            "tool_call": {
                "toolCallId": f"{CANARY}-call",
                "title": f"{CANARY}-asked",
                "kind": f"{CANARY}-kind",
            },
            "options": [
                {"optionId": f"{CANARY}-option", "name": f"{CANARY}-name", "kind": "reject_once"},
                {"optionId": f"{CANARY}-other", "name": f"{CANARY}-name", "kind": f"{CANARY}-kind"},
            ],
        }
    },
    {"update": {"sessionUpdate": f"{CANARY}-update", "value": f"{CANARY}-value"}},
    {"update": {"sessionUpdate": "current_mode_update", "currentModeId": f"{CANARY}-mode"}},
    {"notify": {"method": f"{CANARY}/method", "params": {"a": CANARY}}},
    {"request": {"method": "fs/read_text_file", "params": {"path": f"/{CANARY}-file"}}},
    {"text": {"text": "the answer", "message_id": f"{CANARY}-message"}},
]

ENDS: dict[str, list[object]] = {
    "completed": [{"stop": {"stopReason": "end_turn", "_meta": {"a": CANARY}}}],
    "unknown stop reason": [{"stop": f"{CANARY}-stop"}],
    "malformed answer": [{"stop": {"stopReason": {"a": CANARY}}}],
    "remote error": [{"error": {"code": -32603, "message": f"{CANARY}-error", "data": {"a": [CANARY]}}}],
    "exit": [{"exit": 3}],
    "signal": [{"signal": "KILL"}],
    "noise for an end": [{"raw": {"text": f"{CANARY}-tail"}}, {"exit": 0}],
    "deadline": [{"wait_cancel": True}],
}

BESIDE: dict[str, object] = {
    "session_id": f"{CANARY}-session",
    "agent_info": {"name": f"{CANARY}-agent", "version": f"{CANARY}-version"},
    "auth_methods": [{"id": f"{CANARY}-auth", "name": f"{CANARY}-login"}],
}


def observed(scenario: Scenario, *options: str) -> Ended:
    env = environment(SOME_API_KEY=f"{CANARY}-key-value")
    secret = ("--env", f"GIVEN={CANARY}-given")
    return run(scenario, *secret, *options, prompt=f"{CANARY}-prompt", env=env)


@pytest.mark.parametrize("end", ENDS)
def test_no_word_of_the_agent_is_on_stderr_whatever_the_end(end: str) -> None:
    limit = ["--turn-timeout", "2"] if end == "deadline" else []
    done = observed(turn(*EVERYTHING, *ENDS[end], **BESIDE), "--format", "json", *limit)
    assert CANARY not in done.stderr
    assert f"{CANARY}-session" in done.stdout
    assert end == "deadline" or done.json["text"] == "the answer"


@pytest.mark.parametrize(
    "scenario",
    [
        {"session_new": {"error": {"code": -32603, "message": CANARY, "data": CANARY}}},
        {"initialize": {"merge": {"protocolVersion": 7, "agentInfo": {"name": CANARY, "version": CANARY}}}},
        {"initialize": {"raw": {"text": f"{CANARY}\n"}}, "start": [{"stderr": CANARY}]},
        {"session_new": {"result": {"sessionId": {"a": CANARY}}}},
    ],
)
def test_no_word_of_the_agent_is_on_stderr_when_the_start_fails(scenario: Scenario) -> None:
    done = observed(scenario, "--startup-timeout", "2")
    assert done.code in {1, 3}
    assert "Subagent failure" in done.stderr
    assert CANARY not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("program", "said", "code"),
    [
        (NOTHING_IS_KILLED, "survivors", 8),
        (THE_KILL_RAISES, "process-exit; signal: SIGKILL", 130),
        (THE_EXIT_IS_COLLECTED, "unknown", 130),
    ],
    ids=["survivors", "a bug of ours", "no exit"],
)
def test_no_word_of_the_agent_is_on_stderr_when_the_teardown_fails(
    tmp_path: Path, program: str, said: str, code: int
) -> None:
    with LifeSocket(tmp_path) as life:
        stubborn = turn(
            *EVERYTHING,
            {"sleep": 600},
            start=[{"ignore_term": True}, {"stderr": f"{CANARY}-stderr"}],
            on_eof={"ignore": True},
            on_cancel="ignore",
            life_socket=life.path,
            lifetime_seconds=60,
            **BESIDE,
        )
        given = arguments(stubborn, "--env", f"GIVEN={CANARY}-given", prompt=f"{CANARY}-prompt")
        with CommandLine(given, code=program) as started:
            connection, greeting = life.accept()
            started.read_until("permission denied", "stderr")
            started.signal(signal.SIGINT)
            started.read_until("once more", "stderr")
            started.signal(signal.SIGINT)
            done = started.end()
            if program == NOTHING_IS_KILLED:
                os.kill(int(greeting.split()[1]), signal.SIGKILL)
            assert connection.recv(1) == b""
    assert done.code == code
    assert f"Subagent failure (provider: ACP; stage: teardown; category: {said})" in done.stderr
    assert CANARY not in done.stderr


def test_the_answer_alone_is_on_stdout() -> None:
    done = observed(turn(*EVERYTHING))
    assert done.stdout == "the answer\n"


def test_the_local_detail_is_shown_to_whoever_asks_for_it() -> None:
    error = {"code": -32603, "message": f"{CANARY}-error", "data": {"a": 1}}
    scenario = turn({"stderr": f"{CANARY}-stderr"}, {"error": error})
    done = observed(scenario, "--show-failure")
    assert f"  stderr_tail: {CANARY}-stderr" in done.stderr
    assert f"  rpc_error: {json.dumps(error)}" in done.stderr


@pytest.mark.parametrize("end", ["login", "deadline"])
def test_names_of_variables_that_were_held_back_are_told_without_their_values(end: str) -> None:
    scenario = {"session_new": {"needs_auth": True}} if end == "login" else turn({"wait_cancel": True})
    options = ("--turn-timeout", "0.2")
    done = observed(scenario, *options)
    assert "SOME_API_KEY" in done.stderr
    assert "--pass-env" in done.stderr
    assert CANARY not in done.stderr
    assert "SOME_API_KEY" not in observed(scenario, *options, "--pass-env", "SOME_API_KEY").stderr


def test_held_back_variables_are_no_topic_when_nothing_hints_at_them() -> None:
    assert "SOME_API_KEY" not in observed(turn({"exit": 1})).stderr
