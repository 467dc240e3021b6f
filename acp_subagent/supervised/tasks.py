"""The tasks of one child: run in its nursery, each contained.

Owns that no task of ours lets an exception reach a nursery: it is handed to whoever made this, as data. Also
knows whether the task that calls is one of these (a handler of the host runs as one).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

_log = logging.getLogger("acp_subagent.supervised")


class Tasks:
    """What runs for one child. `on_crash` gets what a task raised; it must not raise."""

    def __init__(self, on_crash: Callable[[Exception], None]) -> None:
        self._on_crash = on_crash
        self._nursery: trio.Nursery | None = None

    @property
    def nursery(self) -> trio.Nursery:
        """The nursery, for those who contain their tasks themselves."""
        assert self._nursery is not None
        return self._nursery

    def run_in(self, nursery: trio.Nursery) -> None:
        """Where they run; called before the first one is spawned."""
        self._nursery = nursery

    def spawn(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` beside the others."""
        self.nursery.start_soon(self.perform, task)

    @trio.lowlevel.enable_ki_protection
    async def perform(self, task: Callable[[], Awaitable[None]]) -> None:
        """Wait for `task`; what it raises ends its child and nothing else."""
        try:
            await task()
        except Exception as exc:  # noqa: BLE001  handed on, see above
            self._contain(exc)

    def call(self, function: Callable[[], None]) -> None:
        """Call a plain function, contained as the tasks are."""
        try:
            function()
        except Exception as exc:  # noqa: BLE001  see `perform`
            self._contain(exc)

    def include_caller(self) -> bool:
        """Whether the present task is one of these, or runs below one."""
        task = trio.lowlevel.current_task()
        while task.parent_nursery is not None:
            if task.parent_nursery is self._nursery:
                return True
            task = task.parent_nursery.parent_task
        return False

    def _contain(self, exc: Exception) -> None:
        _log.error("a task of a run raised %s", type(exc).__name__)
        self._on_crash(exc)


async def outlast(event: trio.Event, *, when_cancelled: Callable[[], None]) -> None:
    """Wait for `event`; a cancellation does not cut it short, but is told at once. It comes again later.

    An interrupt from the keyboard is told too, and does cut it short.
    """
    try:
        await event.wait()
        return
    except trio.Cancelled:
        when_cancelled()
    except KeyboardInterrupt:
        when_cancelled()
        raise
    with trio.CancelScope(shield=True):
        await event.wait()


@contextmanager
def contained(doing: str) -> Iterator[None]:
    """A block whose exceptions harm nobody else; `doing`, for the log, says what it does."""
    try:
        yield
    except Exception as exc:  # noqa: BLE001  whatever it is: it must not reach a nursery that is not ours
        _log.error("%s raised %s", doing, type(exc).__name__)


def plain(error: BaseException) -> BaseException:
    """What is in a group of exceptions, when it is alone in it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
