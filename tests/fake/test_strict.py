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
from tests.fake.driver import REPOSITORY, Fake, fake_command
from tests.fake.visitor import Visit, leave

Start = Callable[..., Fake]

NEW = {"cwd": "/srv", "mcpServers": []}
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
OFFERED = {"modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}}


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
]


@pytest.mark.parametrize(("rule", "frames"), WRONG_FRAMES)
def test_a_wrong_frame_breaks_its_rule_and_no_other(judge: Any, rule: str, frames: Any) -> None:
    def misbehave(fake: Fake) -> None:
        fake.open_session()
        for frame in frames:
            fake.send(frame)

    assert judge({"session_new": {"merge": OFFERED}}, misbehave) == [rule]


def test_a_line_that_is_no_json_is_a_wrong_frame(judge: Any) -> None:
    assert judge("echo", lambda fake: fake.write(b"hello?\n")) == ["frame"]


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
    for environment, code in (({}, 0), ({"FAKE_ACP_STRICT": "0"}, 0), ({"FAKE_ACP_STRICT": "1"}, 1)):
        fake = start_faulty("echo", environment=environment)
        fake.call("session/new", NEW)
        assert leave(fake) == code


def test_rules_and_schema_are_printed() -> None:
    for option, expected in (("--rules", "parallel-prompt"), ("--report-schema", '"violations"')):
        done = subprocess.run(
            fake_command(option), capture_output=True, text=True, cwd=REPOSITORY, check=True
        )
        assert expected in done.stdout
