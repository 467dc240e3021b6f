"""Runs the fake's command line as on a system without fork, signals and Unix sockets.

It takes away what Windows does not have, and only then imports the fake. It cannot show that Windows itself
works; it shows that nothing of what is missing there is needed where it should not be.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import types
from typing import Any

#: What Windows does not have.
MISSING: dict[Any, tuple[str, ...]] = {
    os: ("fork", "forkpty", "setsid", "getpgid", "killpg", "waitid", "set_blocking", "wait4", "pidfd_open"),
    signal: ("SIGKILL", "SIGHUP", "SIGSTOP", "pthread_sigmask", "setitimer", "alarm"),
    socket: ("AF_UNIX", "socketpair"),
    select: ("poll", "epoll"),
}


def take_away() -> None:
    """Make this process look like one on Windows."""
    assert subprocess  # imported first: it looks at the system itself
    for module, names in MISSING.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.platform = "win32"
    console = types.ModuleType("msvcrt")
    console.setmode = lambda fd, mode: mode  # type: ignore[attr-defined]  # replaced
    sys.modules["msvcrt"] = console
    os.O_BINARY = 0  # type: ignore[attr-defined]  # replaced

    def refuse(*arguments: Any) -> None:
        raise OSError("select works on sockets only")

    select.select = refuse  # type: ignore[assignment]  # replaced


if __name__ == "__main__":
    take_away()
    from fake_acp_server.cli import main

    main()
