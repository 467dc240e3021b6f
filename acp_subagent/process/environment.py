"""Which variables of the host reach a child: everything but what looks like a secret or would steer it.

Owns the rules, as tables, and decides on names alone; values are never looked at. What is set for the child
explicitly always reaches it. The launch cookie is not decided here: `host` mints it for each child.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from acp_subagent.errors import ConfigurationError
from acp_subagent.process.procfs import COOKIE

#: a name with one of these in it, in any case, looks like a secret
_SECRET_PARTS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
#: settings of another agent runtime, and what npm sets for the scripts that it runs
_STEERING_PREFIXES = ("DSH_", "npm_")
#: would load the host's code or packages into the child
_STEERING_NAMES = frozenset({"NODE_OPTIONS", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"})

#: nothing runs well without these: they win over the rules above
_ALWAYS_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "FTP_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "AWS_CA_BUNDLE",
        "PIP_CERT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "CARGO_HTTP_CAINFO",
        "DENO_CERT",
    }
)
_ALWAYS_PREFIXES = ("LC_",)


def scrubbed_environment(
    host: Mapping[str, str], *, env: Mapping[str, str], pass_env: Iterable[str]
) -> dict[str, str]:
    """The environment of a child: the host's without what is held back, and `env` merged over it.

    `pass_env` names variables of the host to let through all the same; one that the host does not have is no
    error.
    Raises `ConfigurationError` when a name in `env` cannot be one.
    """
    if any(not name or "=" in name for name in env):
        raise ConfigurationError("The name of an environment variable is empty or contains an equals sign.")
    wanted = frozenset(pass_env)
    # Copied first: to walk `os.environ` itself takes twice as long.
    passed = {name: value for name, value in dict(host).items() if name in wanted or not _held_back(name)}
    passed.pop(COOKIE, None)
    return {**passed, **env}


def withheld_names(host: Mapping[str, str], *, pass_env: Iterable[str]) -> tuple[str, ...]:
    """The names (sorted) that the host has and the child does not get because they look like keys."""
    wanted = frozenset(pass_env)
    return tuple(
        sorted(
            name for name in host if name not in wanted and not _always(name) and _looks_like_a_secret(name)
        )
    )


@lru_cache(maxsize=1024)  # the same names at every run
def _held_back(name: str) -> bool:
    if _always(name):
        return False
    return name in _STEERING_NAMES or name.startswith(_STEERING_PREFIXES) or _looks_like_a_secret(name)


def _always(name: str) -> bool:
    # Proxy variables are read in lower case as well.
    return name.upper() in _ALWAYS_NAMES or name.startswith(_ALWAYS_PREFIXES)


def _looks_like_a_secret(name: str) -> bool:
    upper = name.upper()
    return any(part in upper for part in _SECRET_PARTS)
