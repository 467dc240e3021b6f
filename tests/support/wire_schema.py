"""Judges frames against the official JSON Schema of ACP v1, method by method and without mercy.

The schema's root accepts nearly everything, because extensions may look like anything. So a frame is judged
by its method: params and results by the definition that carries the method's name, errors by ``Error``, the
envelope by hand. On top of what the schema says, integers keep the range of their format, ``1.0`` is no
integer, and a key that the schema does not know is refused everywhere but in ``_meta``. Gates, order and
absolute paths are not judged here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.validators import extend

#: Sides a frame can come from.
CLIENT = "client"
AGENT = "agent"

_OTHER = {CLIENT: AGENT, AGENT: CLIENT}

_RANGES = {
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

_COMBINATORS = ("allOf", "anyOf", "oneOf")

#: How many accepted values are remembered, and how long each may be.
_REMEMBERED = 10_000
_SHORT = 2_000

#: Errors that may go without the id of a request, because it could not be read.
_IDLESS_CODES = (-32700, -32600)


def _is_integer(checker: Any, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_Validator = extend(  # type: ignore[no-untyped-call]  # the library has no type for it
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def load_schema(path: Path) -> dict[str, Any]:
    """The schema in a file."""
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


class FrameChecker:
    """Judges the frames of one connection in the order in which they went over it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._definitions = {name: _closed(body, schema["$defs"]) for name, body in schema["$defs"].items()}
        self._names = _by_method(schema["$defs"])
        self._validators: dict[str, Any] = {}
        #: Values that were judged and are right: a stream repeats itself, and judging is slow.
        self._accepted: set[tuple[str, str]] = set()
        self._open: dict[tuple[str, str, Any], str] = {}

    def check(self, direction: str, frame: Any) -> None:
        """Judge a frame sent by ``"client"`` or ``"agent"``; ``AssertionError`` says what is wrong with it.

        An answer is judged by the method of the request it answers, so requests must be shown too.
        """
        assert direction in _OTHER, f"a frame comes from {CLIENT} or {AGENT}, not {direction}"
        try:
            self._check(direction, frame)
        except AssertionError as problem:
            shown = json.dumps(frame, default=repr)
            raise AssertionError(f"{direction}: {problem}\n{shown[:2000]}") from None

    def unanswered(self, direction: str) -> list[str]:
        """Methods of the requests of one side that have no answer yet."""
        return [method for (sender, _, _), method in self._open.items() if sender == direction]

    def _check(self, direction: str, frame: Any) -> None:
        assert isinstance(frame, dict), "a frame must be an object"
        assert frame.get("jsonrpc") == "2.0", 'jsonrpc must be "2.0"'
        if "method" in frame:
            self._call(direction, frame)
        else:
            self._answer(direction, frame)

    def _call(self, direction: str, frame: dict[str, Any]) -> None:
        method = frame["method"]
        assert isinstance(method, str), "method must be a string"
        _only(frame, {"jsonrpc", "method", "params", "id"})
        is_request = "id" in frame
        if is_request:
            _good_id(frame["id"])
            key = (direction, *_id_key(frame["id"]))
            assert key not in self._open, f"id {frame['id']!r} is already in use"
            self._open[key] = method
        if method.startswith("_"):
            assert isinstance(frame.get("params", {}), (dict, list)), "params must be an object or an array"
            return
        suffix = "Request" if is_request else "Notification"
        name = self._names.get((_OTHER[direction], method, suffix))
        name = name or self._names.get(("protocol", method, suffix))
        assert name, f"no {suffix.lower()} {method} is sent by the {direction}"
        self._validate(name, frame.get("params", {}), f"params of {method}")

    def _answer(self, direction: str, frame: dict[str, Any]) -> None:
        _only(frame, {"jsonrpc", "id", "result", "error"})
        assert ("result" in frame) != ("error" in frame), "an answer has either a result or an error"
        assert "id" in frame, "an answer has an id"
        if "error" in frame:
            self._validate("Error", frame["error"], "error")
            if frame["id"] is None:
                assert frame["error"]["code"] in _IDLESS_CODES, "this error needs the id of a request"
                return
        _good_id(frame["id"])
        method = self._open.pop((_OTHER[direction], *_id_key(frame["id"])), None)
        assert method, f"no open request has the id {frame['id']!r}"
        if "result" in frame and not method.startswith("_"):
            name = self._names.get((direction, method, "Response"))
            assert name, f"{method} has no result"
            self._validate(name, frame["result"], f"result of {method}")

    def _validate(self, name: str, value: Any, what: str) -> None:
        seen = (name, json.dumps(value, default=repr))
        if seen in self._accepted:
            return
        if name not in self._validators:
            root = {"$ref": f"#/$defs/{name}", "unevaluatedProperties": False, "$defs": self._definitions}
            if name == "Error":
                del root["unevaluatedProperties"]  # the one object without _meta; its keys are checked below
            self._validators[name] = _Validator(root)
        error = jsonschema.exceptions.best_match(self._validators[name].iter_errors(value))
        if error is not None:
            place = "".join(f"[{step!r}]" for step in error.absolute_path)
            raise AssertionError(f"{what}{place}: {error.message[:500]}")
        if name == "Error":
            _only(value, {"code", "message", "data"})
        if len(self._accepted) < _REMEMBERED and len(seen[1]) < _SHORT:
            self._accepted.add(seen)


def _by_method(definitions: dict[str, Any]) -> dict[tuple[str, str, str], str]:
    """(side that handles it, method, suffix) -> name of the definition."""
    names = {}
    for name, body in definitions.items():
        for suffix in ("Request", "Notification", "Response"):
            if "x-method" in body and name.endswith(suffix):
                names[(body["x-side"], body["x-method"], suffix)] = name
    return names


def _closed(schema: Any, definitions: dict[str, Any], is_value: bool = False) -> Any:
    """The schema with integer ranges, and closed against unknown keys wherever it describes a whole value."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in _COMBINATORS:
        if key in closed:
            closed[key] = [_closed(part, definitions) for part in closed[key]]
    for key in ("items", "additionalProperties"):
        if key in closed:
            closed[key] = _closed(closed[key], definitions, is_value=True)
    if "properties" in closed:
        closed["properties"] = {
            name: _closed(part, definitions, is_value=True) for name, part in closed["properties"].items()
        }
    if isinstance(closed.get("format"), str) and closed["format"] in _RANGES:
        low, high = _RANGES[closed["format"]]
        closed["minimum"] = max(low, closed.get("minimum", low))
        closed["maximum"] = min(high, closed.get("maximum", high))
    if is_value and _names_keys(schema, definitions):
        closed["unevaluatedProperties"] = False
    return closed


def _names_keys(schema: Any, definitions: dict[str, Any], seen: frozenset[str] = frozenset()) -> bool:
    """Whether the schema says which keys an object has (free values like ``rawInput`` do not)."""
    if not isinstance(schema, dict):
        return False
    if "properties" in schema:
        return True
    reference = schema.get("$ref", "").rpartition("/")[2]
    if reference and reference not in seen:
        return _names_keys(definitions[reference], definitions, seen | {reference})
    return any(_names_keys(part, definitions, seen) for key in _COMBINATORS for part in schema.get(key, []))


def _only(frame: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(frame) - known)
    assert not unknown, f"unknown members {unknown}"


def _good_id(value: Any) -> None:
    assert isinstance(value, (int, str)), "an id is an integer or a string"
    assert not isinstance(value, bool), "an id is no boolean"
    low, high = _RANGES["int64"]
    assert isinstance(value, str) or low <= value <= high, "an integer id has at most 64 bits"


def _id_key(value: Any) -> tuple[str, Any]:
    return (type(value).__name__, value)
