"""The command line as a real process: started, read with a bound on every wait, ended with the test."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPOSITORY = Path(__file__).resolve().parents[2]

#: No wait of a test is longer than this.
BOUND_SECONDS = 30.0

#: the command line, but no signal reaches a process of the agent
NOTHING_IS_KILLED = """
import sys
from acp_subagent.process import tree
tree.kill = lambda *args, **kwargs: None
from acp_subagent.__main__ import main
sys.exit(main())
"""

#: the signal reaches its processes, and then the ladder meets a bug
THE_KILL_RAISES = """
import signal, sys
from acp_subagent.process import tree
original = tree.kill
def kill(table, number, processes, groups=()):
    original(table, signal.SIGKILL, processes, groups)
    raise RuntimeError
tree.kill = kill
from acp_subagent.__main__ import main
sys.exit(main())
"""

#: somebody else collects the exit of the leader
THE_EXIT_IS_COLLECTED = """
import os, signal, sys
from acp_subagent.process import tree
original = tree.kill
def kill(table, number, processes, groups=()):
    processes = list(processes)
    original(table, signal.SIGKILL, processes, groups)
    for pid, _ in processes:
        os.waitpid(pid, 0)
tree.kill = kill
from acp_subagent.__main__ import main
sys.exit(main())
"""

Scenario = Mapping[str, object]


@dataclass(frozen=True)
class Ended:
    """What a command line left."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """Its one JSON object."""
        value: dict[str, Any] = json.loads(self.stdout)
        return value


def fake(scenario: Scenario) -> list[str]:
    """The command of the fake agent with this scenario."""
    return [sys.executable, "-P", "-m", "fake_acp_server", "--json", json.dumps(scenario)]


def turn(*steps: object, **rest: object) -> dict[str, object]:
    """A scenario whose turns are these steps."""
    return {"turns": [list(steps)], **rest}


def arguments(scenario: Scenario | Sequence[str], *options: str, prompt: str = "a prompt") -> list[str]:
    """The arguments of a run: against the fake with a scenario, or any agent's command."""
    command = fake(scenario) if isinstance(scenario, Mapping) else list(scenario)
    return ["run", "--env", f"PYTHONPATH={REPOSITORY}", *options, prompt, "--", *command]


def environment(**extra: str) -> dict[str, str]:
    """Our own, with which the package is found installed or in its checkout."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **extra}


class CommandLine:
    """A running `python -m acp_subagent`; killed at the end of its block if it has not ended."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        code: str | None = None,
        **process: Any,
    ) -> None:
        """`code` is a program to run instead, with the same arguments."""
        start = ["-m", "acp_subagent"] if code is None else ["-c", code]
        streams: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        self.process = subprocess.Popen(
            [sys.executable, *start, *args],
            env=dict(environment() if env is None else env),
            bufsize=0,
            **{**streams, **process},
        )
        self._read = {"stdout": b"", "stderr": b""}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(BOUND_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def read_until(self, wanted: str, stream: str = "stdout") -> str:
        """Read a stream until `wanted` has come; everything read of it so far."""
        descriptor = getattr(self.process, stream).fileno()
        self._read[stream] += read_until(descriptor, wanted.encode(), self._read[stream])
        return self._read[stream].decode()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Wait for its end."""
        stdout, stderr = self.process.communicate(timeout=BOUND_SECONDS)
        out, err = self._read["stdout"] + (stdout or b""), self._read["stderr"] + (stderr or b"")
        return Ended(self.process.returncode, out.decode(), err.decode())


def read_until(descriptor: int, wanted: bytes, already: bytes = b"") -> bytes:
    """Read from a descriptor until `wanted` has come; what was read."""
    read, ends_at = b"", time.monotonic() + BOUND_SECONDS
    while wanted not in already + read:
        ready, _, _ = select.select([descriptor], [], [], max(0, ends_at - time.monotonic()))
        assert ready, f"{wanted!r} did not come, but {already + read!r}"
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # a terminal that nobody has open any more
            data = b""
        assert data, f"the end came before {wanted!r}, after {already + read!r}"
        read += data
    return read


def run(scenario: Scenario | Sequence[str], *options: str, prompt: str = "a prompt", **process: Any) -> Ended:
    """One run from start to end."""
    with CommandLine(arguments(scenario, *options, prompt=prompt), **process) as started:
        return started.end()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something that nothing announces is so."""
    ends_at = time.monotonic() + BOUND_SECONDS
    while not condition():
        assert time.monotonic() < ends_at, "it did not become so"
        time.sleep(0.005)  # bounded polling of a file or a process that somebody else makes
