"""When the graces of one child are cut short.

Owns the two ways: the service says so for all its children, or a cancellation from outside has come and the
time that is left after one has passed.
"""

from __future__ import annotations

import trio


class Hurry:
    """Whether there is still time to be polite to one child."""

    def __init__(self, told: trio.Event, *, seconds: float | None) -> None:
        """`told` is the service's word; `seconds` is what is left after a cancellation, None for no limit."""
        self._told = told
        self._seconds = seconds
        self._scope = trio.CancelScope()
        self.begun = trio.Event()  #: there is no time left

    def soon(self) -> None:
        """A cancellation from outside has come: from now on there is only so much time."""
        if self._seconds is not None:
            ends_at = trio.current_time() + self._seconds
            self._scope.deadline = min(self._scope.deadline, ends_at)

    async def wait(self) -> None:
        """Wait until there is no time left."""
        with self._scope:
            await self._told.wait()
        self.begun.set()
