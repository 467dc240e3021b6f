"""Turns that are made of text chunks, and what is left of them."""

from __future__ import annotations

from acp_subagent.seam.content import TextBlock
from acp_subagent.supervised.output import TurnOutput

LIMIT = 1_000_000

Chunk = tuple[str | None, str]


def folded(*chunks: Chunk, limit: int = LIMIT) -> TurnOutput:
    output = TurnOutput(limit)
    for message_id, text in chunks:
        output.add_text(message_id, text)
    return output


def texts(output: TurnOutput) -> list[str]:
    """The messages of a turn that has nothing but text."""
    assert all(isinstance(block, TextBlock) for message in output.messages() for block in message)
    assert all(len(message) == 1 for message in output.messages())
    return ["".join(getattr(block, "text", "") for block in message) for message in output.messages()]


def text(output: TurnOutput) -> str:
    return "".join(block.text for block in output.output() if isinstance(block, TextBlock))
