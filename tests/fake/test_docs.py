"""The document about the fake: its commands run, its examples work, its reference is what the code makes."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fake_acp_server import models, reference
from tests.fake.driver import REPOSITORY, Fake
from tests.fake.visitor import Visit

PAGE = REPOSITORY / "docs" / "fake-server.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_reference_is_what_the_code_says() -> None:
    assert PAGE.read_text().endswith(reference.markdown()), "make it anew: fake-acp-server --reference"


def test_the_example_scenario_is_valid_and_runs(tmp_path: Path) -> None:
    for example in blocks("toml"):
        assert models.problems(tomllib.loads(example)) == []
        path = tmp_path / "example.toml"
        path.write_text(example)
        with Fake(str(path)) as fake:
            assert Visit(fake).run(prompts=2) == "prompt: end_turn"


def test_the_example_test_passes(tmp_path: Path) -> None:
    (example,) = blocks("python")
    (tmp_path / "test_example.py").write_text(example)
    plugin = ["-p", "fake_acp_server.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(tmp_path)],
        cwd=tmp_path,
        # Named here, the plugin must not be loaded once more by its entry point.
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("block", blocks("sh"))
def test_the_commands_run(block: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = f"{shlex.quote(sys.executable)} {shlex.quote(str(REPOSITORY / 'fake_acp_server'))}"
    client = (
        f"cd {shlex.quote(str(REPOSITORY))} && {shlex.quote(sys.executable)} -m tests.fake.plain_client good"
    )
    # The client's working directory is the repository: files named on the line are looked for in the test's
    # folder.
    for name, command in (("fake-acp-server", fake), ("your-agent", fake), ("your-client", client)):
        program = programs / name
        program.write_text(f'#!/bin/sh\n{command} "$@"\n')
        program.chmod(stat.S_IRWXU)
    for line in block.replace("check -- your-client", "check --scenario demo -- your-client").splitlines():
        done = subprocess.run(
            ["/bin/sh", "-c", re.sub(r"\b(report\.json|session\.cassette)\b", f"{tmp_path}/\\1", line)],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}"
