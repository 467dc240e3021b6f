"""Taking leave of one agent and ending its process tree.

Owns that the ladder is climbed whatever goes wrong before it, and what its report is worth: the teardown
error when something survived or could not be seen. When it begins is the chain's to say.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import trio

from acp_subagent.errors import SubagentTeardownError
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.supervised.conversation import Conversation, LifeEvent
from acp_subagent.supervised.hurry import Hurry
from acp_subagent.supervised.line import Line
from acp_subagent.supervised.reporting import barest_teardown_error, log_teardown, teardown_error

_log = logging.getLogger("acp_subagent.supervised")

#: The report of a ladder that had nothing to end.
NOTHING_ENDED = TeardownReport(rungs={}, processes_found=0, survivors=0, exit_status=None)


class Ladder:
    """The end of one child."""

    def __init__(self, line: Line, conversation: Conversation) -> None:
        self._line = line
        self._conversation = conversation
        self._leave_scope = trio.CancelScope()
        self._climbed = False
        self.report: TeardownReport | None = None  #: None when there was nothing to end, or it has not ended
        self.error: SubagentTeardownError | None = None  #: when something was left, or the end was not seen

    @property
    def takes_leave(self) -> bool:
        """Whether there is somebody to say goodbye to, and a goodbye to say."""
        return self._line.child is not None and self._conversation.takes_leave

    def hurry(self) -> None:
        """Do not wait for the agent's goodbye."""
        self._leave_scope.cancel()

    async def take_leave(self) -> None:
        """Say goodbye; whatever comes of it, the ladder follows."""
        try:
            with self._leave_scope:
                await self._conversation.close()
        except Exception as exc:  # noqa: BLE001  the ladder must come
            _log.error("taking leave of an agent raised %s", type(exc).__name__)

    async def climb(self, hurry: Hurry) -> None:
        """End the tree; once `hurry` has begun, by the kill. Raises nothing; does nothing the second time."""
        if self._climbed:
            return
        child = self._line.child
        if child is not None:
            try:
                self.report = await self._line.end(lambda: hurry.begun)
            except Exception as exc:  # noqa: BLE001  becomes part of the report
                _log.error("ending a child raised %s", type(exc).__name__)
                self.report = replace(self.report or NOTHING_ENDED, failed=True, cause=exc)
            log_teardown(child, self.report)
            self.error = self._judged(self.report)
        self._climbed = True
        self.advance(LifeEvent.LADDER_ENDED)

    def _judged(self, report: TeardownReport) -> SubagentTeardownError | None:
        """What is wrong with the end of the tree; a bug in telling it hides nothing and holds nobody up."""
        try:
            return teardown_error(self._conversation, report, self._line.child)
        except Exception as exc:  # noqa: BLE001  see above
            _log.error("the end of a child cannot be told: %s", type(exc).__name__)
            return barest_teardown_error(self._conversation, report, exc)

    def advance(self, event: LifeEvent) -> None:
        """Tell the conversation how the child's life went on; a bug there must not stop the ladder."""
        try:
            self._conversation.advance(event)
        except Exception as exc:  # noqa: BLE001  see above
            _log.error("noting %s raised %s", event, type(exc).__name__)
