"""What the runtime says of a tool call, read: that it began, and what came of it.

Owns the reading of `tool/call` and `tool/result`, leniently: whatever junk stands in a field, nothing raises.
Pure. How mentions of a call are merged is `supervised.tool_calls`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acp_subagent.dsh.vocabulary import TOOL_KINDS
from acp_subagent.seam.activity import ToolKind, ToolStatus
from acp_subagent.supervised.tool_calls import Mention


def call_begun(data: Mapping[str, object]) -> tuple[str, Mention] | None:
    """The id of a call and what `tool/call` says of it; None when it has no id.

    Models exist that count their calls from 1 in every step: what an earlier one of this id brought is gone.
    """
    call_id, name, arguments = (data.get(key) for key in ("callId", "name", "arguments"))
    if not isinstance(call_id, str):
        return None
    title = name if isinstance(name, str) else ""
    kind = TOOL_KINDS.get(title, ToolKind.OTHER)
    mention = Mention(title, kind, ToolStatus.IN_PROGRESS, content=(), raw_input=arguments)
    return call_id, mention


def calls_ended(data: Mapping[str, object]) -> Iterator[tuple[str, Mention]]:
    """The ids of the calls that `tool/result` tells of, each with what came of it."""
    message = data.get("message")
    blocks = message.get("content") if isinstance(message, dict) else None
    for block in blocks if isinstance(blocks, list) else []:
        call_id = block.get("toolCallId") if isinstance(block, dict) else None
        if isinstance(call_id, str):
            content = block.get("content")
            yield (
                call_id,
                Mention(
                    # `isError` is false or left out when the tool did what it was asked to.
                    status=ToolStatus.FAILED if block.get("isError") is True else ToolStatus.COMPLETED,
                    content=tuple(content) if isinstance(content, list) else (),
                    default_kind=ToolKind.OTHER,
                ),
            )
