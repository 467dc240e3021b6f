"""Takes secrets out of what is recorded: by the name beside a value, by the shape of a value, and by known
values.

Better too much than too little: a masked value reads ``***``. It cannot find a secret without a telling name
or shape.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MASK = "***"

#: A text under a key, or an environment or header entry, whose name contains one of these words is a secret.
SECRET_NAME = re.compile(
    "KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|COOKIE", re.IGNORECASE
)

#: Shapes of well-known kinds of secrets.
SECRET_SHAPE = re.compile(
    r"sk-[A-Za-z0-9_-]{12,}"  # model providers
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"  # code hosts
    r"|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}"  # clouds, chat
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JSON web tokens
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # user and password in a URL
    r"|(?i:(?<=bearer )|(?<=basic ))[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)

#: A value of our own environment shorter than this is too common a text to look for.
SHORTEST_KNOWN = 8


class Masker:
    """Masks values and texts. It knows the secrets of an environment and finds them anywhere."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        secrets = {item for name, item in environment.items() if SECRET_NAME.search(name)}
        known = [item for item in secrets if len(item) >= SHORTEST_KNOWN]
        self._known = sorted(known, key=len, reverse=True)  # one that holds another goes first

    def value(self, value: Any, name: str = "") -> Any:
        """The value without its secrets. ``name``: the key under which it stands."""
        if isinstance(value, str):
            return MASK if name and value and SECRET_NAME.search(name) else self.text(value)
        if isinstance(value, list):
            return [self.value(item, name) for item in value]
        if isinstance(value, dict):
            return {key: self.value(item, _name_of(key, value)) for key, item in value.items()}
        return value

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for known in self._known:
            text = text.replace(known, MASK)
        return SECRET_SHAPE.sub(MASK, text)


def _name_of(key: str, entry: dict[str, Any]) -> str:
    """What names a value: its key; for the ``value`` of an environment or header entry, its name."""
    name = entry.get("name")
    return name if key == "value" and isinstance(name, str) else key
