"""A process that does what it is told, step by step: the children and grandchildren of these tests.

Run as `python -I -S actor.py SOCKET STEPS`, where STEPS is a JSON list. A step is a word, or a list of a word
and its arguments; when the steps are used up, the process exits with code 0. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from typing import Any


class Actor:
    def __init__(self, roll: str) -> None:
        self.roll = roll
        self.kept: list[socket.socket] = []

    def act(self, steps: list[Any]) -> None:
        for position, step in enumerate(steps):
            word, *arguments = step if isinstance(step, list) else [step]
            if word == "exec":
                self.exec(steps[position + 1 :], *arguments)
            getattr(self, word)(*arguments)

    def exec(self, steps: list[Any], environment: str = "same") -> None:
        """Go on with the rest of the steps as a new program, perhaps with nothing in its environment."""
        variables = {} if environment == "cleared" else dict(os.environ)
        os.execve(sys.executable, self.command(steps), variables)

    def command(self, steps: list[Any]) -> list[str]:
        return [sys.executable, "-I", "-S", os.path.abspath(__file__), self.roll, json.dumps(steps)]

    def call(self) -> None:
        """Call in: the test learns the pid from the kernel, and sees the connection close at the death."""
        line = socket.socket(socket.AF_UNIX)
        line.connect(self.roll)
        self.kept.append(line)

    def fork(self, steps: list[Any]) -> None:
        if os.fork() == 0:
            try:
                self.kept = []
                self.act(steps)
            finally:
                os._exit(0)

    def setsid(self) -> None:
        os.setsid()

    def new_group(self) -> None:
        os.setpgid(0, 0)

    def close_all(self) -> None:
        """Close every descriptor there is."""
        for line in self.kept:
            line.detach()
        os.closerange(0, 1024)

    def ignore(self, *names: str) -> None:
        for name in names:
            signal.signal(signal.Signals[name], signal.SIG_IGN)

    def on_term(self, steps: list[Any]) -> None:
        """Go on with these steps when SIGTERM comes, then exit."""

        def handle(*_: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # what is forked now does not do the same again
            self.act(steps)
            os._exit(0)

        signal.signal(signal.SIGTERM, handle)

    def raise_signal(self, name: str) -> None:
        if name in ("SEGV", "ABRT"):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.Signals["SIG" + name])
        time.sleep(30)

    def stop(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def exit(self, code: int) -> None:
        os._exit(code)

    def rest(self) -> None:
        """Live until killed; never for ever, whatever goes wrong in a test."""
        time.sleep(60)

    def nap(self, seconds: float) -> None:
        time.sleep(seconds)

    def until_eof(self) -> None:
        while os.read(0, 65536):
            pass

    def until_byte(self) -> None:
        os.read(0, 1)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def write(self, descriptor: int, text: str, times: int = 1) -> None:
        data = text.encode() * times
        while data:
            data = data[os.write(descriptor, data) :]

    def flood(self, descriptor: int) -> None:
        while True:
            os.write(descriptor, b"x" * 65536)

    def relay(self, pause_seconds: float, new_session: bool = False) -> None:
        """Be a fork relay: each link forks the next one and exits; for ten seconds at most."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if os.fork() != 0:
                os._exit(0)
            if new_session:
                os.setsid()
            time.sleep(pause_seconds)

    def thread_outlives_main(self) -> None:
        """End the first thread of the process and let another one live on."""
        import ctypes
        import platform
        import threading

        threading.Thread(target=self.rest).start()
        system_call = {"x86_64": 60, "aarch64": 93}[platform.machine()]
        ctypes.CDLL(None).syscall(system_call, 0)

    def crowd(self, count: int, steps: list[Any]) -> None:
        for _ in range(count):
            self.fork(steps)


if __name__ == "__main__":
    Actor(sys.argv[1]).act(json.loads(sys.argv[2]))
