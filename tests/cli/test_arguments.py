"""Arguments, prompt, working directory, environment: what reaches the agent, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_subagent.cli import render
from tests.cli.driver import CommandLine, arguments, environment, fake, run, turn


def command_line(*args: str, **process: Any) -> tuple[int, str, str]:
    with CommandLine(args, **process) as started:
        done = started.end()
    return done.code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Missing command"),
        (["walk"], "No such command"),
        (["run"], "Missing argument"),
        (["run", "one", "two"], "unexpected extra argument"),
        (["run", "one", "--"], "no command after --"),
        (["run", "--", "agent"], "Missing argument"),
        (["run", "one", "--nonsense"], "No such option"),
        (["run", "one", "--env", "SECRET-VALUE"], "it takes NAME=VALUE"),
        (["run", "one", "--env", "=SECRET-VALUE"], "it takes NAME=VALUE"),
        (["run", "one", "--permission", "maybe"], "Invalid value"),
        (["run", "one", "--turn-timeout", "0"], "Invalid value"),
        (["run", "one", "--turn-timeout", "soon"], "Invalid value"),
        (["run", "one", "--startup-timeout", "nan"], "Invalid value"),
        (["run", "one", "--startup-timeout", "inf"], "Invalid value"),
        (["run", "one", "--turn-timeout", "SECRET-VALUE"], "a number of seconds above 0"),
        (["run", "one", "--permission", "SECRET-VALUE"], "it takes one of reject, allow, ask"),
        (["run", "one", "--format=SECRET-VALUE"], "it takes one of text, json"),
        (["run", "one", "--show-failure=SECRET-VALUE"], "does not take a value"),
        (["run", "one", "--SECRET-VALUE"], "No such option"),
        (["run", "one", "--permision", "ask"], "did you mean --permission?"),
        (["run", "one", "agent", "SECRET-VALUE"], "the agent's command comes after --"),
        (["SECRET-VALUE"], "No such command; there is run"),
        (["run", "", "--", "agent"], "A prompt must not be empty."),
    ],
)
def test_a_usage_error_is_one_line_and_code_2(args: list[str], said: str) -> None:
    code, stdout, stderr = command_line(*args)
    assert (code, stdout) == (2, "")
    *before, line = stderr.splitlines()
    assert before in ([], [render.BUNDLED_AGENT])
    assert line.startswith("acp-subagent: ")
    assert said in line
    assert "SECRET-VALUE" not in stderr


def test_help_and_version_answer_without_loading_the_library() -> None:
    code = """
import sys
from acp_subagent.__main__ import main
code = main()
heavy = {"trio", "pydantic", "psutil", "jsonrpcclient"} & set(sys.modules)
sys.exit(f"loaded: {heavy}" if heavy else code)
"""
    for args in (["--help"], ["run", "--help"], ["--version"]):
        assert command_line(*args, code=code)[::2] == (0, "")
    assert command_line("--version")[1].startswith("acp-subagent ")
    shown = " ".join(command_line("run", "--help")[1].split())
    assert "PROMPT [-- COMMAND [ARG ...]]" in shown


def test_the_help_of_show_failure_says_what_it_may_reveal() -> None:
    shown = " ".join(command_line("run", "--help")[1].split())
    help_text = shown.split("--show-failure")[1].split(" -h, --help")[0]
    assert help_text.strip() == (
        "When the run fails, show its local detail too: the agent's own error, the end of its stderr, what "
        "it wrote that was no message. It may reveal prompts, paths and keys; keep it out of shared logs."
    )


def test_without_click_one_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['click'] = None; from acp_subagent.__main__ import main; sys.exit(main())"
    status, stdout, stderr = command_line("run", "one", code=code)
    assert (status, stdout) == (2, "")
    assert stderr == "acp-subagent: the command line needs click: pip install 'acp-subagent[cli]'\n"


def test_without_a_command_the_bundled_agent_answers_from_any_directory(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the directory was taken')")
    code, stdout, stderr = command_line("run", "a question", "--cwd", str(tmp_path))
    assert (code, stdout) == (0, "Hello from the fake agent. You asked: a question\n")
    assert stderr.startswith(render.BUNDLED_AGENT)


def test_the_prompt_is_read_from_stdin() -> None:
    with CommandLine(arguments({}, prompt="-"), stdin=subprocess.PIPE) as started:
        stdout, _ = started.process.communicate("two\nlines é".encode() + b"\xff", timeout=30)
    assert stdout.decode() == "two\nlines é\ufffd\n"


def test_an_empty_stdin_is_an_empty_prompt() -> None:
    done = run({}, prompt="-")
    assert done.code == 2
    assert "A prompt must not be empty." in done.stderr


def test_bytes_in_the_prompt_that_are_no_text_are_replaced() -> None:
    done = run({}, prompt=os.fsdecode(b"caf\xff"))
    assert (done.code, done.stdout) == (0, "caf\ufffd\n")


def test_everything_after_the_first_dashes_is_the_agents() -> None:
    theirs = ["--permission", "--", "-x", "", "two words"]
    done = run([*fake(turn({"echo": "argv"})), *theirs])
    assert json.loads(done.stdout)[-len(theirs) :] == theirs


def agents_directory(*options: str, **process: Any) -> str:
    done = run(turn({"echo": "cwd"}), *options, **process)
    directories = json.loads(done.stdout)
    assert directories["process"] == directories["session"]
    return str(directories["session"])


def test_paths_may_have_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    agent = folder / "an agent"
    agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m fake_acp_server "$@"\n')
    agent.chmod(0o755)
    assert run([str(agent), "--scenario", "echo"]).stdout == "a prompt\n"
    assert agents_directory("--cwd", str(folder)) == str(folder)


def test_a_relative_directory_is_relative_to_ours(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    assert agents_directory("--cwd", "inner", cwd=tmp_path) == str(tmp_path / "inner")
    assert agents_directory(cwd=tmp_path) == str(tmp_path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "cwd-not-found"),
        (lambda path: path.write_text(""), "cwd-not-directory"),
    ],
)
def test_an_unusable_directory_is_a_failure_with_its_reason(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    where = tmp_path / "where"
    make(where)
    done = run({}, "--cwd", str(where), "--format", "json")
    assert done.code == 2
    assert done.json["failure"] == {"stage": "initialize", "category": "configuration", "reason": reason}
    assert f"category: configuration; reason: {reason})" in done.stderr
    assert "where" not in done.stderr


def test_our_own_directory_may_be_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = """
import os, sys
os.rmdir(os.getcwd())
from acp_subagent.__main__ import main
sys.exit(main())
"""
    with CommandLine(arguments({}), code=code, cwd=gone) as started:
        done = started.end()
    assert done.code == 2
    assert "reason: cwd-missing" in done.stderr


def test_environment_options_decide_what_reaches_the_agent() -> None:
    names = ["A_TOKEN", "B_TOKEN", "GIVEN", "PLAIN"]
    scenario = turn({"echo": {"what": "env", "values": names}})
    env = environment(A_TOKEN="let-through", B_TOKEN="held-back", PLAIN="plain")
    done = run(scenario, "--pass-env", "A_TOKEN", "--env", "GIVEN=a=b", env=env)
    assert "let-through" in done.stdout
    assert "held-back" not in done.stdout
    assert "a=b" in done.stdout
    assert "plain" in done.stdout


def test_an_unexpected_exception_is_one_line_without_its_text() -> None:
    code = """
import sys
from acp_subagent.cli import run
def broken(*args, **kwargs):
    raise LookupError("a secret")
run.AcpProvider = broken
from acp_subagent.__main__ import main
sys.exit(main())
"""
    status, stdout, stderr = command_line(*arguments({}), code=code)
    assert (status, stdout) == (1, "")
    assert stderr == "acp-subagent: unexpected LookupError (ACP_SUBAGENT_DEBUG=1 shows where)\n"
    status, _, stderr = command_line(*arguments({}), code=code, env=environment(ACP_SUBAGENT_DEBUG="1"))
    assert status == 1
    assert "in _delegate" in stderr  # where it was raised, without what it says
    assert "a secret" not in stderr


def test_an_exception_while_showing_the_answer_ends_the_run_and_is_told_the_same_way() -> None:
    code = """
import sys
from acp_subagent.cli import render
def broken(*args, **kwargs):
    raise LookupError("a secret")
render.Messages.begins = broken
from acp_subagent.__main__ import main
sys.exit(main())
"""
    scenario = turn({"text": "hi"}, {"wait_cancel": True})
    status, stdout, stderr = command_line(*arguments(scenario), code=code)
    assert (status, stdout) == (1, "")
    assert "acp-subagent: unexpected LookupError" in stderr
    assert "a secret" not in stderr
