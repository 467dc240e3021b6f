"""What a scenario may say, and how one is read: built-in name, TOML or JSON file, or inline JSON.

A scenario is plain data all the way down: a mapping whose steps are mappings with one key. This file knows
the names and keys, and refuses what it does not know, with the place where it stands; what a step *does* is
in ``steps`` and ``faults``. No dataclasses here: importing them costs half of the time in which the first
answer must be out.
"""

from __future__ import annotations

import json
import os

from fake_acp_server import __version__
from fake_acp_server.protocol import ANSWER_METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ScenarioError(Exception):
    """A scenario cannot be used; the text says where and why."""


#: Step name -> keys that its mapping may have; None: any value (free mappings, or none at all).
STEP_KEYS: dict[str, frozenset[str] | None] = {
    name: None if keys is None else frozenset(keys.split())
    for name, keys in {
        "update": None,
        "text": "text chunks count size forever delay_seconds message_id",
        "thought": "text chunks count size forever delay_seconds message_id",
        "user_text": "text chunks count size forever delay_seconds message_id",
        "plan": None,
        "tool_call": None,
        "tool_call_update": None,
        "permission": "tool_call options on wait session_id id interrupted_by_cancel timeout_seconds",
        "request": "method params id on wait save timeout_seconds",
        "read_file": "path line limit save on",
        "write_file": "path text on",
        "terminal": "command args cwd env output_byte_limit kill save on",
        "elicit": "message schema url elicitation_id save on",
        "notify": "method params",
        "frame": None,
        "raw": "bytes text base64 json newline repeat split delay_seconds",
        "stderr": "text repeat newline",
        "sleep": None,
        "wait_cancel": "timeout_seconds",
        "wait_file": "path timeout_seconds",
        "wait_socket": "path timeout_seconds",
        "wait_requests": "timeout_seconds",
        "touch_file": "path text append",
        "stop": None,
        "error": "code message data",
        "no_answer": None,
        "echo": "what values",
        "exit": "code",
        "signal": None,
        "close_stdout": None,
        "close_stdin": None,
        "stop_reading": None,
        "start_reading": None,
        "exec": None,
        "child": "kind connect ignore_term environment seconds every_seconds wait",
        "end_children": None,
        "ignore_eof": None,
        "ignore_term": None,
        "count_term": "path exit_after",
        "on_eof": "ignore delay_seconds marker steps wait_turns exit_code",
        "set": "ids on_cancel second_prompt",
        "repeat": "times steps",
    }.items()
}

#: Keys of the answer to a method other than ``session/prompt``.
ANSWER_KEYS = frozenset(
    (
        "result",
        "merge",
        "error",
        "no_answer",
        "raw",
        "delay_seconds",
        "before_answer",
        "after_answer",
        "needs_auth",
    )
)

#: Answers to what cannot be served, for agents that do not answer with an error there.
FALLBACK_ANSWERS = ("unknown_session", "unknown_method")

#: Steps that hold further steps: step name -> the key that holds a list of them (``on``: a mapping of lists).
_NESTED = {
    **dict.fromkeys(("permission", "request", "read_file", "write_file", "terminal", "elicit"), "on"),
    **dict.fromkeys(("repeat", "on_eof"), "steps"),
}

ID_STYLES = ("int", "string", "uuid")
CANCEL_WORDS = ("cancelled", "ignore", "silent", "end_turn", "error", "exit", "flood")
SECOND_PROMPT_WORDS = ("error", "queue", "cancel_first", "ignore", "end_turn")
LAUNCHER_WORDS = ("stays", "exits")


class Scenario:
    """One agent's behaviour. The attributes are the keys of a scenario file; each has a default."""

    KEYS = (
        "name", "purpose", "start", "capabilities", "auth_methods", "agent_info", "history", "ids",
        "session_id", "turns", "on_cancel", "on_eof", "second_prompt", "launcher", "life_socket",
        "lifetime_seconds", *ANSWER_METHODS, *FALLBACK_ANSWERS,
    )  # fmt: skip

    def __init__(self, data: Mapping[str, Any]) -> None:
        check(data)
        self.name: str = data.get("name", "unnamed")
        self.purpose: str = data.get("purpose", "")
        self.start: list[Any] = data.get("start", [])
        self.capabilities: dict[str, Any] = data.get("capabilities", DEFAULT_CAPABILITIES)
        self.auth_methods: list[Any] = data.get("auth_methods", [])
        self.agent_info: dict[str, Any] | None = data.get("agent_info", DEFAULT_AGENT_INFO)
        self.history: list[Any] = data.get("history", [])
        self.ids: str = data.get("ids", "int")
        self.session_id: str = data.get("session_id", "session-${number}")
        self.turns: list[list[Any]] = data.get("turns", DEFAULT_TURNS)
        self.on_cancel: Any = data.get("on_cancel", "cancelled")
        self.on_eof: dict[str, Any] = data.get("on_eof", {})
        self.second_prompt: str = data.get("second_prompt", "error")
        self.launcher: str | None = data.get("launcher")
        self.life_socket: str | None = data.get("life_socket")
        self.lifetime_seconds: float = data.get("lifetime_seconds", 600.0)
        self._answers = {key: data[key] for key in (*ANSWER_METHODS, *FALLBACK_ANSWERS) if key in data}

    def answers(self, key: str) -> bool:
        """Whether the scenario says anything about the answer."""
        return key in self._answers

    def answer(self, key: str, call: int) -> dict[str, Any]:
        """What the scenario says about the ``call``-th (from 0) call of a method; the last one repeats."""
        answers = self._answers.get(key, {})
        if isinstance(answers, list):
            answers = answers[min(call, len(answers) - 1)]
        return answers  # type: ignore[no-any-return]  # the models have checked it

    def turn(self, index: int) -> list[Any]:
        """The steps of a session's ``index``-th (from 0) turn; the last turn repeats."""
        return self.turns[min(index, len(self.turns) - 1)]


DEFAULT_CAPABILITIES: dict[str, Any] = {
    "loadSession": False,
    "promptCapabilities": {},
    "sessionCapabilities": {"close": {}},
}
DEFAULT_AGENT_INFO = {"name": "fake_acp_server", "version": __version__}
DEFAULT_TURNS: list[list[Any]] = [[{"echo": "prompt"}]]


def load(name_or_path: str) -> Scenario:
    """The built-in scenario of that name, else the scenario in that file."""
    from fake_acp_server import builtin

    data = builtin.find(name_or_path)
    return Scenario(read_checked(name_or_path) if data is None else data)


def read_checked(path: str) -> Any:
    """The data of a scenario file, fully checked; ``ScenarioError`` has a line for each mistake."""
    from fake_acp_server import models  # pydantic: for files only, it takes longer than all the rest

    data = read_file(path)
    problems = models.problems(data)
    if problems:
        raise ScenarioError("\n  ".join([f"{path} is no scenario:", *problems]))
    return data


def from_json(text: str) -> Scenario:
    """The scenario in a JSON text."""
    try:
        data = json.loads(text)
    except ValueError as problem:
        raise ScenarioError(f"the scenario is no JSON: {problem}") from None
    return Scenario(data)


def read_file(path: str) -> Any:
    """The data of a TOML (``.toml``) or JSON file."""
    try:
        with open(path, "rb") as file:
            if path.endswith(".toml"):
                import tomllib

                return tomllib.load(file)
            return json.load(file)
    except FileNotFoundError:
        raise ScenarioError(f"no built-in scenario and no file is called {path} (see --list)") from None
    except (OSError, ValueError) as problem:
        raise ScenarioError(f"{path} cannot be read: {problem}") from None


def find(scenario: str | None, inline: str | None, environment: Mapping[str, str] = os.environ) -> Scenario:
    """The scenario of the command line, else of the environment, else ``demo``."""
    if inline is not None:
        return from_json(inline)
    if scenario is not None:
        return load(scenario)
    if environment.get("FAKE_ACP_SCENARIO_JSON"):
        return from_json(environment["FAKE_ACP_SCENARIO_JSON"])
    return load(environment.get("FAKE_ACP_SCENARIO") or "demo")


def check(data: Any) -> None:
    """Refuse a scenario with unknown keys, steps or words; ``ScenarioError`` says where."""
    if not isinstance(data, dict):
        raise ScenarioError("a scenario is a mapping")
    _known(data, frozenset(Scenario.KEYS), "the scenario")
    _steps(data.get("start", []), "start")
    turns = data.get("turns", DEFAULT_TURNS)
    if not isinstance(turns, list) or not turns:
        raise ScenarioError("turns must be a list of lists of steps, and not be empty")
    for index, turn in enumerate(turns):
        _steps(turn, f"turns[{index}]")
    for key in (*ANSWER_METHODS, *FALLBACK_ANSWERS):
        for answer in _listed(data.get(key, {})):
            _answer(answer, key)
    _word(data.get("ids", "int"), ID_STYLES, "ids")
    _word(data.get("second_prompt", "error"), SECOND_PROMPT_WORDS, "second_prompt")
    _word(data.get("launcher"), (None, *LAUNCHER_WORDS), "launcher")
    cancel_policy(data.get("on_cancel", "cancelled"))
    lifetime_seconds = data.get("lifetime_seconds", 0)
    if isinstance(lifetime_seconds, bool) or not isinstance(lifetime_seconds, (int, float)):
        raise ScenarioError("lifetime_seconds must be a number")
    _step({"on_eof": data.get("on_eof", {})}, "the scenario")


def cancel_policy(policy: Any) -> None:
    """Refuse an ``on_cancel`` that is neither one of the words nor ``{"steps": [...]}``."""
    if isinstance(policy, dict):
        _known(policy, frozenset({"steps"}), "on_cancel")
        _steps(policy.get("steps", []), "on_cancel.steps")
    else:
        _word(policy, CANCEL_WORDS, "on_cancel")


def _answer(answer: Any, place: str) -> None:
    if not isinstance(answer, dict):
        raise ScenarioError(f"{place} must be a mapping or a list of mappings")
    _known(answer, ANSWER_KEYS, place)
    for key in ("before_answer", "after_answer"):
        _steps(answer.get(key, []), f"{place}.{key}")
    if "raw" in answer:
        _step({"raw": answer["raw"]}, place)


def _steps(steps: Any, place: str) -> None:
    if not isinstance(steps, list):
        raise ScenarioError(f"{place} must be a list of steps")
    for index, step in enumerate(steps):
        _step(step, f"{place}[{index}]")


def _step(step: Any, place: str) -> None:
    if not isinstance(step, dict) or len(step) != 1:
        raise ScenarioError(f"{place}: a step is a mapping with exactly one key, its name")
    ((name, value),) = step.items()
    if name not in STEP_KEYS:
        raise ScenarioError(f"{place}: there is no step called {name!r}")
    keys = STEP_KEYS[name]
    if keys is not None and isinstance(value, dict):
        _known(value, keys, f"{place}.{name}")
    if name == "on_eof" and not (isinstance(value, dict) and isinstance(value.get("exit_code", 0), int)):
        raise ScenarioError(f"{place}: on_eof must be a mapping, its exit_code an integer")
    if name == "set" and isinstance(value, dict):
        _word(value.get("ids", "int"), ID_STYLES, f"{place}.set.ids")
        _word(value.get("second_prompt", "error"), SECOND_PROMPT_WORDS, f"{place}.set.second_prompt")
        cancel_policy(value.get("on_cancel", "cancelled"))
    if name in _NESTED and isinstance(value, dict):
        nested = value.get(_NESTED[name], {})
        branches = nested if isinstance(nested, dict) else {"steps": nested}
        for branch, steps in branches.items():
            _steps(steps, f"{place}.{name}.{branch}")


def _known(data: Mapping[str, Any], keys: frozenset[str], place: str) -> None:
    for key in data:
        if key not in keys:
            raise ScenarioError(f"{place}: unknown key {key!r} (known: {', '.join(sorted(keys))})")


def _word(value: Any, words: tuple[Any, ...], place: str) -> None:
    if value not in words:
        known = ", ".join(str(word) for word in words if word)
        raise ScenarioError(f"{place}: {value!r} is none of {known}")


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list) and value:
        return value
    return [value]
