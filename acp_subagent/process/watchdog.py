"""Keeping one watchdog process: it ends the trees of a service whose host was killed.

Owns the watchdog's start, its restart when it has died, and its orderly end. What it does when the host has
died is `reaper`, which runs in it.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import suppress

import trio

from acp_subagent.errors import ConfigurationError, SpawnError
from acp_subagent.process.launch import SpawnFault
from acp_subagent.process.procfs import ProcTable
from acp_subagent.process.table import process_table

_REAPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reaper.py")
#: how long an orderly end may take before the watchdog is killed
_END_SECONDS = 2.0
#: how often to look whether it has ended
_POLL_SECONDS = 0.002
#: all that an interpreter may need to start; the watchdog carries no cookie and none of the host's secrets
_ENVIRONMENT_PREFIXES = ("LD_", "DYLD_", "PATH")


_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def _flags() -> list[str]:
    # Isolated from the host's settings; without installed packages, unless it takes psutil to see processes.
    return ["-I", "-S"] if ProcTable.usable() else ["-I"]


class Watchdog:
    """The watchdog of one service: started with its first child, restarted when somebody has killed it."""

    def __init__(self, service_id: str, *, since: int) -> None:
        self._service_id = service_id
        self._since = since
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its pid while it runs, else None."""
        return self._process.pid if self._process is not None else None

    def ensure_running(self) -> None:
        """Start it unless it runs.

        Raises `SpawnError` when it cannot be started, and `ConfigurationError` when the program has no Python
        interpreter to run it with.
        """
        if self._process is None or self._process.poll() is not None:
            self._let_go()
            self._process = self._start()

    async def aclose(self) -> None:
        """Tell it that the host ends in order, and wait until it is gone; kills it if that takes too long."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(b".")  # the pipe is empty: it cannot block
        with trio.CancelScope(shield=True):
            with trio.move_on_after(_END_SECONDS):
                await _ended(process)
            if process.poll() is None:
                process.kill()
                await _ended(process)
        self._let_go()

    def _start(self) -> subprocess.Popen[bytes]:
        if not sys.executable or getattr(sys, "frozen", False):
            raise ConfigurationError(
                "The watchdog needs a Python interpreter and this program has none of its own; "
                "open the service with reaper=False."
            )
        environment = {n: v for n, v in os.environ.items() if n.startswith(_ENVIRONMENT_PREFIXES)}
        try:
            own = process_table().facts(os.getpid())
            arguments = [str(os.getpid()), str(own.start if own else 0), self._service_id, str(self._since)]
            return subprocess.Popen(
                [sys.executable, *_flags(), _REAPER, *arguments],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            out_of_descriptors = error.errno in _OUT_OF_DESCRIPTORS
            failure = SpawnError(SpawnFault.OUT_OF_DESCRIPTORS if out_of_descriptors else "", cause=error)
        raise failure

    def _let_go(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until it has exited, and reap it."""
    while process.poll() is None:  # noqa: ASYNC110  no event tells of it
        await trio.sleep(_POLL_SECONDS)
