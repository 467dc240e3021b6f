"""What one activity has brought: the record that becomes the result.

Owns which of the agent's messages is the output: the last one that has content, and when there is none, the
text of the message that was never finished. Pure: it is told what came, in order, and never waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acp_subagent.seam.activity import Usage
from acp_subagent.seam.content import ContentBlock
from acp_subagent.seam.events import Snapshot
from acp_subagent.seam.result import Counters, SubagentResult
from acp_subagent.supervised.output import TurnOutput
from acp_subagent.supervised.tool_calls import ToolCalls


class DshTurnRecord:
    """One activity, folded together.

    At most `max_output_bytes` of whole messages are kept, and as much of the one that is not finished.
    """

    def __init__(self, *, max_output_bytes: int, counted: Callable[[], Counters]) -> None:
        self._counted = counted
        self._max_output_bytes = max_output_bytes
        self._messages = TurnOutput(max_output_bytes)
        self._message_count = 0
        self._unfinished = TurnOutput(max_output_bytes)
        self._given_up = False  # what is unfinished belongs to a model call that has failed
        self.tool_calls = ToolCalls()
        self.usage = Usage()  #: the last that was reported

    @property
    def tool_in_progress(self) -> bool:
        """Never: this provider has one limit for a whole activity."""
        return False

    def add_message(self, text: str) -> None:
        """A whole message; one without text takes the place of nothing."""
        if text:
            self._message_count += 1
            # Its own key for each: two messages are never joined, whatever the runtime calls them.
            self._messages.add_text(str(self._message_count), text)
            self._unfinished = TurnOutput(self._max_output_bytes)

    def add_piece(self, text: str) -> None:
        """A piece of a message that is not finished."""
        if self._given_up:
            self._unfinished = TurnOutput(self._max_output_bytes)
            self._given_up = False
        self._unfinished.add_text(None, text)

    def give_up_message(self) -> None:
        """The model call is made once more: what it says next takes the place of what it had said."""
        self._given_up = True

    @property
    def messages(self) -> tuple[tuple[ContentBlock, ...], ...]:
        """Every message with content, in order; the unfinished one comes last."""
        return self._messages.messages() + self._unfinished.messages()

    def snapshot(self, stage: str) -> Snapshot:
        """The activity so far, for a subscriber that comes late."""
        return Snapshot(
            stage=str(stage),
            messages=self.messages,
            tool_calls=self.tool_calls.all(),
            plan=(),
            usage=self.usage,
        )

    def fill(self, result: SubagentResult) -> SubagentResult:
        """The result with everything that the activity brought; calls without an end are marked cancelled."""
        self._unfinished.finish()
        self.tool_calls.finish()
        dropped = self._messages.dropped_bytes + self._unfinished.dropped_bytes
        return replace(
            result,
            output=self._messages.output() or self._unfinished.output(),
            messages=self.messages,
            usage=self.usage,
            tool_calls=self.tool_calls.all(),
            counters=replace(self._counted(), output_dropped_bytes=dropped),
        )
