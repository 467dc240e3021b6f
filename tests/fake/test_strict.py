"""Strict mode finds each way to break the protocol, and nothing in a client that keeps it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fake_acp_server import rules
from fake_acp_server.builtin_basics import OPTIONS
from tests.fake.driver import REPOSITORY, Fake, fake_command
from tests.fake.visitor import Visit, leave

Start = Callable[..., Fake]

NEW = {"cwd": "/srv", "mcpServers": []}
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
OFFERED = {
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]},
    "configOptions": OPTIONS,
}


@pytest.fixture
def judge(start_faulty: Start, tmp_path: Path) -> Callable[..., Any]:
    """Runs a conversation in strict mode; gives the rules that were broken, and checks the report."""

    def run(scenario: dict[str, Any] | str, conversation: Callable[[Fake], None]) -> list[str]:
        path = tmp_path / "report.json"
        fake = start_faulty(scenario, arguments=("--report", str(path)))
        conversation(fake)
        code = leave(fake)
        report = json.loads(path.read_text())
        jsonschema.validate(report, rules.REPORT_SCHEMA)
        assert report["complete"]
        assert code == (0 if report["ok"] else 1)
        return [violation["rule"] for violation in report["violations"]]

    return run


@pytest.mark.parametrize("name", ["demo", "rich", "files", "terminal", "options", "turn-two-permissions"])
def test_a_client_that_keeps_the_rules_passes(judge: Any, name: str) -> None:
    assert judge(name, lambda fake: Visit(fake).run()) == []


@pytest.mark.parametrize("name", ["turn-cancel-permission", "turn-cancel-before-permission", "endless"])
def test_a_client_that_cancels_as_it_should_passes(judge: Any, name: str) -> None:
    def cancel(fake: Fake) -> None:
        session = fake.open_session()
        prompt = fake.prompt(session)
        fake.read_until(lambda frame: "method" in frame)
        request = fake.read_request() if "permission" in name else None
        fake.notify("session/cancel", {"sessionId": session})
        if request:
            fake.answer(request, {"outcome": {"outcome": "cancelled"}})
        fake.read_answer(prompt)

    assert judge(name, cancel) == []


#: What a client does wrong in an open session (a list of frames without ``jsonrpc``) -> the rule it breaks.
WRONG_FRAMES: list[tuple[str, list[dict[str, Any]]]] = [
    ("frame", [{"id": 50, "method": "session/new", "params": NEW, "extra": 1}]),
    ("frame", [{"id": None, "method": "session/new", "params": NEW}]),
    ("frame", [{"id": 1.5, "method": "session/new", "params": NEW}]),
    ("frame", [{"id": 50, "method": "session/cancel", "params": {"sessionId": "session-1"}}]),
    ("frame", [{"method": "session/new", "params": NEW}]),
    ("unknown-method", [{"id": 50, "method": "session/fork", "params": {}}]),
    ("params", [{"id": 50, "method": "session/new", "params": {"cwd": "srv", "mcpServers": []}}]),
    ("params", [{"id": 50, "method": "session/new", "params": {"cwd": "/srv"}}]),
    ("params", [{"id": 50, "method": "session/new", "params": {"cwd": "/", "mcpServers": [{"name": "x"}]}}]),
    ("unknown-key", [{"id": 50, "method": "session/new", "params": {**NEW, "colour": 1}}]),
    (
        "unknown-key",
        [
            {
                "id": 50,
                "method": "session/prompt",
                "params": {"sessionId": "session-1", "prompt": [{**TEXT, "colour": 1}]},
            }
        ],
    ),
    ("initialize-first", [{"id": 50, "method": "initialize", "params": {"protocolVersion": 1}}]),
    ("not-advertised", [{"id": 50, "method": "session/list", "params": {}}]),
    (
        "not-advertised",
        [{"id": 50, "method": "session/prompt", "params": {"sessionId": "session-1", "prompt": [IMAGE]}}],
    ),
    (
        "not-advertised",
        [{"id": 50, "method": "session/new", "params": {**NEW, "additionalDirectories": ["/x"]}}],
    ),
    (
        "not-advertised",
        [
            {
                "id": 50,
                "method": "session/new",
                "params": {
                    "cwd": "/",
                    "mcpServers": [{"type": "http", "name": "x", "url": "https://x", "headers": []}],
                },
            }
        ],
    ),
    ("auth-method", [{"id": 50, "method": "authenticate", "params": {"methodId": "made-up"}}]),
    (
        "unknown-session",
        [{"id": 50, "method": "session/prompt", "params": {"sessionId": "z", "prompt": [TEXT]}}],
    ),
    ("unknown-session", [{"method": "session/cancel", "params": {"sessionId": "z"}}]),
    (
        "empty-prompt",
        [{"id": 50, "method": "session/prompt", "params": {"sessionId": "session-1", "prompt": []}}],
    ),
    (
        "mode-or-option",
        [{"id": 50, "method": "session/set_mode", "params": {"sessionId": "session-1", "modeId": "none"}}],
    ),
    ("foreign-answer", [{"id": 50, "result": {}}]),
    ("frame", [{"id": 2**64, "method": "_x", "params": {}}]),
    ("params", [{"id": 50, "method": "_x", "params": 7}]),
    (
        "params",
        [
            {
                "id": 50,
                "method": "session/new",
                "params": {"cwd": "/", "mcpServers": [{"name": "x", "command": "x", "args": [], "env": []}]},
            }
        ],
    ),
    *(
        (
            "mode-or-option",
            [
                {
                    "id": 50,
                    "method": "session/set_config_option",
                    "params": {"sessionId": "session-1", "configId": option, "value": value},
                }
            ],
        )
        for option, value in (("none", "low"), ("effort", "enormous"))
    ),
]


@pytest.mark.parametrize(("rule", "frames"), WRONG_FRAMES)
def test_a_wrong_frame_breaks_its_rule_and_no_other(judge: Any, rule: str, frames: Any) -> None:
    def misbehave(fake: Fake) -> None:
        fake.open_session()
        for frame in frames:
            fake.send(frame)

    assert judge({"session_new": {"merge": OFFERED}}, misbehave) == [rule]


@pytest.mark.parametrize(
    "line",
    [
        b"hello?",
        b'{"jsonrpc": "2.0",',
        b'{"jsonrpc": "2.0", "method": "_x", "params": {"n": NaN}}',
        b'{"jsonrpc": "2.0", "method": "_x", "params": {"t": "\xff"}}',
        b'\xef\xbb\xbf{"jsonrpc": "2.0", "method": "_x"}',
        '{"jsonrpc": "2.0", "method": "_x"}'.encode("utf-16-be"),
        b"[" * 100_000,
    ],
    ids=["text", "half", "nan", "utf-8", "bom", "utf-16", "deep"],
)
def test_a_line_that_is_no_json_is_a_wrong_frame(judge: Any, line: bytes) -> None:
    assert judge("echo", lambda fake: fake.write(line + b"\n")) == ["frame"]


def test_values_of_groups_and_of_later_lists_of_options_are_offered_too(judge: Any) -> None:
    def set_them(fake: Fake) -> None:
        session = fake.open_session()
        change = {"sessionId": session, "configId": "effort"}
        fake.call("session/set_config_option", {**change, "value": "high"})
        fake.read_answer(fake.prompt(session))
        fake.call("session/set_config_option", {"sessionId": session, "configId": "new", "value": "v"})
        fake.read_answer(fake.prompt(session))
        fake.call("session/set_config_option", {**change, "value": "low"})

    new = {"id": "new", "name": "New", "type": "select", "currentValue": "v", "options": [{"value": "v"}]}
    update = {"sessionUpdate": "config_option_update", "configOptions": [new]}
    scenario = {"session_new": {"merge": {"configOptions": OPTIONS}}, "turns": [[{"update": update}]]}
    assert judge(scenario, set_them) == ["mode-or-option"]


def test_a_prompt_sent_behind_a_close_is_too_late(judge: Any) -> None:
    def close_and_prompt_at_once(fake: Fake) -> None:
        session = fake.open_session()
        close = fake.request("session/close", {"sessionId": session})
        fake.prompt(session)
        fake.read_answer(close)

    assert judge({"session_close": {"delay_seconds": 0.2}}, close_and_prompt_at_once) == ["unknown-session"]


@pytest.mark.parametrize(
    "scenario",
    [
        {"initialize": {"merge": {"agentCapabilities": 7, "authMethods": [7, None]}}},
        {"initialize": {"merge": {"agentCapabilities": {"mcpCapabilities": 7, "promptCapabilities": []}}}},
        {"session_new": {"merge": {"modes": 7, "configOptions": {"a": 1}}}},
        {"session_new": {"merge": {"modes": {"availableModes": [7]}, "configOptions": [7, {"options": 7}]}}},
        {"turns": [[{"permission": {"options": [7, None], "wait": False}}]]},
        {"turns": [[{"frame": {"jsonrpc": "2.0", "method": "session/update", "params": [7]}}]]},
        {"turns": [[{"frame": {"jsonrpc": "2.0", "id": 9, "method": "session/request_permission"}}]]},
    ],
)
def test_an_agent_that_says_nonsense_is_no_clients_fault(judge: Any, scenario: Any) -> None:
    def go_through(fake: Fake) -> None:
        session = fake.open_session()
        prompt = fake.prompt(session)
        if "permission" in json.dumps(scenario):
            fake.answer(fake.read_request(), {"outcome": {"outcome": "cancelled"}})
        fake.read_answer(prompt)

    assert judge(scenario, go_through) == []


def test_a_session_before_initialize_is_too_early(judge: Any) -> None:
    assert judge("echo", lambda fake: fake.call("session/new", NEW)) == ["initialize-first"]


def test_a_closed_session_is_not_used_again(judge: Any) -> None:
    def close_and_prompt(fake: Fake) -> None:
        session = fake.open_session()
        fake.call("session/close", {"sessionId": session})
        fake.read_answer(fake.prompt(session))

    assert judge("echo", close_and_prompt) == ["unknown-session"]


def test_two_prompts_at_once_are_one_too_many(judge: Any) -> None:
    def prompt_twice(fake: Fake) -> None:
        session = fake.open_session()
        first, second = fake.prompt(session), fake.prompt(session)
        fake.read_answer(second)
        fake.notify("session/cancel", {"sessionId": session})
        fake.read_answer(first)

    assert judge("endless", prompt_twice) == ["parallel-prompt"]


def test_an_id_in_use_is_not_used_again(judge: Any) -> None:
    def use_twice(fake: Fake) -> None:
        fake.open_session()
        for _ in range(2):
            fake.send({"id": 50, "method": "session/new", "params": NEW})

    assert judge({"session_new": [{}, {"no_answer": True}]}, use_twice) == ["id-in-use"]


@pytest.mark.parametrize(
    ("rule", "answers"),
    [
        ("option-not-offered", [{"result": {"outcome": {"outcome": "selected", "optionId": "made-up"}}}]),
        ("result", [{"result": None}]),
        ("result", [{"error": {"message": "no code"}}]),
        ("unknown-key", [{"result": {"outcome": {"outcome": "cancelled", "why": 1}}}]),
        ("foreign-answer", [{"result": {"outcome": {"outcome": "cancelled"}}}] * 2),
        ("unanswered", []),
    ],
)
def test_a_wrong_answer_breaks_its_rule(judge: Any, rule: str, answers: Any) -> None:
    def answer(fake: Fake) -> None:
        fake.prompt(fake.open_session())
        request = fake.read_request()
        for answer in answers:
            fake.send({"id": request["id"], **answer})

    assert judge({"turns": [[{"permission": {}}]]}, answer) == [rule]


def test_a_choice_after_a_cancel_is_too_late(judge: Any) -> None:
    def choose_late(fake: Fake) -> None:
        session = fake.open_session()
        prompt = fake.prompt(session)
        request = fake.read_request()
        fake.notify("session/cancel", {"sessionId": session})
        fake.select_option(request, "allow-once")
        fake.read_answer(prompt)

    assert judge("turn-cancel-permission", choose_late) == ["permission-after-cancel"]


def test_no_rule_is_left_without_a_test() -> None:
    tested = {rule for rule, _ in WRONG_FRAMES} | {
        "id-in-use",
        "parallel-prompt",
        "option-not-offered",
        "result",
        "permission-after-cancel",
        "unanswered",
    }
    assert tested == set(rules.RULES)


def test_the_report_exists_while_the_conversation_goes_on(start_faulty: Start, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    fake = start_faulty("echo", environment={"FAKE_ACP_REPORT": str(path)})
    fake.call("session/new", NEW)
    report = json.loads(path.read_text())
    assert (report["complete"], report["ok"]) == (False, False)


def test_strict_mode_without_a_report_only_sets_the_exit_code(start_faulty: Start) -> None:
    for value, code in (("", 0), ("0", 0), ("1", 1)):
        fake = start_faulty("echo", environment={"FAKE_ACP_STRICT": value})
        fake.call("session/new", NEW)
        assert leave(fake) == code


def test_rules_and_schema_are_printed() -> None:
    for option, expected in (("--rules", "parallel-prompt"), ("--report-schema", '"violations"')):
        done = subprocess.run(
            fake_command(option), capture_output=True, text=True, cwd=REPOSITORY, check=True
        )
        assert expected in done.stdout
