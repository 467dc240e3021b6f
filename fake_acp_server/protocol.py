"""The part of ACP v1 that an agent needs to know: methods, what their params must hold, error codes.

Plain tables and pure functions. What an answer says is the scenario's business (``agent``); whether a client
keeps the rest of the rules is judged elsewhere (strict mode).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL_VERSION = 1

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
CANCELLED = -32800

#: Scenario key -> method it answers. The order is the order of the reference.
ANSWER_METHODS = {
    "initialize": "initialize",
    "authenticate": "authenticate",
    "logout": "logout",
    "session_new": "session/new",
    "session_load": "session/load",
    "session_resume": "session/resume",
    "session_list": "session/list",
    "session_close": "session/close",
    "session_delete": "session/delete",
    "session_set_mode": "session/set_mode",
    "session_set_config_option": "session/set_config_option",
}
METHOD_KEYS = {method: key for key, method in ANSWER_METHODS.items()}

#: Method -> the params that must be there, each with the JSON type it must have.
REQUIRED_PARAMS: dict[str, dict[str, type]] = {
    "initialize": {"protocolVersion": int},
    "authenticate": {"methodId": str},
    "logout": {},
    "session/new": {"cwd": str, "mcpServers": list},
    "session/load": {"sessionId": str, "cwd": str, "mcpServers": list},
    "session/resume": {"sessionId": str, "cwd": str},
    "session/list": {},
    "session/close": {"sessionId": str},
    "session/delete": {"sessionId": str},
    "session/set_mode": {"sessionId": str, "modeId": str},
    "session/set_config_option": {"sessionId": str, "configId": str},
    "session/prompt": {"sessionId": str, "prompt": list},
}

#: Methods that name a session which must exist (load and resume may bring one back).
LIVE_SESSION_METHODS = frozenset(
    {"session/prompt", "session/close", "session/set_mode", "session/set_config_option"}
)

#: Method -> path into agentCapabilities that must be true or an object before a client may call it.
GATES: dict[str, tuple[str, ...]] = {
    "logout": ("auth", "logout"),
    "session/load": ("loadSession",),
    "session/resume": ("sessionCapabilities", "resume"),
    "session/list": ("sessionCapabilities", "list"),
    "session/close": ("sessionCapabilities", "close"),
    "session/delete": ("sessionCapabilities", "delete"),
}


class RpcError(Exception):
    """A request is answered with this JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.data = data

    def as_json(self) -> dict[str, Any]:
        """The ``error`` member of the answer."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def is_advertised(capabilities: dict[str, Any], method: str) -> bool:
    """Whether an agent with these capabilities offers the method (``{}`` and true mean yes)."""
    value: Any = capabilities
    for step in GATES.get(method, ()):
        value = value.get(step) if isinstance(value, dict) else None
    return value is True or isinstance(value, dict)


def params_problem(method: str, params: Any) -> str | None:
    """What is wrong with the params of a known method, in one short sentence, or None."""
    if not isinstance(params, dict):
        return "params must be an object"
    for name, kind in REQUIRED_PARAMS[method].items():
        value = params.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            return f"{name} is missing or of the wrong type"
    cwd = params.get("cwd")
    if isinstance(cwd, str) and not is_absolute(cwd):
        return "cwd must be absolute"
    if method == "initialize" and not 0 <= params["protocolVersion"] <= 65535:
        return "protocolVersion is out of range"
    if method == "session/prompt":
        return _prompt_problem(params["prompt"])
    return None


def _prompt_problem(blocks: list[Any]) -> str | None:
    for block in blocks:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return "prompt holds something that is no content block"
    return None


def is_absolute(path: str) -> bool:
    """Whether a path is absolute, on this system or another."""
    # A Windows path counts too: the two sides may run on different systems.
    return path.startswith(("/", "\\")) or path[1:3] in (":\\", ":/")


def prompt_text(blocks: list[Any]) -> str:
    """The text of a prompt: text blocks as they are, links as their URI, joined by newlines."""
    parts = [block.get("text", block.get("uri")) for block in blocks if isinstance(block, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))
