"""Takes secrets out of what is recorded: by the name beside a value, by the shape of a value, and by known
values.

Better too much than too little: a masked value reads ``***``. It cannot find a secret without a telling name
or shape. No pattern starts with a repetition: recorded lines may be megabytes long.
"""

from __future__ import annotations

import base64
import json
import os
import re
from urllib.parse import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MASK = "***"

#: A text under a key, or an environment or header entry, whose name contains one of these words is a secret.
SECRET_NAME = re.compile(
    "KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|COOKIE", re.IGNORECASE
)

#: Names under which a number is a secret too; under ``totalTokens`` and the like it is none.
SECRET_NUMBER_NAME = re.compile("API.?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)

#: Shapes of well-known kinds of secrets.
SECRET_SHAPE = re.compile(
    r"\b(?:sk|rk|gsk|xai)[-_][A-Za-z0-9_-]{12,}"  # model providers, payments
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|SG\.)[A-Za-z0-9_.-]{16,}"  # code, packages
    r"|\bA[KS]IA[0-9A-Z]{16}|\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}"  # clouds
    r"|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}"  # chat
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JSON web tokens
    r"|(?<=://)[^/\s:@\"']*:[^/\s\"']+(?=@)|(?<=://)[^/\s:@\"']{16,}(?=@)"  # user and password in a URL
    r"|(?i:(?<=bearer )|(?<=basic ))[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)

_NAMES = r"""(?: api-?key | (?<=[-_])key | (?<=[?&])(?:key|sig|signature) | token | secret | password | passwd
    | passphrase | credentials? | authorization | cookie )"""

#: A name and its value inside a text: ``NAME=value``, a header line, JSON in a text, the query of a URL.
ASSIGNMENT = re.compile(
    rf"""(?P<kept> {_NAMES} \\*["']? \s* [:=] \s* \\*(?P<quote>["'])? )
    (?(quote) (?: (?!(?P=quote)) [^\\] )+
            | (?! (?:\d+|true|false|null|none)\b (?![\w-]) )
              (?: (?:bearer|basic|token) \s+ )? [^\s"'\\&]{{4,}} )""",
    re.IGNORECASE | re.VERBOSE,
)

#: An option of a command line with such a name, and the next word.
OPTION = re.compile(
    rf"(?P<kept> (?<![\w-]) --? [\w-]{{0,40}}? {_NAMES} \s+ ) [^\s-]\S{{3,}}", re.IGNORECASE | re.VERBOSE
)

#: A value of our own environment shorter than this is too common a text to look for.
SHORTEST_KNOWN = 8


class Masker:
    """Masks values and texts. It knows the secrets of an environment and finds them anywhere, also written as
    base64, in a URL or in JSON.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        secrets = {item for name, item in environment.items() if SECRET_NAME.search(name)}
        known = {form for item in secrets if len(item) >= SHORTEST_KNOWN for form in _forms(item)}
        self._known = sorted(known, key=len, reverse=True)  # one that holds another goes first

    def value(self, value: Any, name: str = "") -> Any:
        """The value without its secrets. ``name``: the key under which it stands."""
        is_secret = bool(SECRET_NAME.search(name))
        if isinstance(value, str):
            return MASK if is_secret and value else self.text(value)
        if isinstance(value, list):
            options = [None, *value]
            return [
                self.value(item, name if is_secret else _option(before) or name)
                for before, item in zip(options, value, strict=False)
            ]
        if isinstance(value, dict):
            return {
                self.text(key): self.value(item, name if is_secret else _name_of(key, value))
                for key, item in value.items()
            }
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return MASK if SECRET_NUMBER_NAME.search(name) else value
        return value

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for known in self._known:
            text = text.replace(known, MASK)
        text = SECRET_SHAPE.sub(MASK, text)
        for pattern in (ASSIGNMENT, OPTION):
            text = pattern.sub(lambda found: found["kept"] + MASK, text)
        return text


def _name_of(key: str, entry: dict[str, Any]) -> str:
    """What names a value: its key; for the ``value`` of an environment or header entry, its name."""
    if key in ("name", "key") and "value" in entry:
        return ""
    for name in (entry.get("name"), entry.get("key")):
        if key == "value" and isinstance(name, str):
            return name
    return key


def _option(argument: Any) -> str:
    """The option of a command line whose value is the next argument, or nothing."""
    is_option = isinstance(argument, str) and argument.startswith("-") and "=" not in argument
    return argument if is_option and SECRET_NAME.search(argument) else ""


def _forms(secret: str) -> Iterable[str]:
    """How a secret may be written."""
    yield from (secret, quote(secret, safe=""), json.dumps(secret)[1:-1])
    for shift in range(3):  # in base64 it depends on what stands before it
        data = bytes(shift) + secret.encode("utf-8", "surrogateescape")
        whole = data[: len(data) // 3 * 3]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(whole)[(0, 2, 3)[shift] :].decode()
