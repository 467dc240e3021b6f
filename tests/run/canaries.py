"""Secrets in every channel that reaches us, and a look into every place where none of them may be.

A secret is told by its token, which is drawn anew for each run of the tests: no line of source that a
traceback quotes can hold it.
"""

from __future__ import annotations

import logging
import re
import traceback
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tests.run.rows import Row

TOKEN = "K5c1ff0d3a9e24b67"


def secret(channel: str) -> str:
    """The secret of one channel."""
    return f"{TOKEN}-{channel}"


def leaks(text: object) -> set[str]:
    """The channels whose secret stands in a text."""
    return set(re.findall(rf"{TOKEN}-([a-z-]*[a-z])", str(text)))


META = {"_meta": {secret("meta"): [secret("meta"), {"deep": secret("meta")}]}}

FAULT = {
    "message": secret("rpc-message"),
    "data": {
        secret("rpc-data-key"): secret("rpc-data"),
        "nested": [[{"deep": secret("rpc-data-nested")}]],
        "huge": secret("rpc-data-huge") * 5000,
    },
}

TOOL = {
    "toolCallId": secret("tool-id"),
    "title": secret("tool-title"),
    "kind": secret("tool-kind"),
    "locations": [{"path": secret("location")}],
    "rawInput": {"command": secret("raw-input")},
    "rawOutput": secret("raw-output"),
    "content": [{"type": "content", "content": {"type": "text", "text": secret("tool-content")}}],
    **META,
}

OPTION = {"optionId": secret("option-id"), "name": secret("option-name"), **META}

#: an agent that says a secret wherever it can say anything
TALK: list[dict[str, Any]] = [
    {"stderr": secret("stderr")},
    {"raw": secret("noise") + "\n"},
    {"raw": {"json": {secret("noise-json"): secret("noise-json")}}},
    {"text": {"text": secret("answer"), "message_id": secret("message-id")}},
    {"thought": {"text": secret("thought")}},
    {"user_text": secret("user-text")},
    {"plan": [{"content": secret("plan"), "priority": "high", "status": "pending"}]},
    {"plan": [{"content": secret("plan"), "priority": secret("plan-priority"), "status": "pending"}]},
    {"tool_call": TOOL},
    {"tool_call_update": {**TOOL, "status": secret("tool-status")}},
    *(
        {"update": {**update, **META}}
        for update in (
            {"sessionUpdate": "current_mode_update", "currentModeId": secret("mode")},
            {"sessionUpdate": "config_option_update", "configOptions": [{"name": secret("config-name")}]},
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [{"name": secret("command")}],
            },
            {"sessionUpdate": "session_info_update", "title": secret("session-title")},
            {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 1, "currency": "x"}},
            {"sessionUpdate": "usage_update", "cost": {"amount": 1, "currency": secret("currency")}},
            {"sessionUpdate": secret("update-kind"), secret("update-key"): secret("update-value")},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": secret("block-type")}},
            {"sessionUpdate": "agent_message_chunk", "content": secret("block")},
        )
    ),
    {"notify": {"method": secret("notification"), "params": {"x": secret("notification")}}},
    {"request": {"method": secret("method"), "params": {"x": secret("method")}}},
    {"request": {"method": "fs/read_text_file", "params": {"sessionId": "s", "path": secret("file")}}},
    {
        "permission": {
            "id": secret("request-id"),
            "tool_call": TOOL,
            "options": [{**OPTION, "kind": "reject_once"}, {**OPTION, "kind": secret("option-kind")}],
        }
    },
]


def poisoned(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with a secret in everything that its agent says."""
    told: dict[str, Any] = _with_secrets(scenario)
    initialize, session_new = told.get("initialize", {}), told.get("session_new", {})
    modes = {"currentModeId": secret("mode"), "availableModes": [{"id": secret("mode"), "name": "m"}]}
    return {
        "session_id": secret("session-id"),
        "agent_info": {"name": secret("agent-info"), "version": secret("agent-info"), **META},
        "auth_methods": [{"id": "a", "name": secret("auth-method"), **META}],
        **told,
        "start": [{"stderr": secret("stderr")}, {"raw": secret("noise") + "\n"}, *told.get("start", [])],
        "initialize": {**initialize, "merge": {**META, **initialize.get("merge", {})}},
        "session_new": {
            **session_new,
            "merge": {**META, "modes": modes, "configOptions": [{"name": secret("config-name")}]},
        },
        "turns": [[*TALK, *turn] for turn in told.get("turns", [[]])],
    }


def _with_secrets(part: Any) -> Any:
    """Error messages, error data and unknown words of a scenario, each replaced by a secret."""
    if isinstance(part, list):
        return [_with_secrets(item) for item in part]
    if not isinstance(part, Mapping):
        return secret("stop-reason") if part == "CANARY" else part
    changed = {key: _with_secrets(value) for key, value in part.items()}
    if isinstance(changed.get("error"), dict):
        changed["error"] = {"code": changed["error"]["code"], **FAULT}
    return changed


def one_of_each(rows: Iterable[Row]) -> list[Row]:
    """The rows without those that differ from another one only in a code or a signal."""
    chosen: dict[str, Row] = {}
    for row in rows:
        alike = re.sub(r"(code|signal): \S+\b", r"\1", row.expected or row.stop_reason)
        # What the agent then says is told apart by the keys of its last step.
        last = row.scenario.get("turns", [[{}]])[-1][-1]
        chosen.setdefault(f"{alike} {sorted(last)}", row)
    return list(chosen.values())


def texts_of_exception(error: BaseException) -> Iterator[str]:
    """Every text that an exception can be shown as."""
    yield str(error)
    yield repr(error)
    yield repr(error.args)
    yield repr(getattr(error, "__notes__", ()))
    yield "".join(traceback.format_exception(error))
    yield repr(error.__cause__)
    yield repr(error.__context__)


def texts_of_record(record: logging.LogRecord) -> Iterator[str]:
    """Every text that a handler can make of a log record."""
    yield logging.Formatter().format(record)
    yield repr(record.args)
    yield repr(vars(record))


def ours(thing: object) -> bool:
    """Whether an object is of one of our classes."""
    return type(thing).__module__.startswith("acp_subagent")


def reachable(*roots: object) -> list[object]:
    """Every object of ours that can be reached from these through containers, attributes and closures."""
    seen: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and not isinstance(thing, (str, bytes, int, float, type, types.ModuleType)):
            seen[id(thing)] = thing
            waiting.extend(_parts(thing))
    return [thing for thing in seen.values() if ours(thing)]


def _parts(thing: object) -> Iterator[object]:
    if isinstance(thing, Mapping):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset, deque)):
        yield from thing
    elif isinstance(thing, types.FunctionType):
        for cell in thing.__closure__ or ():
            yield cell.cell_contents
    elif isinstance(thing, types.MethodType):
        yield thing.__self__
    elif isinstance(thing, BaseException):
        yield from (thing.__cause__, thing.__context__, thing.args)
    if ours(thing) or isinstance(thing, BaseModel):
        yield from getattr(thing, "__dict__", {}).values()
        for kind in type(thing).__mro__:
            for name in kind.__dict__.get("__slots__", ()):
                yield getattr(thing, name, None)


def texts_of_objects(*roots: object) -> Iterator[str]:
    """Everything that our objects are shown as; an exception among them in every way."""
    for thing in reachable(*roots):
        yield repr(thing)
        yield str(thing)
        yield f"{thing}"
        if isinstance(thing, BaseException):
            yield from texts_of_exception(thing)
