"""A log of every line of a conversation, for whoever looks for a fault in an agent. Never on by default.

What it may reveal: everything. Prompts, answers, file contents, session ids and whatever secret the two sides
tell each other stand in it as they went through the pipes; only the owner of the file may read it (0600).

One line of JSON for each line of the conversation, so that several children can share one file:

    {"at": <seconds since the epoch>, "child": <process id>, "from": "client" | "agent", "frame": <message>}

What is no JSON has `raw`, a string, in place of `frame`. Owns that file, and promises that nothing that is
wrong with it ever harms the conversation: after the first fault it is left alone, and that is logged once. A
disk that fills up can cut its last line short.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import time

from pydantic_core import from_json

_log = logging.getLogger("acp_subagent.wire")

#: Who a line came from, by the direction that the connection's tap tells.
_SENDERS = {"sent": "client", "received": "agent"}

#: Not waiting for a reader matters for a named pipe; an ordinary file takes what it is given at once.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class WireLog:
    """The log of one child's conversation; `tap` is what a `Connection` takes."""

    def __init__(self, path: str, *, child: int) -> None:
        """Open `path` for appending, made if need be; never raises for anything that is wrong with it.

        `child` is the process id by which its lines are told from those of others.
        """
        self._child = child
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, _FLAGS, 0o600)
            if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                os.fchmod(self._descriptor, 0o600)  # it may have been there before, for all to read
        except (OSError, ValueError) as error:  # ValueError: a path that the system has no bytes for
            self._give_up(error)

    def __repr__(self) -> str:
        return f"<WireLog {'off' if self._descriptor < 0 else 'on'}>"

    def tap(self, direction: str, line: bytes) -> None:
        """Write down one line, newline removed. Does nothing after a fault or `close`."""
        if self._descriptor < 0:
            return
        entry = _entry(time.time(), self._child, direction, line)
        try:
            # One write for the whole line: that is what keeps the lines of several writers apart.
            if os.write(self._descriptor, entry) < len(entry):
                raise OSError(errno.ENOSPC, "")
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file; lines that still come are dropped."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _give_up(self, error: Exception) -> None:
        code = error.errno if isinstance(error, OSError) else errno.EINVAL
        _log.warning(
            "the wire log cannot be written (%s); the run goes on without it",
            errno.errorcode.get(code or 0, "unknown error"),
        )
        self.close()


def _entry(now: float, child: int, direction: str, line: bytes) -> bytes:
    """One line of the log. A message stands in it byte for byte."""
    sender = _SENDERS.get(direction, direction)
    head = f'{{"at":{now:.6f},"child":{child},"from":"{sender}",'.encode()
    if _is_json(line):
        return b'%b"frame":%b}\n' % (head, line)
    raw = json.dumps(line.decode("utf-8", errors="backslashreplace"))
    return b'%b"raw":%b}\n' % (head, raw.encode())


def _is_json(line: bytes) -> bool:
    try:
        from_json(line, allow_inf_nan=False)
    except ValueError:
        return False
    return b"\n" not in line
