"""The runs of a chain, as their callers hold them.

Owns the public behaviour: waiting, cancelling, disposing, subscribing, and who owns the child. The run that
`start` returned owns it; a run from `resume` borrows it, and disposing it ends its turn only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import trio

from acp_subagent.errors import (
    SessionEndedError,
    SubagentAbortedError,
    SubagentTeardownError,
    TurnInProgressError,
)
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.seam.content import ContentBlock
from acp_subagent.seam.feed import Subscription
from acp_subagent.seam.request import SessionRef, prompt_blocks
from acp_subagent.seam.result import SubagentResult
from acp_subagent.seam.run import SubagentRun
from acp_subagent.supervised.chain import Chain
from acp_subagent.supervised.ladder import NOTHING_ENDED
from acp_subagent.supervised.turn import Turn


class SupervisedRun:
    """A run whose agent is a child process."""

    def __init__(self, chain: Chain, turn: Turn, *, owner: bool) -> None:
        self._chain = chain
        self._turn = turn
        self._owner = owner
        self._id = f"run-{secrets.token_hex(8)}"

    def __repr__(self) -> str:
        state = "going on" if self._turn.result is None else str(self._turn.result.stop_reason)
        return f"<{type(self).__name__} {self._id} {state}>"

    @property
    def id(self) -> str:
        """The run's own id, unique in this process."""
        return self._id

    @property
    def session(self) -> SessionRef | None:
        """Where the session can be found again."""
        return self._chain.conversation.session

    async def result(self) -> SubagentResult:
        """Wait for the outcome; any number of tasks may. Never raises for anything that the child did."""
        await self._turn.settled.wait()
        assert self._turn.result is not None
        return self._turn.result

    def cancel(self) -> None:
        """End the turn: the result settles `aborted`. Harmless when it has settled."""
        self._chain.cancel(self._turn)

    async def dispose(self) -> TeardownReport:
        """End the run; the owner ends the child and its whole tree with it, a borrower only its turn.

        Idempotent, and not cut short by a cancellation. Raises `SubagentTeardownError` when processes
        survived or the end of the child could not be observed.
        """
        if self._owner:
            return await self._chain.dispose()
        self.cancel()
        with trio.CancelScope(shield=True):
            await self._turn.settled.wait()
        return NOTHING_ENDED

    def events(self, *, stderr: bool = False) -> Subscription:
        """Subscribe to what happens from here on; see `seam.events`."""
        return self._turn.feed.subscribe(stderr=stderr)

    def when_settled(self, callback: Callable[[SubagentResult], None]) -> None:
        """Call `callback`, a plain function, once with the result, at once if it has settled."""
        self._turn.when_settled(callback)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        error: SubagentTeardownError | None = None
        try:
            await self.dispose()
        except SubagentTeardownError as teardown:
            error = teardown
        if error is not None and exc is None:
            raise error.with_traceback(None)
        if error is not None and exc is not None:
            exc.add_note(str(error))


class ResumableRun(SupervisedRun):
    """A run whose session can take another prompt."""

    def __init__(
        self,
        chain: Chain,
        turn: Turn,
        *,
        owner: bool,
        next_turn: Callable[[tuple[ContentBlock, ...], trio.Event | None], Turn],
        announce: Callable[[SubagentRun], None],
    ) -> None:
        super().__init__(chain, turn, owner=owner)
        self._next_turn = next_turn
        self._announce = announce

    async def resume(
        self, prompt: str | Iterable[ContentBlock], *, abort: trio.Event | None = None
    ) -> ResumableRun:
        """Start another turn in the same session; the new run borrows the child.

        Raises `TurnInProgressError` while a turn runs, `SessionEndedError` when the child is gone or cannot
        be used any more, `UnsupportedCapabilityError` for content that the agent does not take, and
        `SubagentAbortedError` when `abort` is set already; nothing has been sent then.
        """
        blocks = prompt_blocks(prompt)
        await trio.lowlevel.checkpoint()
        if abort is not None and abort.is_set():
            raise SubagentAbortedError
        if not self._chain.usable:
            raise SessionEndedError("The child is gone or cannot be used any more; start a new run.")
        if not self._chain.turn.settled.is_set():
            raise TurnInProgressError("A turn is running in this session; await its result first.")
        self._chain.conversation.check_prompt(blocks)
        turn = self._next_turn(blocks, abort)
        run = ResumableRun(self._chain, turn, owner=False, next_turn=self._next_turn, announce=self._announce)
        # No checkpoint from here on: a cancellation could otherwise lose a run that has begun.
        self._chain.begin(turn)
        self._announce(run)
        return run
