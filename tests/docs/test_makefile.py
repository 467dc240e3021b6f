"""The commands of the Makefile hand on what they are given, and what cannot be downloaded is told once.

A stand-in for the virtual environment's Python writes down how it was called: what is tested is the Makefile.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import agent_packages
from tests.support.npm_packages import ProvisionError

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"
BOUND_SECONDS = 60.0

STAND_IN = """
import json, sys
arguments = sys.argv[1:]
prompt = sys.stdin.read() if "run" in arguments else None
with open("calls", "a") as calls:
    calls.write(json.dumps([arguments, prompt]) + "\\n")
sys.exit("agent_packages" in " ".join(arguments))
"""


class Checkout:
    """A folder with the Makefile, in which everything is installed already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        python = folder / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        shutil.copy(MAKEFILE, folder)
        (folder / "pyproject.toml").touch()
        (folder / "stand_in.py").write_text(STAND_IN)
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} ./stand_in.py "$@"\n')
        python.chmod(stat.S_IRWXU)
        for stamp in ("run.stamp", "dev.stamp"):
            (folder / ".venv" / stamp).touch()

    def make(self, *arguments: str) -> tuple[int, list[tuple[list[str], str | None]]]:
        """Its exit code, and how Python was called: arguments and stdin."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(
            ["make", *arguments],
            cwd=self.folder,
            env={**environment, "A_VARIABLE": "its value"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        lines = (self.folder / "calls").read_text().splitlines()
        return done.returncode, [(call[0], call[1]) for call in map(json.loads, lines)]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "it's a new $HOME")


@pytest.mark.parametrize(
    "prompt",
    [
        "$HOME $$ $(shell id) ${PATH} `id`",
        'it\'s "quoted" \\ #, and % too',
        "two\nlines",
        "höflich 日本",
        "- the first of a list",
        "--help",
        "-",
        "",
    ],
)
def test_a_prompt_arrives_as_it_was_given(prompt: str, checkout: Checkout) -> None:
    code, calls = checkout.make("run", f"PROMPT={prompt}")
    assert code == 0
    assert calls == [(["-m", "acp_subagent", "run", "--permission", "allow", "-"], prompt)]


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ("gemini --acp", ["gemini", "--acp"]),
        ("\"a program\" 'its $1 argument' and\\ one", ["a program", "its $1 argument", "and one"]),
        ('sh "$A_VARIABLE"', ["sh", "its value"]),
        ("agent 日本 %", ["agent", "日本", "%"]),
    ],
)
def test_an_agent_is_a_command_as_the_shell_reads_it(
    agent: str, command: list[str], checkout: Checkout
) -> None:
    code, calls = checkout.make("run", f"AGENT={agent}", "PROMPT=x")
    assert code == 0
    ((arguments, prompt),) = calls
    assert arguments[arguments.index("--") + 1 :] == command
    assert prompt == "x"


@pytest.mark.parametrize("target", ["test", "test-fast", "test-agents"])
def test_no_test_begins_when_what_it_needs_cannot_be_downloaded(target: str, checkout: Checkout) -> None:
    code, calls = checkout.make(target)
    assert code != 0
    ((arguments, _),) = calls
    assert "tests.support.agent_packages" in arguments


def test_a_download_that_is_impossible_is_told_and_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def impossible() -> list[str]:
        raise ProvisionError("npm said why")

    never = pytest.fail
    monkeypatch.setattr(agent_packages, "PROVISIONS", {"one": impossible, "two": never})
    assert agent_packages.main([]) == 1
    assert "one cannot be brought here: npm said why" in capsys.readouterr().err
