"""What cannot be done is said: a scenario that goes wrong on its way ends the fake with a sentence, not with
a traceback and not in silence. And nothing that a client writes ends it at all.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fake_acp_server.agent import STEP_FAILURE
from tests.fake.driver import REPOSITORY, Fake, fake_command
from tests.fake.test_shapes import ANSWERS, CALLS, variants

Start = Callable[..., Fake]

MISSING = "/no/such/folder/file"

#: Steps that cannot be done, most of them with values that the quick check of inline scenarios lets through.
IMPOSSIBLE: list[dict[str, Any]] = [
    {"sleep": "x"},
    {"exec": [MISSING]},
    {"exec": []},
    {"touch_file": MISSING},
    {"wait_socket": MISSING},
    {"signal": "NOSUCH"},
    {"signal": 999},
    {"raw": {"bytes": "\u4e16"}},
    {"raw": {"repeat": 3}},
    {"exit": "x"},
    {"child": "nephew"},
    {"child": {"kind": "plain", "connect": MISSING, "seconds": 1}},
    {"echo": "everything"},
    {"permission": None},
    {"repeat": {"times": "x", "steps": []}},
]


def assert_says_why(fake: Fake, what: str) -> None:
    """The fake ends, its input still open, with one sentence."""
    assert fake.exit_code() == STEP_FAILURE
    said = fake.stderr().decode()
    assert said.startswith(f"fake-acp-server: {what}"), said
    assert "Traceback" not in said


@pytest.mark.parametrize("step", IMPOSSIBLE, ids=[json.dumps(step)[:40] for step in IMPOSSIBLE])
def test_a_step_that_cannot_be_done_ends_the_fake_with_a_sentence(start_faulty: Start, step: Any) -> None:
    fake = start_faulty({"turns": [[{"repeat": {"times": 1, "steps": [step]}}]]})
    fake.prompt(fake.open_session())
    assert_says_why(fake, f"step {next(iter(step))}: ")


@pytest.mark.parametrize(
    ("stage", "what"),
    [
        ({"start": [{"touch_file": MISSING}]}, "step touch_file: "),
        ({"life_socket": MISSING}, "life_socket: "),
        ({"initialize": {"before_answer": [{"touch_file": MISSING}]}}, "step touch_file: "),
        ({"session_new": {"after_answer": [{"touch_file": MISSING}]}}, "step touch_file: "),
        ({"session_new": {"error": [7]}}, "answer of session_new: "),
        ({"session_new": {"error": {"odd": 7}, "delay_seconds": 0.01}}, "answer of session_new: "),
        ({"turns": [[{"stop": "end_turn"}, {"touch_file": MISSING}]]}, "step touch_file: "),
        ({"turns": [[{"permission": {"on": {"allow": [{"touch_file": MISSING}]}}}]]}, "step touch_file: "),
        (
            {"turns": [[{"sleep": 60}]], "on_cancel": {"steps": [{"touch_file": MISSING}]}},
            "step touch_file: ",
        ),
        ({"on_eof": {"marker": MISSING}}, "step touch_file: "),
    ],
)
def test_so_it_is_at_every_stage(start_faulty: Start, stage: Any, what: str) -> None:
    fake = start_faulty(stage)
    lines = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": "/srv", "mcpServers": []}},
        {
            "id": 3,
            "method": "session/prompt",
            "params": {"sessionId": "session-1", "prompt": [{"type": "text", "text": "x"}]},
        },
    ]
    try:
        for line in lines:
            fake.send(line)
        if "turns" in stage and "permission" in json.dumps(stage):
            fake.select_option(fake.read_request(), "allow-once")
        if "on_cancel" in stage:
            fake.notify("session/cancel", {"sessionId": "session-1"})
        if "on_eof" in stage:
            fake.close_stdin()
    except BrokenPipeError:
        pass  # it is gone already
    assert_says_why(fake, what)


@pytest.mark.parametrize(
    ("option", "path"), [("--log", MISSING), ("--report", MISSING), ("--log", "/"), ("--report", "/")]
)
def test_a_file_that_cannot_be_written_is_a_usage_error(start_faulty: Start, option: str, path: str) -> None:
    fake = start_faulty("echo", arguments=(option, path))
    assert fake.exit_code() == 2
    assert fake.stderr().startswith(b"fake-acp-server: the log or the report cannot be written: ")


@pytest.mark.parametrize(
    ("scenario", "place"),
    [
        ({"turnz": []}, "turnz"),
        ({"turns": []}, "turns"),
        ({"turns": [[{"txt": "x"}]]}, "turns[0][0]"),
        ({"turns": [[{"text": {"chunk": []}}]]}, "turns[0][0].text"),
        ({"turns": [[{"permission": {"on": {"allow": [{"nope": 1}]}}}]]}, "permission.allow[0]"),
        ({"session_new": {"reslt": {}}}, "session_new"),
        ({"on_cancel": "perhaps"}, "on_cancel"),
        ({"ids": "roman"}, "ids"),
        ({"on_eof": 7}, "on_eof"),
        ({"on_eof": {"exit_code": "x"}}, "on_eof"),
        ({"lifetime_seconds": "x"}, "lifetime_seconds"),
        ({"start": [{"set": {"on_cancel": "perhaps"}}]}, "on_cancel"),
    ],
)
def test_a_wrong_scenario_is_refused_with_its_place(start_faulty: Start, scenario: Any, place: str) -> None:
    fake = start_faulty(scenario)
    assert fake.exit_code() == 2
    assert place in fake.stderr().decode()


def odd_frames() -> Iterator[Any]:
    """Right frames with one place changed, of every kind, and answers to requests nobody sent."""
    for method, params in CALLS:
        for number, one in enumerate(variants(params)):
            yield {"jsonrpc": "2.0", "id": f"{method} {number}", "method": method, "params": one}
            yield {"jsonrpc": "2.0", "method": method, "params": one}
    for _, result in ANSWERS:
        yield from ({"jsonrpc": "2.0", "id": 0, "result": one} for one in variants(result))
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    yield from variants(hello)


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_no_frame_of_a_client_ends_the_fake(strict: tuple[str, ...]) -> None:
    capabilities = {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}, "delete": {}}}
    scenario = {"capabilities": capabilities, "turns": [[{"permission": {"wait": False}}]]}
    last = {"jsonrpc": "2.0", "id": "last", "method": "initialize", "params": {"protocolVersion": 1}}
    lines = b"".join(json.dumps(frame).encode() + b"\n" for frame in [last, *odd_frames(), last])
    done = subprocess.run(
        fake_command("--json", json.dumps(scenario), *strict),
        input=lines,
        capture_output=True,
        cwd=REPOSITORY,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode == len(strict)
    assert done.stdout.count(b'"id":"last","result"') == 2
