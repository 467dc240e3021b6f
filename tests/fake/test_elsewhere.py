"""Where there is no fork and there are no signals: what needs neither works, and what does says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_acp_server import check, children
from fake_acp_server.faults import UNSUPPORTED
from tests.fake.driver import REPOSITORY, Fake
from tests.fake.visitor import Visit, leave

Start = Callable[..., Fake]


def command(*arguments: str) -> list[str]:
    """The fake's command line on the other system."""
    return [sys.executable, "-m", "tests.fake.elsewhere", *arguments]


def scenario(*steps: dict[str, Any]) -> list[str]:
    """The fake with these steps in its turn."""
    return command("--json", json.dumps({"turns": [list(steps)]}), "--strict")


@pytest.mark.parametrize("name", ["demo", "tour", "flood", "wire-split-frames", "process-slow-eof"])
def test_a_conversation_needs_no_posix(start: Start, name: str) -> None:
    fake = start(command("--scenario", name, "--strict"))
    expected = "prompt: end_turn"
    assert Visit(fake).run() == expected
    assert leave(fake) == 0
    assert fake.stderr() == b""


@pytest.mark.parametrize(
    "step",
    [
        *({"child": kind} for kind in sorted(children._POSIX)),
        {"signal": "KILL"},
        {"exec": ["/bin/true"]},
        {"ignore_term": True},
        {"count_term": "/dev/null"},
        {"wait_socket": "/no/socket"},
    ],
    ids=str,
)
def test_a_fault_that_this_system_cannot_do_says_so(start_faulty: Start, step: dict[str, Any]) -> None:
    fake = start_faulty(scenario(step))
    fake.prompt(fake.open_session())
    assert fake.exit_code() == UNSUPPORTED
    said = fake.stderr().decode()
    assert said.count("\n") == 1
    assert "needs fork" in said or "needs a POSIX system" in said


@pytest.mark.parametrize("step", [{"child": "plain"}, {"close_stdout": True}, {"exit": 3}, {"raw": "\x00\n"}])
def test_other_faults_need_no_posix(start_faulty: Start, step: dict[str, Any]) -> None:
    fake = start_faulty(scenario({"text": "begun"}, step, {"end_children": True}))
    fake.prompt(fake.open_session())
    if "exit" not in step:
        fake.close_stdin()
    assert fake.exit_code() == step.get("exit", 0)
    assert fake.stderr() == b""


def test_record_and_replay_need_no_posix(start_faulty: Start, tmp_path: Path) -> None:
    path = str(tmp_path / "c")
    for how in (command("record", path, "--", *command("--scenario", "demo")), command("replay", path)):
        fake = start_faulty(how)
        assert Visit(fake).run() == "prompt: end_turn"
        assert leave(fake) == 0


def test_check_starts_a_client_and_gives_up_on_one_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "IS_WINDOWS", True)
    client = [sys.executable, "-m", "tests.fake.plain_client"]
    monkeypatch.chdir(REPOSITORY)
    assert check.run([*client, "good"], ["demo"], 60) == 0
    assert check.run([*client, "asleep"], ["demo"], 0.5) == 1


def test_the_agent_as_a_file_is_a_command_file_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(check, "IS_WINDOWS", True)
    argv = check.client_command(["c", "--agent={agent-file}"], ["py thon", "x"], str(tmp_path / "demo"))
    assert argv == ["c", f"--agent={tmp_path / 'demo.cmd'}"]
    assert (tmp_path / "demo.cmd").read_text() == '@"py thon" x %*\n'
    assert check.client_command(["c {agent}"], ["py thon", "x"], "f") == ['c "py thon" x']


def test_every_file_can_be_imported_there() -> None:
    names = [path.stem for path in (REPOSITORY / "fake_acp_server").glob("*.py") if path.stem != "__main__"]
    # pydantic and pytest are others' business: loaded before.
    code = "import sys, pytest, fake_acp_server.models, tests.fake.elsewhere as there; "
    code += "[sys.modules.pop(name) for name in list(sys.modules) if name.startswith('fake_acp')]; "
    code += "there.take_away(); "
    code += "; ".join(f"import fake_acp_server.{name}" for name in sorted(names) if name != "__init__")
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, timeout=60)
