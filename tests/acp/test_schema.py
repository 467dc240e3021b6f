"""Reading an agent's answers: what is needed, and what is forgiven."""

from __future__ import annotations

from typing import Any

import pytest

from acp_subagent.acp.schema import (
    AgentCapabilities,
    InitializeResult,
    ListResult,
    NewSessionResult,
    PromptResult,
    SessionEntry,
    SessionResult,
    read,
)


def test_the_smallest_answer_to_initialize_will_do() -> None:
    answer = read(InitializeResult, {"protocolVersion": 1})
    assert answer is not None
    assert answer.agentCapabilities == AgentCapabilities()
    assert not answer.agentCapabilities.loadSession


@pytest.mark.parametrize("version", ["1", 1.0, True, -1, 65536, None, [1]])
def test_a_version_that_is_none_makes_the_answer_malformed(version: Any) -> None:
    assert read(InitializeResult, {"protocolVersion": version}) is None


@pytest.mark.parametrize("value", [None, 5, [], "x", {}])
@pytest.mark.parametrize(
    "model", [InitializeResult, NewSessionResult, PromptResult, ListResult, SessionEntry]
)
def test_an_answer_of_another_shape_is_malformed(model: Any, value: Any) -> None:
    assert read(model, value) is None


def capabilities(**raw: Any) -> AgentCapabilities:
    answer = read(InitializeResult, {"protocolVersion": 1, "agentCapabilities": raw})
    assert answer is not None
    return answer.agentCapabilities


def test_capabilities_are_read() -> None:
    read_ = capabilities(
        loadSession=True,
        promptCapabilities={"image": True, "audio": False, "embeddedContext": True, "_x": 1},
        sessionCapabilities={"resume": {}, "list": {"more": 1}, "close": None},
    )
    assert read_.loadSession
    assert (read_.promptCapabilities.image, read_.promptCapabilities.audio) == (True, False)
    assert read_.sessionCapabilities.resume == {}
    assert read_.sessionCapabilities.list == {"more": 1}
    assert read_.sessionCapabilities.close is None
    assert read_.sessionCapabilities.delete is None


@pytest.mark.parametrize("junk", [None, 5, "yes", []])
def test_a_malformed_capability_is_none(junk: Any) -> None:
    assert capabilities(loadSession=junk, promptCapabilities=junk, sessionCapabilities=junk) == (
        AgentCapabilities()
    )
    inner = capabilities(loadSession=1, promptCapabilities={"image": junk, "audio": True})
    assert (inner.loadSession, inner.promptCapabilities.image) == (False, False)
    assert inner.promptCapabilities.audio


def test_malformed_capabilities_as_a_whole_are_none() -> None:
    answer = read(InitializeResult, {"protocolVersion": 1, "agentCapabilities": "many"})
    assert answer is not None
    assert answer.agentCapabilities == AgentCapabilities()


@pytest.mark.parametrize("session_id", [None, 5, ["s"], True])
def test_a_session_needs_an_id_that_is_a_string(session_id: Any) -> None:
    assert read(NewSessionResult, {"sessionId": session_id}) is None
    good = read(NewSessionResult, {"sessionId": "", "modes": 5, "configOptions": "x", "models": {}})
    assert good is not None
    assert good.sessionId == ""


def test_load_and_resume_need_nothing() -> None:
    assert read(SessionResult, {}) is not None
    assert read(SessionResult, {"modes": None, "configOptions": None, "_meta": 1}) is not None


@pytest.mark.parametrize("reason", [None, 5, [], {}])
def test_a_stop_reason_is_a_string(reason: Any) -> None:
    assert read(PromptResult, {"stopReason": reason}) is None


def test_no_answer_shows_what_the_agent_said() -> None:
    with pytest.raises(Exception, match="SessionEntry") as caught:
        SessionEntry.model_validate({"sessionId": 5, "cwd": "SECRET", "SECRET": "SECRET"})
    assert "SECRET" not in str(caught.value)
