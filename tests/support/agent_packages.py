"""Brings the third-party agents of the ring ``tests/agents`` into the checkout's cache folder.

Each agent from PyPI has a virtual environment of its own under ``.cache/agents``, named by the agent and by a
hash of what it is made of: other versions, another Python or another place of the checkout make another one.
A second call finds it there and does nothing; two processes may ask at the same time. A download that fails
raises ``ProvisionError`` with pip's own last words: an agent is never silently left out. The agent from npm
comes with ``npm_packages``, Node included.

As a command: ``python -m tests.support.agent_packages [NAME ...]`` brings those that are named, else all of
them, and prints how each is started; what cannot be brought ends it at once, with a sentence and code 1.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.npm_packages import ProvisionError, node_command, package_folder, schema_path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "agents"

INSTALL_TIMEOUT_SECONDS = 900

#: The newest release that asks its model by OpenAI-style chat completions.
DSH = ["deepseek-harness-runtime-bin==0.1.5rc1"]

PYTHON_SDK = ["agent-client-protocol==0.12.1"]

#: A whole environment, written down: the file says why.
FAST_AGENT = ["--no-deps", "--ignore-requires-python"]
FAST_AGENT_REQUIREMENTS = CHECKOUT / "tests" / "agents" / "fast_agent_requirements.txt"

#: Its example agent, which asks for a permission in every turn, is part of the package.
TYPESCRIPT_SDK = "@agentclientprotocol/sdk@1.9.0"


def python_sdk_agent() -> list[str]:
    """The command of this repository's small agent, in an environment with the official Python SDK."""
    python = _environment("python-sdk", PYTHON_SDK) / "python"
    return [str(python), str(CHECKOUT / "tests" / "agents" / "python_sdk_agent.py")]


def typescript_sdk_agent() -> list[str]:
    """The command of the example agent that the official TypeScript SDK ships."""
    example = package_folder(TYPESCRIPT_SDK) / "dist" / "examples" / "agent.js"
    return [*node_command(), str(example)]


def fast_agent() -> list[str]:
    """The command of fast-agent as an ACP agent, without options."""
    return [str(_environment("fast-agent", FAST_AGENT, FAST_AGENT_REQUIREMENTS) / "fast-agent-acp")]


def dsh() -> list[str]:
    """The command of DeepSeek's harness, without options."""
    return [str(_environment("dsh", DSH) / "dsh")]


AGENTS: dict[str, Callable[[], list[str]]] = {
    "python-sdk": python_sdk_agent,
    "typescript-sdk": typescript_sdk_agent,
    "fast-agent": fast_agent,
    "dsh": dsh,
}


def _environment(name: str, arguments: list[str], requirements: Path | None = None) -> Path:
    """The folder of commands of a virtual environment with what pip installs for these arguments."""
    listed = requirements.read_text(encoding="utf-8") if requirements else ""
    # Scripts carry the absolute path of their interpreter: a moved checkout needs an environment anew.
    recipe = "\n".join([*arguments, listed, str(CACHE), os.path.realpath(sys.executable), sys.version])
    home = CACHE / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    complete = home / "complete"
    with _locked(home):
        if not complete.exists():
            _make_environment(home, [*arguments, *(["-r", str(requirements)] if requirements else [])])
            complete.touch()
    return home / "bin"


def _make_environment(home: Path, arguments: list[str]) -> None:
    shutil.rmtree(home, ignore_errors=True)  # of an install that was interrupted
    _run([sys.executable, "-m", "venv", str(home)])
    _run([str(home / "bin" / "python"), "-m", "pip", "install", "--progress-bar", "off", *arguments])


def _run(command: list[str]) -> None:
    # What steers this interpreter must not steer the other environment's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            command,
            cwd=CACHE,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INSTALL_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise ProvisionError(f"{' '.join(command)}: {problem}") from problem
    if done.returncode:
        raise ProvisionError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.with_suffix(".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


#: what the command knows by name: the agents, and the schema that the other tests need
PROVISIONS: dict[str, Callable[[], list[str]]] = {**AGENTS, "schema": lambda: [str(schema_path())]}


def main(names: list[str]) -> int:
    """Bring what is named; print what was done, and how long it took."""
    for name in names or PROVISIONS:
        began = time.monotonic()
        try:
            line = " ".join(PROVISIONS[name]())
        except ProvisionError as problem:
            sys.stderr.write(f"agent_packages: {name} cannot be brought here: {problem}\n")
            return 1
        sys.stdout.write(f"{name} ({time.monotonic() - began:.0f} s): {line}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
