"""Child processes that a supervisor has to find and end, one kind for each way in which real ones hide.

Two halves in one file. ``start``, used by the agent, starts this very file as a script with a fresh
interpreter, so that nothing forks inside a process with threads, and waits until the child is in place. The
script half then becomes what its kind says. Each process that is left over leaves by itself after
``seconds``, whatever happens.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = {
    "plain": "a child that waits",
    "launcher-exits": "its starter exits at once, the child is left to init, in the same group and session",
    "launcher-stays": "its starter stays, and passes no signal on",
    "double-fork": "a daemon: its own session, its starter gone",
    "setsid": "a child in a session and group of its own",
    "own-group": "a child in a group of its own, in the agent's session",
    "closed": "a child that has closed every descriptor",
    "stopped": "a child that has stopped itself: it takes no signal but SIGKILL and SIGCONT",
    "holds-stdout": "a child that keeps the agent's stdout open",
    "fork-loop": "a process that goes on starting children, each of which waits",
    "relay": "a process that again and again is replaced by its own child: always one, never the same pid",
    "setsid-relay": "the same, and each begins with a session of its own",
}

#: Kinds that need ``fork``, sessions, groups or stop signals.
_POSIX = frozenset(KINDS) - {"plain", "holds-stdout", "closed"}

#: What a child says on stderr when it is there.
IN_PLACE = b"in place\n"

_started: list[Any] = []


def start(spec: dict[str, Any]) -> None:
    """Start a child as the ``child`` step says; returns when it is in place (``wait`` false: at once)."""
    import subprocess

    from fake_acp_server import faults

    kind = spec["kind"]
    if kind not in KINDS:
        raise ValueError(f"no kind of child is called {kind}")
    if kind in _POSIX and not hasattr(os, "fork"):
        faults.unsupported(f"a {kind} child needs fork")
    command = [
        sys.executable, "-I", "-S", os.path.abspath(__file__), kind, spec.get("connect", ""),
        "ignore-term" if spec.get("ignore_term") else "", str(spec.get("seconds", 120)),
        str(spec.get("every_seconds", 0.01)),
    ]  # fmt: skip
    # The child says on stderr that it is in place; stdout is the only other stream it might have to hold.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=None if kind == "holds-stdout" else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={} if spec.get("environment") == "empty" else None,
    )
    _started.append(child)
    if spec.get("wait", True) and child.stderr and child.stderr.readline() != IN_PLACE:
        raise OSError("the child could not take its place")
    if kind in ("launcher-exits", "double-fork"):
        child.wait()  # the starter is gone for good, no zombie points at the child


def end_all() -> None:
    """Kill and reap the children that were started and are still ours."""
    for child in _started:
        child.kill()
        child.wait()
    _started.clear()


def be(kind: str, address: str, ignore_term: bool, seconds: float, every_seconds: float) -> None:
    """Become a child of that kind; the script half."""
    deadline = time.monotonic() + seconds
    if ignore_term:
        import signal

        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            signal.signal(number, signal.SIG_IGN)
    # One connection for everything that this kind starts: it ends when the last of them is dead.
    connection = _connect(address) if address else None
    _take_place(kind, deadline)
    if connection:
        connection.sendall(f"{kind} {os.getpid()}\n".encode())
    os.write(2, IN_PLACE)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)
    if kind == "fork-loop":
        _fork_loop(deadline, every_seconds)
    elif kind in ("relay", "setsid-relay"):
        _relay(deadline, every_seconds, own_sessions=kind == "setsid-relay")
    elif kind == "closed":
        os.closerange(0, 65536)
    elif kind == "stopped":
        _stop(deadline)
    _sleep_until(deadline)


def _take_place(kind: str, deadline: float) -> None:
    if kind in ("setsid", "setsid-relay"):
        os.setsid()
    elif kind == "own-group":
        os.setpgid(0, 0)
    elif kind == "launcher-exits" and os.fork():
        os._exit(0)
    elif kind == "launcher-stays" and os.fork():
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 2)
        _sleep_until(deadline)
    elif kind == "double-fork":
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)


def _fork_loop(deadline: float, every_seconds: float) -> None:
    while time.monotonic() < deadline:
        if os.fork() == 0:
            _sleep_until(deadline)
        time.sleep(every_seconds)


def _relay(deadline: float, every_seconds: float, own_sessions: bool) -> None:
    while time.monotonic() < deadline:
        if os.fork():
            os._exit(0)
        if own_sessions:
            os.setsid()
        time.sleep(every_seconds)


def _stop(deadline: float) -> None:
    """Stop, and have a child that ends this at the deadline: who is stopped cannot leave by itself."""
    import signal

    stopped = os.getpid()
    if os.fork() == 0:
        while os.getppid() == stopped and time.monotonic() < deadline:
            time.sleep(0.05)
        if os.getppid() == stopped:
            os.kill(stopped, signal.SIGKILL)
        os._exit(0)
    os.kill(stopped, signal.SIGSTOP)


def _sleep_until(deadline: float) -> None:
    while time.monotonic() < deadline:
        time.sleep(max(0.0, deadline - time.monotonic()))
    os._exit(0)


def _connect(address: str) -> Any:
    import socket

    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in address:
        connection = socket.create_connection((host, int(port)))
    else:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    connection.set_inheritable(True)
    return connection


if __name__ == "__main__":
    _kind, _address, _ignore, _seconds, _every = sys.argv[1:]
    be(_kind, _address, _ignore == "ignore-term", float(_seconds), float(_every))
