"""Content blocks: to JSON and back, and what is not understood is kept."""

from __future__ import annotations

from typing import Any

import pytest

from acp_subagent import (
    AudioBlock,
    ConfigurationError,
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from acp_subagent.seam.content import block_from_json, block_to_json

BLOCKS: list[ContentBlock] = [
    TextBlock("text"),
    TextBlock(""),
    ImageBlock("aGk=", "image/png"),
    ImageBlock("aGk=", "image/png", "file:///a.png"),
    AudioBlock("aGk=", "audio/wav"),
    ResourceLinkBlock("file:///a", "a"),
    ResourceLinkBlock("file:///a", "a", "text/plain", "A", "the file", 5),
    ResourceBlock("file:///a", text="x"),
    ResourceBlock("file:///a", text="", mime_type="text/plain"),
    ResourceBlock("file:///a", blob="aGk="),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_a_block_survives_the_way_to_json_and_back(block: ContentBlock) -> None:
    raw = block_to_json(block)
    assert block_from_json(raw) == block
    assert None not in raw.values()


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"type": "hologram", "data": "x"},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "image", "data": "x"},
        {"type": "audio", "data": None, "mimeType": "a/b"},
        {"type": "resource_link", "uri": "u"},
        {"type": "resource", "resource": {"uri": "u"}},
        {"type": "resource", "resource": []},
        {"type": ["text"], "text": "x"},
    ],
    ids=repr,
)
def test_what_is_not_understood_is_kept_as_it_came(raw: Any) -> None:
    block = block_from_json(raw)
    assert block == UnknownBlock(raw)
    assert block_to_json(block) == raw


def test_optional_members_of_another_type_are_left_out() -> None:
    raw = {"type": "resource_link", "uri": "u", "name": "n", "title": 5, "size": True, "mimeType": None}
    assert block_from_json(raw) == ResourceLinkBlock("u", "n")


@pytest.mark.parametrize("fields", [{}, {"text": "a", "blob": "b"}])
def test_a_resource_has_either_text_or_bytes(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        ResourceBlock("u", **fields)


@pytest.mark.parametrize("block", [*BLOCKS, UnknownBlock({"SECRET": 1})], ids=lambda b: type(b).__name__)
def test_no_repr_shows_content(block: ContentBlock) -> None:
    assert repr(block) == f"{type(block).__name__}()"
