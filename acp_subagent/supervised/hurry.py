"""When the graces of one child are cut short.

Owns the two ways: the service says so for all its children, or a cancellation from outside has come and the
time that is left after one has passed. Waits for neither before something is being ended.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from acp_subagent.supervised.tasks import Tasks


class Hurry:
    """Whether there is still time to be polite to one child."""

    def __init__(self, told: trio.Event, *, seconds: float | None) -> None:
        """`told` is the service's word; `seconds` is what is left after a cancellation, None for no limit."""
        self._told = told
        self._seconds = seconds
        self._scope = trio.CancelScope()
        self._over = False
        self._expected = False

    @property
    def begun(self) -> bool:
        """Whether there is no time left."""
        return self._over or self._told.is_set() or trio.current_time() >= self._scope.deadline

    def begin(self) -> None:
        """There is no time left, for a reason of our own."""
        self._over = True

    def soon(self) -> None:
        """A cancellation from outside has come: from now on there is only so much time."""
        if self._seconds is not None:
            ends_at = trio.current_time() + self._seconds
            self._scope.deadline = min(self._scope.deadline, ends_at)

    def expect(self, tasks: Tasks, then: Callable[[], None]) -> None:
        """Call `then` when there is no time left, at once if that is so; to be given the same each time."""
        if self.begun:
            then()
        elif not self._expected:
            self._expected = True
            tasks.spawn(lambda: self._wait(then))

    async def _wait(self, then: Callable[[], None]) -> None:
        with self._scope:
            await self._told.wait()
        then()
