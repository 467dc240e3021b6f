"""Which keys ACP v1 knows in what a client sends: a table of shapes, and the search for keys that are not in
it.

A shape is None (any value), a mapping of keys to shapes, ``Each(shape)`` for a list, or ``Kinds(key, {word:
shape})`` for an object whose kind one of its keys names. ``_meta`` is known everywhere and never looked into.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Each:
    """A list whose items all have one shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


class Kinds:
    """An object whose kind is the value of ``key``; ``default`` is the kind when it is absent."""

    def __init__(self, key: str, shapes: dict[str, Any], default: str | None = None) -> None:
        self.key = key
        self.shapes = shapes
        self.default = default


def _keys(text: str, **nested: Any) -> dict[str, Any]:
    return {**dict.fromkeys(text.split()), **nested}


_ANNOTATIONS = _keys("audience lastModified priority")
_RESOURCE = _keys("uri mimeType text blob")

BLOCK = Kinds(
    "type",
    {
        "text": _keys("type text", annotations=_ANNOTATIONS),
        "image": _keys("type data mimeType uri", annotations=_ANNOTATIONS),
        "audio": _keys("type data mimeType", annotations=_ANNOTATIONS),
        "resource_link": _keys("type uri name title description mimeType size", annotations=_ANNOTATIONS),
        "resource": _keys("type", resource=_RESOURCE, annotations=_ANNOTATIONS),
    },
)

_PAIR = _keys("name value")

MCP_SERVER = Kinds(
    "type",
    {
        "stdio": _keys("name command args", env=Each(_PAIR)),
        "http": _keys("type name url", headers=Each(_PAIR)),
        "sse": _keys("type name url", headers=Each(_PAIR)),
    },
    default="stdio",
)

#: Transport of an MCP server -> keys that it must have.
REQUIRED_OF_SERVER = {
    "stdio": ("name", "command", "args", "env"),
    "http": ("name", "url", "headers"),
    "sse": ("name", "url", "headers"),
}

_CAPABILITIES: dict[str, Any] = {
    "fs": _keys("readTextFile writeTextFile"),
    "terminal": None,
    "auth": _keys("terminal"),
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}

_SETUP = {"cwd": None, "mcpServers": Each(MCP_SERVER), "additionalDirectories": None}

#: Method that a client calls -> shape of the params.
PARAMS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": None,
        "clientCapabilities": _CAPABILITIES,
        "clientInfo": _keys("name version title"),
    },
    "authenticate": _keys("methodId"),
    "logout": {},
    "session/new": _SETUP,
    "session/load": {"sessionId": None, **_SETUP},
    "session/resume": {"sessionId": None, **_SETUP},
    "session/list": _keys("cwd cursor"),
    "session/delete": _keys("sessionId"),
    "session/close": _keys("sessionId"),
    "session/set_mode": _keys("sessionId modeId"),
    "session/set_config_option": _keys("sessionId configId value type"),
    "session/prompt": {"sessionId": None, "prompt": Each(BLOCK)},
    "session/cancel": _keys("sessionId"),
    "$/cancel_request": _keys("requestId"),
}

#: Method that an agent calls -> shape of the client's result.
RESULTS: dict[str, Any] = {
    "session/request_permission": {
        "outcome": Kinds("outcome", {"selected": _keys("outcome optionId"), "cancelled": _keys("outcome")})
    },
    "fs/read_text_file": _keys("content"),
    "fs/write_text_file": {},
    "terminal/create": _keys("terminalId"),
    "terminal/output": _keys("output truncated", exitStatus=_keys("exitCode signal")),
    "terminal/wait_for_exit": _keys("exitCode signal"),
    "terminal/kill": {},
    "terminal/release": {},
    "elicitation/create": _keys("action content"),
}

#: Method that an agent calls -> keys that the client's result must have, with their types.
REQUIRED_RESULTS: dict[str, dict[str, type]] = {
    "session/request_permission": {"outcome": dict},
    "fs/read_text_file": {"content": str},
    "terminal/create": {"terminalId": str},
    "terminal/output": {"output": str, "truncated": bool},
    "elicitation/create": {"action": str},
}


def unknown_keys(value: Any, shape: Any, place: str = "") -> Iterator[str]:
    """The places of all keys and kinds in a value that its shape does not know."""
    if isinstance(shape, Each):
        for index, item in enumerate(value if isinstance(value, list) else []):
            yield from unknown_keys(item, shape.shape, f"{place}[{index}]")
    elif isinstance(shape, Kinds) and isinstance(value, dict):
        kind = value.get(shape.key, shape.default)
        if kind in shape.shapes:
            yield from unknown_keys(value, shape.shapes[kind], place)
        else:
            yield f"{place}.{shape.key}"
    elif isinstance(shape, dict) and isinstance(value, dict):
        for key, item in value.items():
            if key not in shape and key != "_meta":
                yield f"{place}.{key}"
            elif key != "_meta":
                yield from unknown_keys(item, shape[key], f"{place}.{key}")
