"""The watchdog: ends the trees of a service whose host has died, however it died.

Runs as a program of its own, `python -I -S reaper.py <host pid> <host start> <service id> <since>`, with the
standard library only. Its stdin is a pipe from the host. One byte there is the orderly end: it exits and
touches nothing. The host's death is told by the kernel, through a pidfd, at once, although a forked worker
may keep the pipe open for long. An end of file without that byte means that the program which owned the trees
is no more while its process lives on: it has replaced itself by `exec`.

Promises: within two seconds of the host's death nothing lives that carries the cookie of the service, what
was just being spawned included. Tells nobody anything: it has neither output nor log.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import types


def _stand_alone() -> None:
    """Make the modules next to this file importable without running the `__init__` of any package."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("acp_subagent", os.path.dirname(here)), ("acp_subagent.process", here)):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package


if __name__ == "__main__":
    _stand_alone()

from acp_subagent.process.census import Census  # noqa: E402  (importable only now)
from acp_subagent.process.procfs import Identity  # noqa: E402
from acp_subagent.process.table import process_table  # noqa: E402
from acp_subagent.process.tree import Birth, Tree  # noqa: E402

#: between SIGTERM and the kill
_TERM_GRACE_SECONDS = 0.5
#: how long to go on looking: a child may have been between fork and exec, without a cookie yet, when the host
#: died
_LINGER_SECONDS = 1.0
#: no kill takes longer, whatever cannot be killed
_LONGEST_SECONDS = 10.0
_SWEEP_SECONDS = 0.02
#: how often to look for the host where the kernel does not tell of its death
_POLL_MILLISECONDS = 200


def main(arguments: list[str]) -> None:
    """Wait for the host's end, then act on how it ended."""
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    host_pid, host_start, service_id, since = arguments
    if host_died(Identity(int(host_pid), int(host_start))):
        end_service(service_id, int(since))


def host_died(host: Identity, pipe: int = 0) -> bool:
    """Wait until the host has died (True) or has said that it ends in order (False)."""
    table = process_table()
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    try:
        waiting.register(os.pidfd_open(host.pid), select.POLLIN)
        told = True
    except ProcessLookupError:
        return not _orderly(pipe)
    except (OSError, AttributeError):
        told = False
    while True:
        facts = table.facts(host.pid)
        # Compared after the descriptor was opened: it may be of somebody who got the host's number.
        if facts is None or not facts.alive or (host.start and facts.start != host.start):
            return not _orderly(pipe)
        ready = [descriptor for descriptor, _ in waiting.poll(None if told else _POLL_MILLISECONDS)]
        if pipe in ready:
            return not _orderly(pipe)


def _orderly(pipe: int) -> bool:
    os.set_blocking(pipe, False)
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return False


def end_service(service_id: str, since: int) -> None:
    """SIGTERM to everything that carries the service's cookie, and what belongs to it; then the kill."""
    tree = Tree(Census(process_table()), element=f"/{service_id}.", birth=Birth(since))
    started = time.monotonic()
    told: set[Identity] = set()
    while time.monotonic() < started + _TERM_GRACE_SECONDS:
        _look(tree)
        newcomers = [member for member in tree.alive.values() if member.identity not in told]
        tree.signal(signal.SIGTERM, newcomers)
        tree.signal(signal.SIGCONT, [member for member in newcomers if member.stopped])
        told.update(member.identity for member in newcomers)
        time.sleep(_SWEEP_SECONDS)
    last_seen = time.monotonic()
    while (
        last_seen < started + _LONGEST_SECONDS
        and time.monotonic() < max(started, last_seen) + _LINGER_SECONDS
    ):
        _look(tree)
        if tree.alive:
            _kill(tree)
            last_seen = time.monotonic()
        time.sleep(_SWEEP_SECONDS)


def _look(tree: Tree) -> None:
    tree.look(tree.census.look())


def _kill(tree: Tree) -> None:
    """Kill all groups, stop whoever is new until nobody is, then kill each."""
    tree.signal(signal.SIGKILL, tree.alive.values(), groups=True)
    held: set[Identity] = set()
    quiet = 0
    deadline = time.monotonic() + _TERM_GRACE_SECONDS
    while quiet < 2 and time.monotonic() < deadline:
        _look(tree)
        new = [member for member in tree.alive.values() if member.identity not in held]
        tree.signal(signal.SIGSTOP, new, groups=True)
        held.update(member.identity for member in new)
        quiet = 0 if new or tree.doubtful else quiet + 1
    tree.signal(signal.SIGKILL, tree.alive.values(), groups=True)


if __name__ == "__main__":
    main(sys.argv[1:])
