"""Finding the processes of a test by an entry that their environment has inherited."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def marked(mark: str) -> list[int]:
    """The living processes with this entry in their environment (zombies are dead)."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
                state = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue  # gone meanwhile
            if state not in "ZX" and mark.encode() in environment.split(b"\0"):
                found.append(int(entry))
    return found


def end_marked(mark: str) -> None:
    """Kill whoever has the entry, until nobody has it: some are replaced by others meanwhile."""
    while left := marked(mark):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
