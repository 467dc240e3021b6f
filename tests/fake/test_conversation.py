"""A client's whole conversation with the fake: what it says when nothing is broken. Every frame is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake.driver import Fake

Start = Callable[..., Fake]


def turns(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A scenario whose every turn has these steps."""
    return {"turns": [list(steps)], **more}


def test_demo_runs_a_whole_turn_with_an_allowed_edit(start: Start) -> None:
    fake = start("demo")
    session = fake.open_session()
    prompt = fake.prompt(session, "count")
    request = fake.read_request()
    assert [option["kind"] for option in request["params"]["options"]] == [
        "allow_once", "allow_always", "reject_once", "reject_always",
    ]  # fmt: skip
    fake.select_option(request, "allow-once")
    assert fake.read_answer(prompt)["result"] == {"stopReason": "end_turn"}
    assert fake.updates("tool_call_update")[-1]["status"] == "completed"
    assert fake.updates("tool_call")[0]["locations"][0]["path"] == "/srv/demo/notes.txt"
    assert len({update["messageId"] for update in fake.updates("agent_message_chunk")}) == 1
    assert fake.text().endswith("You asked: count")
    assert fake.call("session/close", {"sessionId": session})["result"] == {}
    fake.close_stdin()
    assert fake.exit_code() == 0


@pytest.mark.parametrize("option", ["reject-once", "reject-always"])
def test_demo_goes_on_after_a_rejected_edit(start: Start, option: str) -> None:
    fake = start("demo")
    prompt = fake.prompt(fake.open_session())
    fake.select_option(fake.read_request(), option)
    assert fake.read_answer(prompt)["result"] == {"stopReason": "end_turn"}
    assert fake.updates("tool_call_update")[-1]["status"] == "failed"


def test_cancel_with_an_open_permission_waits_for_its_answer_and_ends_cancelled(start: Start) -> None:
    fake = start("demo")
    session = fake.open_session()
    prompt = fake.prompt(session)
    request = fake.read_request()
    fake.notify("session/cancel", {"sessionId": session})
    fake.answer(request, {"outcome": {"outcome": "cancelled"}})
    assert fake.read_answer(prompt)["result"] == {"stopReason": "cancelled"}


def test_cancel_in_the_middle_of_a_stream_is_seen_at_once(start: Start) -> None:
    fake = start(turns({"text": {"text": "x", "forever": True, "delay_seconds": 0.001}}))
    session = fake.open_session()
    prompt = fake.prompt(session)
    fake.read_until(lambda frame: "method" in frame)
    fake.notify("session/cancel", {"sessionId": session})
    assert fake.read_answer(prompt)["result"] == {"stopReason": "cancelled"}


def test_cancel_of_an_idle_session_changes_nothing(start: Start) -> None:
    fake = start("echo")
    session = fake.open_session()
    fake.notify("session/cancel", {"sessionId": session})
    assert fake.read_answer(fake.prompt(session))["result"] == {"stopReason": "end_turn"}


def test_a_cancelled_request_is_answered_with_its_own_error(start: Start) -> None:
    fake = start({"session_new": {"delay_seconds": 60}})
    fake.call("initialize", {"protocolVersion": 1})
    request = fake.request("session/new", {"cwd": "/srv", "mcpServers": []})
    fake.notify("$/cancel_request", {"requestId": request})
    assert fake.read_answer(request)["error"]["code"] == -32800


@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        ("end_turn", {"result": {"stopReason": "end_turn"}}),
        ({"steps": [{"text": "tail"}, {"stop": "cancelled"}]}, {"result": {"stopReason": "cancelled"}}),
        ({"steps": []}, {"result": {"stopReason": "cancelled"}}),
    ],
)
def test_what_a_cancel_does_is_the_scenarios_choice(start: Start, policy: Any, answer: Any) -> None:
    fake = start(turns({"text": "begun"}, {"sleep": 60}, on_cancel=policy))
    session = fake.open_session()
    prompt = fake.prompt(session)
    fake.read_until(lambda frame: "method" in frame)
    fake.notify("session/cancel", {"sessionId": session})
    got = fake.read_answer(prompt)
    assert {key: got[key] for key in answer} == answer


def test_an_ignored_cancel_lets_the_turn_finish(start: Start) -> None:
    fake = start(turns({"text": "begun"}, {"sleep": 0.05}, {"text": " done"}, on_cancel="ignore"))
    session = fake.open_session()
    prompt = fake.prompt(session)
    fake.notify("session/cancel", {"sessionId": session})
    assert fake.read_answer(prompt)["result"] == {"stopReason": "end_turn"}
    assert fake.text() == "begun done"


def test_close_cancels_the_running_turn_first(start: Start) -> None:
    fake = start(turns({"sleep": 60}))
    session = fake.open_session()
    prompt = fake.prompt(session)
    close = fake.request("session/close", {"sessionId": session})
    assert fake.read_answer(prompt)["result"] == {"stopReason": "cancelled"}
    assert fake.read_answer(close)["result"] == {}
    assert fake.call("session/prompt", {"sessionId": session, "prompt": []})["error"]["code"] == -32002


def test_each_turn_has_its_steps_and_the_last_repeats(start: Start) -> None:
    fake = start({"turns": [[{"text": "one "}], [{"text": "more "}]]})
    session = fake.open_session()
    for _ in range(3):
        fake.read_answer(fake.prompt(session))
    assert fake.text() == "one more more "


def test_two_sessions_run_their_turns_side_by_side(start: Start) -> None:
    fake = start({"turns": [[{"permission": {}}]]})
    first = fake.open_session()
    second = fake.call("session/new", {"cwd": "/srv", "mcpServers": []})["result"]["sessionId"]
    assert first != second
    first_prompt, second_prompt = fake.prompt(first), fake.prompt(second)
    requests = [fake.read_request(), fake.read_request()]
    assert {request["params"]["sessionId"] for request in requests} == {first, second}
    for request in requests:
        fake.select_option(request, "allow-once")
    answers = {fake.read_until(lambda frame: "result" in frame)["id"] for _ in range(2)}
    assert answers == {first_prompt, second_prompt}


def test_updates_may_come_before_the_session_and_after_the_answer(start: Start) -> None:
    fake = start(
        {
            "session_new": {"before_answer": [{"text": {"text": "early", "message_id": "banner"}}]},
            "turns": [[{"text": "inside"}, {"stop": "end_turn"}, {"text": "late"}]],
        }
    )
    session = fake.open_session()
    assert fake.text() == "early"
    assert fake.seen[-2]["params"]["sessionId"] == session
    fake.read_answer(fake.prompt(session))
    fake.read_until(lambda frame: fake.text().endswith("late"))


def test_load_replays_the_history_before_its_answer_and_resume_does_not(start: Start) -> None:
    fake = start({"capabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}}}})
    session = fake.open_session()
    fake.read_answer(fake.prompt(session, "remember"))
    assert fake.call("session/list", {})["result"]["sessions"] == [{"sessionId": session, "cwd": "/srv/demo"}]
    fake.seen.clear()
    there = {"sessionId": session, "cwd": "/srv/demo", "mcpServers": []}
    assert fake.call("session/load", there)["result"] == {}
    assert fake.text() == "remember"
    fake.seen.clear()
    assert fake.call("session/resume", there)["result"] == {}
    assert fake.text() == ""


def test_modes_and_options_can_be_set_and_read_back(start: Start) -> None:
    options = [
        {"id": "model", "name": "Model", "type": "select", "currentValue": "small",
         "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}
    ]  # fmt: skip
    modes = {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
    }
    fake = start({"session_new": {"merge": {"modes": modes, "configOptions": options}}})
    session = fake.open_session()
    assert fake.call("session/set_mode", {"sessionId": session, "modeId": "code"})["result"] == {}
    assert fake.call("session/set_mode", {"sessionId": session, "modeId": "x"})["error"]["code"] == -32602
    chosen = {"sessionId": session, "configId": "model", "value": "large"}
    answered = fake.call("session/set_config_option", chosen)["result"]["configOptions"]
    assert answered[0]["currentValue"] == "large"


def test_a_session_that_needs_login_opens_after_authenticate(start: Start) -> None:
    fake = start({"auth_methods": [{"id": "key", "name": "Key"}], "session_new": {"needs_auth": True}})
    fake.call("initialize", {"protocolVersion": 1})
    wanted = {"cwd": "/srv", "mcpServers": []}
    assert fake.call("session/new", wanted)["error"]["code"] == -32000
    assert fake.call("authenticate", {"methodId": "nope"})["error"]["code"] == -32602
    assert fake.call("authenticate", {"methodId": "key"})["result"] == {}
    assert "sessionId" in fake.call("session/new", wanted)["result"]


@pytest.mark.parametrize(("style", "kind"), [("int", int), ("string", str), ("uuid", str)])
def test_the_agents_request_ids_have_the_chosen_style(start: Start, style: str, kind: type) -> None:
    fake = start(turns({"permission": {}}, ids=style))
    prompt = fake.prompt(fake.open_session())
    request = fake.read_request()
    assert isinstance(request["id"], kind)
    assert style != "int" or request["id"] == 0
    fake.select_option(request, "allow-once")
    fake.read_answer(prompt)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ({"outcome": "selected", "optionId": "allow-always"}, "exact"),
        ({"outcome": "selected", "optionId": "allow-once"}, "kind"),
        ({"outcome": "selected", "optionId": "reject-once"}, "reject"),
        ({"outcome": "selected", "optionId": "made-up"}, "reject"),
        ({"outcome": "cancelled"}, "cancelled"),
    ],
)
def test_a_permission_branches_by_option_then_kind_then_decision(
    start: Start, outcome: Any, text: str
) -> None:
    names = {"allow-always": "exact", "allow_once": "kind", "allow": "allow", "reject": "reject"}
    branches = {key: [{"text": word}] for key, word in {**names, "cancelled": "cancelled"}.items()}
    fake = start(turns({"permission": {"on": branches}}))
    prompt = fake.prompt(fake.open_session())
    fake.answer(fake.read_request(), {"outcome": outcome})
    fake.read_answer(prompt)
    assert fake.text() == text


def test_a_request_branches_on_result_and_error(start: Start) -> None:
    fake = start(
        turns(
            {"request": {
                "method": "fs/read_text_file",
                "params": {"sessionId": "${session_id}", "path": "${cwd}/a.txt"},
                "on": {"result": [{"text": "read"}], "error": [{"text": "refused"}]},
            }}
        )
    )  # fmt: skip
    session = fake.open_session({"fs": {"readTextFile": True}})
    prompt = fake.prompt(session)
    request = fake.read_request("fs/read_text_file")
    assert request["params"] == {"sessionId": session, "path": "/srv/demo/a.txt"}
    fake.answer(request, {"content": "x"})
    fake.read_answer(prompt)
    prompt = fake.prompt(session)
    fake.send(
        {"id": fake.read_request("fs/read_text_file")["id"], "error": {"code": -32002, "message": "no"}}
    )
    fake.read_answer(prompt)
    assert fake.text() == "readrefused"


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("prompt", "the task"),
        ("session", '"session-1"'),
        ("argv", '"extra argument"'),
        ("env", '"FAKE_ACP_MARK"'),
    ],
)
def test_echo_tells_what_reached_the_agent(start: Start, what: str, expected: str) -> None:
    fake = start(
        turns({"echo": what}), arguments=("extra argument",), environment={"FAKE_ACP_MARK": "secret value"}
    )
    prompt = fake.prompt(fake.open_session(), "the task")
    fake.read_answer(prompt)
    assert expected in fake.text()
    assert "secret value" not in fake.text()


def test_echo_frames_shows_what_was_received_so_far(start: Start) -> None:
    fake = start(turns({"echo": "frames"}))
    fake.read_answer(fake.prompt(fake.open_session()))
    assert [name for name in ("initialize", "session/new", "session/prompt") if name in fake.text()] == [
        "initialize", "session/new", "session/prompt",
    ]  # fmt: skip


def test_a_second_prompt_can_be_refused_queued_or_cancel_the_first(start: Start) -> None:
    for policy, answers in {
        "error": ["error", "end_turn"],
        "queue": ["end_turn", "end_turn"],
        "cancel_first": ["cancelled", "end_turn"],
        "end_turn": ["end_turn", "end_turn"],
    }.items():
        fake = start(
            {"second_prompt": policy, "turns": [[{"text": "begun"}, {"sleep": 0.1}], [{"text": "two"}]]}
        )
        session = fake.open_session()
        fake.prompt(session)
        fake.read_until(lambda frame: "method" in frame)
        fake.prompt(session)
        got = [fake.read_until(lambda frame: "method" not in frame) for _ in range(2)]
        assert [answer.get("result", {}).get("stopReason", "error") for answer in got] == answers
