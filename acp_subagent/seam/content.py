"""Content blocks: what prompts and answers are made of, and their JSON shape.

Owns the block types and the one table that turns them into JSON and back (the shape that ACP shares
with MCP). Reading is lenient: what is not understood is kept as an `UnknownBlock`, never refused. A `repr`
shows no content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_subagent.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text. Every provider takes it."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ResourceLinkBlock:
    """A link to something that the agent can read by itself.

    Every ACP agent takes it; the DSH provider refuses it, as it refuses everything but text.
    """

    uri: str = field(repr=False)
    name: str = field(repr=False)
    mime_type: str | None = field(default=None, repr=False)
    title: str | None = field(default=None, repr=False)
    description: str | None = field(default=None, repr=False)
    size_bytes: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image, base64. Only for ACP agents that say they take images."""

    data: str = field(repr=False)
    mime_type: str = field(repr=False)
    uri: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """Audio, base64. Only for ACP agents that say they take audio."""

    data: str = field(repr=False)
    mime_type: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ResourceBlock:
    """The content of a resource: exactly one of `text` and `blob` (base64).

    Only for ACP agents that say they take it.
    """

    uri: str = field(repr=False)
    text: str | None = field(default=None, repr=False)
    blob: str | None = field(default=None, repr=False)
    mime_type: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise ConfigurationError("ResourceBlock takes exactly one of text and blob.")


@dataclass(frozen=True, slots=True)
class UnknownBlock:
    """Content from an agent of a type that this version does not know; never sent by us."""

    raw: Mapping[str, object] = field(repr=False)


ContentBlock = TextBlock | ResourceLinkBlock | ImageBlock | AudioBlock | ResourceBlock | UnknownBlock

#: The blocks that a prompt may be made of.
PROMPT_BLOCKS = (TextBlock, ResourceLinkBlock, ImageBlock, AudioBlock, ResourceBlock)


def block_to_json(block: ContentBlock) -> dict[str, object]:
    """The block as a JSON object, without the fields that are not set."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            return _given(type="image", data=block.data, mimeType=block.mime_type, uri=block.uri)
        case AudioBlock():
            return {"type": "audio", "data": block.data, "mimeType": block.mime_type}
        case ResourceLinkBlock():
            return _given(
                type="resource_link",
                uri=block.uri,
                name=block.name,
                mimeType=block.mime_type,
                title=block.title,
                description=block.description,
                size=block.size_bytes,
            )
        case ResourceBlock():
            inner = _given(uri=block.uri, text=block.text, blob=block.blob, mimeType=block.mime_type)
            return {"type": "resource", "resource": inner}
        case UnknownBlock():
            return dict(block.raw)


def block_from_json(raw: Mapping[str, object]) -> ContentBlock:
    """The block that a JSON object describes; an `UnknownBlock` when it is none of the known ones."""
    optional = {key: value for key, value in raw.items() if isinstance(value, str)}
    mime_type = optional.get("mimeType")
    match raw:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text)
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return ImageBlock(data, mime, optional.get("uri"))
        case {"type": "audio", "data": str(data), "mimeType": str(mime)}:
            return AudioBlock(data, mime)
        case {"type": "resource_link", "uri": str(uri), "name": str(name)}:
            size = raw.get("size")
            return ResourceLinkBlock(
                uri=uri,
                name=name,
                mime_type=mime_type,
                title=optional.get("title"),
                description=optional.get("description"),
                size_bytes=size if isinstance(size, int) and not isinstance(size, bool) else None,
            )
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text), **rest}}:
            return ResourceBlock(uri, text=text, mime_type=_text_or_none(rest.get("mimeType")))
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob), **rest}}:
            return ResourceBlock(uri, blob=blob, mime_type=_text_or_none(rest.get("mimeType")))
    return UnknownBlock(raw)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _given(**fields: object) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}
