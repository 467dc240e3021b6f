"""Arguments as a model wrote them, checked by the schema of their tool.

Owns the check and the fixed sentences that tell the model what to do better; they quote only names of the
schema, nothing that the model wrote. Pure; raises nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NO_OBJECT = "The arguments must be a JSON object."
NO_BACKGROUND = "run_in_background is not available; call without it and wait for the answer."

_TYPES: dict[str, tuple[type, str]] = {"string": (str, "a string"), "boolean": (bool, "true or false")}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why arguments cannot be used, said to the model."""

    sentence: str


def read_arguments(arguments: object, schema: Mapping[str, Any]) -> dict[str, Any] | Refusal:
    """The arguments by name, when they are all that `schema` asks for, of its types, and nothing else.

    A string is taken for JSON text, as some model APIs hand arguments over. A string argument that is blank
    counts as empty; a lone surrogate in one, which no agent could be sent, becomes U+FFFD.
    """
    given = _parsed(arguments)
    if given is None:
        return Refusal(NO_OBJECT)
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    unknown = set(given) - set(properties)
    if "run_in_background" in unknown:
        return Refusal(NO_BACKGROUND)
    if unknown:
        return Refusal(f"There is an unknown argument; known are: {', '.join(properties)}.")
    for name in schema["required"]:
        if name not in given:
            return Refusal(f"The argument {name} is missing.")
    for name, value in given.items():
        expected, words = _TYPES[properties[name]["type"]]
        if not isinstance(value, expected):
            return Refusal(f"The argument {name} must be {words}.")
        if isinstance(value, str) and not value.strip():
            return Refusal(f"The argument {name} must not be empty.")
    return {name: _sendable(value) for name, value in given.items()}


def _parsed(arguments: object) -> Mapping[str, object] | None:
    if isinstance(arguments, (str, bytes)):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, Mapping) else None


def _sendable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value
