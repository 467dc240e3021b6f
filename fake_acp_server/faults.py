"""Steps that break the wire, the process or the process tree.

Nothing here is valid ACP or good manners, and nothing here runs unless a scenario asks for it. What needs
POSIX (signals, ``exec``, sockets with a path) says so on Windows, on stderr, and ends the process with
``UNSUPPORTED``.
"""

from __future__ import annotations

import os
import sys
import time

from fake_acp_server.job import Job
from fake_acp_server.wire import IS_WINDOWS, encode_frame, replace_with_null, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from fake_acp_server.agent import Agent

#: Exit code of a fault that this system cannot do.
UNSUPPORTED = 78

_held: list[Any] = []


def need_posix(what: str) -> None:
    """End the process with a sentence when this is not a POSIX system."""
    if IS_WINDOWS:
        unsupported(f"{what} needs a POSIX system")


def unsupported(why: str) -> NoReturn:
    """End the process with a sentence about what this system lacks."""
    write_all(2, f"fake-acp-server: {why}\n".encode())
    os._exit(UNSUPPORTED)


# The wire


def _frame(job: Job, value: Any) -> None:
    job.agent.output.frame(job.expand(value))


def _raw(job: Job, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"text": value}
    data = _raw_bytes(job, spec) * spec.get("repeat", 1)
    job.agent.output.raw(data, spec.get("split", 0), spec.get("delay_seconds", 0.0))


def _raw_bytes(job: Job, spec: dict[str, Any]) -> bytes:
    if "base64" in spec:
        import binascii

        return binascii.a2b_base64(spec["base64"])
    if "bytes" in spec:
        return str(spec["bytes"]).encode("latin-1")
    if "json" in spec:
        line = encode_frame(job.expand(spec["json"]))
        return line if spec.get("newline", True) else line[:-1]
    return str(job.expand(spec["text"])).encode("utf-8", "surrogatepass")


def _stderr(job: Job, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"text": value}
    line = str(job.expand(spec["text"])) + ("\n" if spec.get("newline", True) else "")
    data = line.encode("utf-8", "surrogatepass")
    block = max(1, 65536 // max(len(data), 1))
    left = spec.get("repeat", 1)
    while left > 0:
        write_all(2, data * min(left, block))
        left -= block


def _close_stdout(job: Job, value: Any) -> None:
    job.agent.output.close()


def _close_stdin(job: Job, value: Any) -> None:
    job.agent.inlet.close()


def _stop_reading(job: Job, value: Any) -> None:
    job.agent.inlet.pause()


def _start_reading(job: Job, value: Any) -> None:
    job.agent.inlet.resume()


# The process


def _exit(job: Job, value: Any) -> None:
    job.agent.leave(value.get("code", 0) if isinstance(value, dict) else int(value))


def _signal(job: Job, value: Any) -> None:
    need_posix("dying by a signal")
    import signal

    number = (
        value
        if isinstance(value, int)
        else int(getattr(signal, value if value.startswith("SIG") else f"SIG{value}"))
    )

    def die() -> None:
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)

    job.agent.inlet.in_main_thread(die)


def _exec(job: Job, value: Any) -> None:
    need_posix("exec")
    argv = job.expand(value)

    def become() -> None:
        os.execvp(argv[0], argv)  # noqa: S606  # the fault that was asked for

    job.agent.inlet.in_main_thread(become)


def _ignore_eof(job: Job, value: Any) -> None:
    job.agent.on_eof = {"ignore": bool(value)}


def _on_eof(job: Job, value: Any) -> None:
    job.agent.on_eof = job.expand(value)


def _ignore_term(job: Job, value: Any) -> None:
    need_posix("ignoring SIGTERM")
    import signal

    action = signal.SIG_IGN if value else signal.SIG_DFL
    job.agent.inlet.in_main_thread(lambda: _handle(signal.SIGTERM, action))


def _count_term(job: Job, value: Any) -> None:
    """Write one line into a file for each SIGTERM; leave after the ``exit_after``-th, if that is given."""
    need_posix("counting SIGTERM")
    import signal

    spec = value if isinstance(value, dict) else {"path": value}
    path = job.expand(spec.get("path", os.devnull))
    count = 0

    def note(number: int, frame: Any) -> None:
        nonlocal count
        count += 1
        with open(path, "a", encoding="ascii") as file:
            file.write(f"SIGTERM {count}\n")
        if count == spec.get("exit_after"):
            job.agent.leave(0)

    job.agent.inlet.in_main_thread(lambda: _handle(signal.SIGTERM, note))


def _handle(number: int, action: Any) -> None:
    import signal

    signal.signal(number, action)


# Sockets and children


def hold_life_socket(agent: Agent, path: str) -> None:
    """Connect to a socket and keep the connection as long as this process lives: its end proves the death."""
    connection = connect(agent_path(agent, path))
    connection.sendall(f"agent {os.getpid()}\n".encode())
    _held.append(connection)


def agent_path(agent: Agent, path: str) -> str:
    """The path with its ``${name}`` replaced."""
    from fake_acp_server.template import expand

    return str(expand(path, agent.names))


def connect(address: str) -> Any:
    """A connection to a Unix socket path, or to ``HOST:PORT``."""
    import socket

    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in address:
        return socket.create_connection((host, int(port)))
    if not hasattr(socket, "AF_UNIX"):
        need_posix("a socket with a path")
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def _wait_socket(job: Job, value: Any) -> None:
    """Connect, say ``waiting``, and wait until the other side sends something or closes."""
    spec = value if isinstance(value, dict) else {"path": value}
    connection = connect(job.expand(spec["path"]))
    connection.sendall(b"waiting\n")
    connection.settimeout(0.01)
    deadline = time.monotonic() + spec.get("timeout_seconds", 1e9)
    while time.monotonic() < deadline:
        try:
            connection.recv(1)
            break
        except TimeoutError:
            job.check_cancel()
    connection.close()


def _child(job: Job, value: Any) -> None:
    from fake_acp_server import children

    spec = value if isinstance(value, dict) else {"kind": value}
    spec = job.expand(spec)
    if str(spec.get("connect", "")).startswith("${"):
        del spec["connect"]  # a built-in names a variable that nobody set: nobody wants to know
    children.start(spec)


def _end_children(job: Job, value: Any) -> None:
    from fake_acp_server import children

    children.end_all()


def start_launcher(kind: str) -> None:
    """Be only the launcher of the real agent, the same command once more; returns in the inner process."""
    if os.environ.pop("FAKE_ACP_INNER", None):
        return
    import subprocess

    inner = subprocess.Popen(sys.orig_argv, env={**os.environ, "FAKE_ACP_INNER": "1"})
    if kind == "exits":
        os._exit(0)
    for fd in (0, 1):
        replace_with_null(fd)
    os._exit(max(inner.wait(), 0))


STEPS: dict[str, Callable[[Job, Any], None]] = {
    "frame": _frame,
    "raw": _raw,
    "stderr": _stderr,
    "close_stdout": _close_stdout,
    "close_stdin": _close_stdin,
    "stop_reading": _stop_reading,
    "start_reading": _start_reading,
    "exit": _exit,
    "signal": _signal,
    "exec": _exec,
    "ignore_eof": _ignore_eof,
    "on_eof": _on_eof,
    "ignore_term": _ignore_term,
    "count_term": _count_term,
    "wait_socket": _wait_socket,
    "child": _child,
    "end_children": _end_children,
}
