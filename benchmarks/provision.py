"""What a measurement needs, brought into the checkout's cache: interpreter, peers, agent.

Owns `.cache/bench` (a virtual environment with this project and the Python peers, the compiled agent); the
npm package comes from the folder that the tests use too. A second call finds everything there and does
nothing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.npm_packages import node_command, package_folder

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
CACHE = REPOSITORY / ".cache" / "bench"
CLIENTS = HERE / "clients"

TYPESCRIPT_SDK = "@agentclientprotocol/sdk@2.4.0"

INSTALL_TIMEOUT_SECONDS = 900


class ProvisionError(Exception):
    """Something that a measurement needs could not be brought here; the text says what and why."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The program that every client drives."""

    command: tuple[str, ...]
    kind: str  #: what the report calls it


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that is needed."""

    agent: Agent
    clients: dict[str, tuple[str, ...]]  #: the command of each client program, by its name
    python: str  #: the interpreter that this project and the Python peers are installed in
    versions: dict[str, str]  #: what was measured


def python_clients(interpreter: str) -> dict[str, tuple[str, ...]]:
    """The commands of the client programs in Python."""
    files = {
        "raw": "raw.py",
        "ours": "ours.py",
        "python-sdk": "python_sdk.py",
        "acp-client": "acp_client_peer.py",
    }
    return {name: (interpreter, str(CLIENTS / file)) for name, file in files.items()}


def provision() -> Bench:
    """Bring what is missing. Raises `ProvisionError`, or the tests' one for the npm package."""
    CACHE.mkdir(parents=True, exist_ok=True)
    interpreter = _environment()
    sdk = package_folder(TYPESCRIPT_SDK) / "dist" / "v1" / "stable" / "acp.js"
    typescript = (*node_command(), "--expose-gc", str(CLIENTS / "typescript_sdk.mjs"), str(sdk))
    versions = {
        "Linux": platform.release(),
        "Python": _said([interpreter, "-c", "import platform; print(platform.python_version())"]),
        "Node": _said([*node_command(), "--version"]).removeprefix("v"),
        **_installed(interpreter),
        TYPESCRIPT_SDK.rpartition("@")[0]: TYPESCRIPT_SDK.rpartition("@")[2],
    }
    clients = {
        **python_clients(interpreter),
        "typescript-sdk": typescript,
        "bare-python": (interpreter, "-c", ""),
        "command-line": (str(Path(interpreter).parent / "acp-subagent"), "run"),
    }
    return Bench(made_agent(interpreter), clients, interpreter, versions)


def made_agent(interpreter: str, *, compiler: str | None = None) -> Agent:
    """The agent in C if there is a compiler, else the one in Python."""
    compiler = compiler or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return Agent(
            (interpreter, "-I", "-S", str(HERE / "agent.py")), "Python, prebuilt bytes (no C compiler)"
        )
    source = HERE / "agent.c"
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / f"agent-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not program.exists():
        unfinished = program.with_suffix(f".{os.getpid()}")  # two processes may compile at the same time
        _run([compiler, "-O2", "-o", str(unfinished), str(source)])
        unfinished.rename(program)
    return Agent((str(program),), "C, compiled here")


def _environment() -> str:
    folder = CACHE / "venv"
    interpreter = folder / "bin" / "python"
    stamp = CACHE / "installed"
    wanted = hashlib.sha256((REPOSITORY / "pyproject.toml").read_bytes()).hexdigest()
    if not interpreter.exists() or not stamp.exists() or stamp.read_text() != wanted:
        _run([sys.executable, "-m", "venv", str(folder)])
        quiet = ["--quiet", "--disable-pip-version-check"]
        _run([str(interpreter), "-m", "pip", "install", *quiet, "-e", f"{REPOSITORY}[bench]"])
        stamp.write_text(wanted)
    # An installer compiles what it installs, as it did the peers; this project is here as a checkout.
    _run([str(interpreter), "-m", "compileall", "-q", str(REPOSITORY / "acp_subagent")])
    return str(interpreter)


def _installed(interpreter: str) -> dict[str, str]:
    names = ["trio", "pydantic", "orjson", "agent-client-protocol", "acp-client"]
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    return dict(zip(names, _said([interpreter, "-c", code, *names]).split(), strict=True))


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=INSTALL_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise ProvisionError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
