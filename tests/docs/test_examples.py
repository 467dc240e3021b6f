"""Every example in the README and in the documents runs, word for word, against the bundled fake agent."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BOUND_SECONDS = 60.0

#: commands of the documents, each of which is played by the fake; `dsh` is by its own
AGENTS = ("gemini", "claude-agent-acp", "codex-acp", "opencode")


def blocks(language: str) -> list[tuple[str, str]]:
    """The fenced blocks of a language, with where they stand."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            number = text.count("\n", 0, match.start()) + 1
            found.append((f"{page.name}:{number}", match.group(1)))
    return found


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder to work in, and an environment in which the agents of the documents are fakes."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in AGENTS:
        program = programs / name
        program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fake_acp_server\n")
        program.chmod(stat.S_IRWXU)
    runtime = shlex.join([sys.executable, str(REPOSITORY / "tests" / "dsh" / "fake_runtime.py"), "{}"])
    (programs / "dsh").write_text(f"#!/bin/sh\nexec {runtime}\n")
    (programs / "dsh").chmod(stat.S_IRWXU)
    module = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m acp_subagent "$@"\n'
    (programs / "acp-subagent").write_text(module)
    (programs / "acp-subagent").chmod(stat.S_IRWXU)
    (tmp_path / "repo").mkdir()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)}
    return tmp_path, environment


@pytest.mark.parametrize(("where", "code"), [pytest.param(*item, id=item[0]) for item in blocks("python")])
def test_a_python_example_runs(where: str, code: str, world: tuple[Path, dict[str, str]]) -> None:
    folder, environment = world
    code = code.replace("/srv/repo", str(folder / "repo"))
    # The child's PYTHONPATH is held back by the deny-list; the fake finds its package through this folder.
    (folder / "repo" / "fake_acp_server").symlink_to(REPOSITORY / "fake_acp_server")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{where}: {done.stderr}"


def launch_lines() -> list[str]:
    """The command lines that the README's table gives for real agents."""
    return re.findall(r"`(acp-subagent run [^`]+)`", (REPOSITORY / "README.md").read_text())


@pytest.mark.parametrize("line", launch_lines())
def test_a_launch_line_of_the_readme_is_understood(line: str, world: tuple[Path, dict[str, str]]) -> None:
    folder, environment = world
    (folder / "fake_acp_server").symlink_to(REPOSITORY / "fake_acp_server")
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "..." in done.stdout  # the fake answers with the prompt


def test_the_documents_name_no_file_that_is_not_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
