"""Small values that a child sends, read with care: a wrong one is read as none, and nothing raises. Pure."""

from __future__ import annotations

#: how much is kept, for the host, of a word of the child's that is none of ours
MAX_WORD_CHARACTERS = 200

MAX_UINT64 = 2**64 - 1


def count(value: object) -> int | None:
    """An unsigned 64-bit integer; a boolean is none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_UINT64:
        return value
    return None


def word(value: object) -> str | None:
    """A string, cut to `MAX_WORD_CHARACTERS`."""
    return value[:MAX_WORD_CHARACTERS] if isinstance(value, str) else None
