"""``${name}`` in scenario texts.

A text that is nothing but ``${name}`` becomes the value with its own type (a request id stays an integer);
inside a longer text the value is written out. Names nobody knows are left as they are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class UnknownNameError(Exception):
    """The name stands for nothing here."""


def expand(value: Any, lookup: Callable[[str], Any]) -> Any:
    """The value, with every ``${name}`` in its texts (keys not) replaced by what ``lookup`` gives."""
    if isinstance(value, str):
        return _expand_text(value, lookup) if "${" in value else value
    if isinstance(value, dict):
        return {key: expand(item, lookup) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(item, lookup) for item in value]
    return value


def _expand_text(text: str, lookup: Callable[[str], Any]) -> Any:
    if text.startswith("${") and text.find("}") == len(text) - 1:
        try:
            return lookup(text[2:-1])
        except UnknownNameError:
            return text
    parts = text.split("${")
    done = [parts[0]]
    for part in parts[1:]:
        name, closed, rest = part.partition("}")
        try:
            done.append(str(lookup(name)) + rest if closed else "${" + part)
        except UnknownNameError:
            done.append("${" + part)
    return "".join(done)
