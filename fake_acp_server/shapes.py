"""What ACP v1 lets a client send: a table of shapes, and the search for what does not fit its shape.

A shape is the name of a plain type (``"text"``), ``Object`` with named keys, ``Each`` for a list, ``Kinds``
for an object whose kind one of its keys names, ``AnyOf`` for several shapes, or ``Values`` for a mapping with
free keys. ``_meta`` is known in every object, holds an object or null, and is never looked into.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Object:
    """An object. A key ending in ``!`` must be there, one ending in ``?`` may be null."""

    def __init__(self, keys: dict[str, Any]) -> None:
        self.shapes = {key.rstrip("!?"): shape for key, shape in keys.items()}
        self.needed = [key[:-1] for key in keys if key.endswith("!")]
        self.nullable = {key[:-1] for key in keys if key.endswith("?")}


class Each:
    """A list whose items all have one shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


class Values:
    """A mapping whose values all have one shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


class Kinds:
    """An object whose kind is the value of ``key``; ``default`` is the kind when it is absent.

    ``is_open``: the protocol may get further kinds, so an unknown one is no mistake.
    """

    def __init__(
        self, key: str, shapes: dict[str, Object], default: str | None = None, is_open: bool = False
    ) -> None:
        self.key = key
        self.shapes = shapes
        self.default = default
        self.is_open = is_open


class AnyOf:
    """One of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


def _texts(keys: str, **others: Any) -> dict[str, Any]:
    return {**dict.fromkeys(keys.split(), "text"), **others}


def _kind(key: str, keys: dict[str, Any]) -> Object:
    return Object({f"{key}!": "text", **keys})


_ANNOTATIONS = Object({"audience?": Each("role"), "lastModified?": "text", "priority?": "number"})
_NOTED = {"annotations?": _ANNOTATIONS}
_RESOURCE = AnyOf(
    Object(_texts("uri! text! mimeType?")),
    Object(_texts("uri! blob! mimeType?")),
    Object(_texts("uri! text! blob! mimeType?")),
)

BLOCK = Kinds(
    "type",
    {
        "text": _kind("type", {**_texts("text!"), **_NOTED}),
        "image": _kind("type", {**_texts("data! mimeType! uri?"), **_NOTED}),
        "audio": _kind("type", {**_texts("data! mimeType!"), **_NOTED}),
        "resource_link": _kind(
            "type", {**_texts("uri! name! title? description? mimeType?"), "size?": "int64", **_NOTED}
        ),
        "resource": _kind("type", {"resource!": _RESOURCE, **_NOTED}),
    },
)

_PAIRS = Each(Object(_texts("name! value!")))
_REMOTE = _kind("type", {**_texts("name! url!"), "headers!": _PAIRS})

MCP_SERVER = Kinds(
    "type",
    {
        "stdio": Object({**_texts("name! command!"), "args!": Each("text"), "env!": _PAIRS}),
        "http": _REMOTE,
        "sse": _REMOTE,
    },
    default="stdio",
)

_MARK = Object({})

_CAPABILITIES = Object(
    {
        "fs": Object({"readTextFile": "flag", "writeTextFile": "flag"}),
        "terminal": "flag",
        "auth": Object({"terminal": "flag"}),
        "session?": Object(
            {
                "configOptions?": Object({"boolean?": _MARK}),
                "notices?": "object",
                "compaction?": "object",
            }
        ),
        "elicitation?": Object({"form?": _MARK, "url?": _MARK}),
    }
)

_ROOTS = {"additionalDirectories": Each("text")}
_SETUP = {"cwd!": "text", "mcpServers!": Each(MCP_SERVER), **_ROOTS}
_ONE_SESSION = _texts("sessionId!")

#: Method that a client calls -> shape of the params.
PARAMS: dict[str, Any] = {
    "initialize": Object(
        {
            "protocolVersion!": "uint16",
            "clientCapabilities": _CAPABILITIES,
            "clientInfo?": Object(_texts("name! version! title?")),
        }
    ),
    "authenticate": Object(_texts("methodId!")),
    "logout": Object({}),
    "session/new": Object(_SETUP),
    "session/load": Object({**_ONE_SESSION, **_SETUP}),
    "session/resume": Object({**_texts("sessionId! cwd!"), "mcpServers": Each(MCP_SERVER), **_ROOTS}),
    "session/list": Object(_texts("cwd? cursor?")),
    "session/delete": Object(_ONE_SESSION),
    "session/close": Object(_ONE_SESSION),
    "session/set_mode": Object(_texts("sessionId! modeId!")),
    "session/set_config_option": AnyOf(
        Object(_texts("sessionId! configId! value!")),
        Object({**_texts("sessionId! configId!"), "type!": "boolean", "value!": "flag"}),
    ),
    "session/prompt": Object({**_ONE_SESSION, "prompt!": Each(BLOCK)}),
    "session/cancel": Object(_ONE_SESSION),
    "$/cancel_request": Object({"requestId!": AnyOf("text", "int64", "null")}),
}

_EXIT = {"exitCode?": "uint32", "signal?": "text"}
_FORM_VALUE = AnyOf("text", "number", "flag", Each("text"))

#: Method that an agent calls -> shape of the client's result.
RESULTS: dict[str, Any] = {
    "session/request_permission": Object(
        {
            "outcome!": Kinds(
                "outcome",
                {"selected": Object(_texts("outcome! optionId!")), "cancelled": Object(_texts("outcome!"))},
            )
        }
    ),
    "fs/read_text_file": Object(_texts("content!")),
    "fs/write_text_file": Object({}),
    "terminal/create": Object(_texts("terminalId!")),
    "terminal/output": Object({"output!": "text", "truncated!": "flag", "exitStatus?": Object(_EXIT)}),
    "terminal/wait_for_exit": Object(_EXIT),
    "terminal/kill": Object({}),
    "terminal/release": Object({}),
    "elicitation/create": Kinds(
        "action",
        {
            "accept": _kind("action", {"content?": Values(_FORM_VALUE)}),
            "decline": _kind("action", {}),
            "cancel": _kind("action", {}),
        },
        is_open=True,
    ),
}

ERROR = Object({"code!": "int32", "message!": "text", "data": "any"})

#: Whole numbers of the protocol, by name, and their ranges.
_RANGES = {
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def is_plain(value: Any, name: str) -> bool:
    """Whether a value is of the plain type of that name."""
    if name in _RANGES:
        low, high = _RANGES[name]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    words = {"role": ("assistant", "user"), "boolean": ("boolean",)}.get(name)
    if words:
        return isinstance(value, str) and value in words
    kinds = {"text": str, "flag": bool, "object": dict, "null": type(None)}
    return isinstance(value, kinds.get(name, object))


#: What is wrong in a place: a key that the protocol does not know, or a value that is missing or another one.
UNKNOWN, WRONG = "unknown", "wrong"


def misfits(value: Any, shape: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """What does not fit: ``UNKNOWN`` or ``WRONG``, and the place."""
    if isinstance(shape, str):
        if not is_plain(value, shape):
            yield WRONG, place
    elif isinstance(shape, AnyOf):
        found = [list(misfits(value, one, place)) for one in shape.shapes]
        yield from min(found, key=len)
    elif isinstance(shape, Each):
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from misfits(item, shape.shape, f"{place}[{index}]")
        else:
            yield WRONG, place
    elif not isinstance(value, dict):
        yield WRONG, place
    elif isinstance(shape, Values):
        for key, item in value.items():
            yield from misfits(item, shape.shape, f"{place}.{key}")
    elif isinstance(shape, Kinds):
        yield from _of_a_kind(value, shape, place)
    else:
        yield from _keys(value, shape, place)


def _of_a_kind(value: dict[str, Any], shape: Kinds, place: str) -> Iterator[tuple[str, str]]:
    kind = value.get(shape.key, shape.default)
    if not isinstance(kind, str):
        yield WRONG, f"{place}.{shape.key}"
    elif kind in shape.shapes:
        yield from _keys(value, shape.shapes[kind], place)
    elif not shape.is_open:
        yield UNKNOWN, f"{place}.{shape.key}"


def _keys(value: dict[str, Any], shape: Object, place: str) -> Iterator[tuple[str, str]]:
    for key in shape.needed:
        if key not in value:
            yield WRONG, f"{place}.{key}"
    for key, item in value.items():
        if key == "_meta":
            yield from misfits(item, AnyOf("object", "null"), f"{place}._meta")
        elif key not in shape.shapes:
            yield UNKNOWN, f"{place}.{key}"
        elif item is not None or key not in shape.nullable:
            yield from misfits(item, shape.shapes[key], f"{place}.{key}")
