"""What holds for every test: nothing is left when it has ended."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

#: How long a descriptor or a child may still take to go after the end of a test.
GONE_WITHIN_SECONDS = 5.0


def pytest_configure() -> None:
    """A shell has SIGINT ignored in what it starts in the background; here it is what Python makes of it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def children() -> set[int]:
    """The numbers of this process's children, zombies included."""
    pids: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended since the listing
            pids.update(int(pid) for pid in (task / "children").read_text().split())
    return pids


def reap_inherited(known: set[int]) -> None:
    """As the first process of a container we are given orphans: reap the dead ones among them.

    They are those whose starter has died before them, such as what a killed host had started. Elsewhere a
    child that is not known was left by the code under test.
    """
    if os.getpid() == 1:
        for pid in children() - known:
            with suppress(ChildProcessError):  # reaped meanwhile
                os.waitpid(pid, os.WNOHANG)


def pipes() -> set[str]:
    """The pipes and sockets that this process holds."""
    held = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        if target.startswith(("pipe:", "socket:")):
            held.add(f"{descriptor} {target}")
    return held


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """After each test: no child process and no open pipe that was not there before."""
    children_before, pipes_before = children(), pipes()
    yield
    deadline = time.monotonic() + GONE_WITHIN_SECONDS
    while children() - children_before or pipes() - pipes_before:
        if time.monotonic() > deadline:
            break
        reap_inherited(children_before)
        gc.collect()
        time.sleep(0.01)  # bounded polling of the kernel; nothing announces the end of a descriptor
    assert children() - children_before == set(), "the test left child processes"
    assert pipes() - pipes_before == set(), "the test left open pipes"
