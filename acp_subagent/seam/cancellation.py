"""The cancellation of a service's nursery, told at once to every run in it.

Owns that one task is enough for all: a run shields itself from cancellation, and is told of it here, so that
it can come to its end in order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

_log = logging.getLogger("acp_subagent.seam")


class Cancellation:
    """Whether the nursery was cancelled, by the end of the service or from outside; and who is to be told."""

    def __init__(self) -> None:
        self._told = False
        self._callbacks: dict[int, Callable[[], None]] = {}  # in the order of the starts

    @contextmanager
    def tell(self, callback: Callable[[], None]) -> Iterator[None]:
        """A block during which a cancellation calls `callback`, at once if it has come already.

        `callback` is a plain function that must not raise.
        """
        self._callbacks[id(callback)] = callback
        try:
            if self._told:
                callback()
            yield
        finally:
            del self._callbacks[id(callback)]

    @trio.lowlevel.enable_ki_protection
    async def wait(self) -> None:
        """The task in the nursery: returns once everybody has been told."""
        try:
            await trio.sleep_forever()
        except trio.Cancelled:  # whoever was cancelled meets it again; no nursery has to carry it
            self._told = True
            for callback in list(self._callbacks.values()):
                try:
                    callback()
                except Exception as exc:  # noqa: BLE001  the others are to be told all the same
                    _log.error("a run that was told of a cancellation raised %s", type(exc).__name__)
