"""Strict mode: judges what a client sends against the protocol, frame by frame, and writes a report.

The judge sees every frame of both sides in the order in which they count for the client: the agent's before
it is written, the client's when it is read. It changes nothing in the conversation. A violation is a rule's
name, the number of the client's frame and a sentence about it; no value that the client sent is copied into
it.
"""

from __future__ import annotations

import json
import os
import threading

from fake_acp_server import protocol, shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Judge:
    """Collects violations. ``report_path``: where the report goes, rewritten with each violation and at the
    end.
    """

    def __init__(self, scenario: str, report_path: str | None) -> None:
        self._scenario = scenario
        self._report_path = report_path
        self._lock = threading.RLock()
        self._count = {"client": 0, "agent": 0}
        self.violations: list[dict[str, Any]] = []
        self._client_info: Any = None
        self._initialized = "no"
        self._offer: dict[str, Any] = {}
        self._auth_methods: set[str] = set()
        self._sessions: dict[str, dict[str, Any]] = {}
        self._asked: dict[tuple[str, Any], dict[str, Any]] = {}
        self._ours: dict[tuple[str, Any], dict[str, Any]] = {}
        self.write(complete=False)

    # What the process calls

    def client(self, frame: Any) -> None:
        """Judge a frame of the client."""
        with self._lock:
            self._count["client"] += 1
            before = len(self.violations)
            self._client_frame(frame)
            if len(self.violations) > before:
                self.write(complete=False)

    def not_json(self) -> None:
        """The client wrote a line that is no JSON."""
        with self._lock:
            self._count["client"] += 1
            self._note("frame", "a line is not JSON")
            self.write(complete=False)

    def agent(self, frame: Any) -> None:
        """Take note of a frame that the agent is about to send."""
        with self._lock:
            self._count["agent"] += 1
            if isinstance(frame, dict) and "method" in frame:
                if "id" in frame:
                    self._ours[_key(frame["id"])] = {**frame, "cancelled": False}
                else:
                    self._said(frame)
            elif isinstance(frame, dict):
                self._answered(self._asked.pop(_key(frame.get("id")), None), frame.get("result"))

    def end(self) -> bool:
        """The conversation is over: look for what is missing, write the report; whether the client kept the
        rules.
        """
        with self._lock:
            for request in self._ours.values():
                self._note("unanswered", f"{request['method']} was not answered")
            self._ours.clear()
            self.write(complete=True)
            return not self.violations

    def write(self, complete: bool) -> None:
        """Write the report as it is now. ``complete`` is false as long as the conversation goes on."""
        if not self._report_path:
            return
        text = json.dumps(self.report(complete), indent=2) + "\n"
        if os.path.exists(self._report_path) and not os.path.isfile(self._report_path):
            _write(self._report_path, text)  # a pipe or a device
            return
        # Whoever reads meanwhile finds the old report or the new one, never half of one.
        fresh = f"{self._report_path}.{os.getpid()}"
        _write(fresh, text)
        os.replace(fresh, self._report_path)

    def report(self, complete: bool) -> dict[str, Any]:
        """The report as data."""
        return {
            "scenario": self._scenario,
            "complete": complete,
            "ok": not self.violations,
            "client": self._client_info,
            "frames": dict(self._count),
            "violations": self.violations,
        }

    # Rules

    def _note(self, rule: str, text: str) -> None:
        self.violations.append({"rule": rule, "frame": self._count["client"], "text": text})

    def _client_frame(self, frame: Any) -> None:
        if not isinstance(frame, dict) or frame.get("jsonrpc") != "2.0":
            self._note("frame", "not a JSON-RPC 2.0 object")
            return
        is_call = "method" in frame
        known = {"jsonrpc", "id", "method", "params"} if is_call else {"jsonrpc", "id", "result", "error"}
        if set(frame) - known or (not is_call and ("result" in frame) == ("error" in frame)):
            self._note("frame", "members that do not belong together")
        if "id" in frame and not any(shapes.is_plain(frame["id"], kind) for kind in ("int64", "text")):
            self._note("frame", "the id is neither an integer of 64 bits nor a text")
        if is_call:
            self._call(frame)
        else:
            self._answer(frame)

    def _call(self, frame: dict[str, Any]) -> None:
        method, params = frame["method"], frame.get("params")
        params = {} if params is None else params
        if "id" in frame:
            if _key(frame["id"]) in self._asked:
                self._note("id-in-use", "the id of a request that is not yet answered")
            self._asked[_key(frame["id"])] = {"method": method, "params": params}
        if not isinstance(method, str) or (method not in shapes.PARAMS and not method.startswith("_")):
            self._note("unknown-method", "a method that ACP does not have")
            return
        if method.startswith("_"):
            if not isinstance(params, (dict, list)):
                self._note("params", "params of a private method must be an object or a list")
            return
        if ("id" in frame) == (method in ("session/cancel", "$/cancel_request")):
            self._note("frame", f"{method} has an id, or needs one")
        fits = self._fits(params, shapes.PARAMS[method], "params", method)
        problem = protocol.params_problem(method, params) if method in protocol.REQUIRED_PARAMS else None
        if problem and fits:
            self._note("params", f"{method}: {problem}")
        if isinstance(params, dict) and not problem:
            self._order(method, params)

    def _fits(self, value: Any, shape: Any, rule: str, what: str) -> bool:
        """Note what does not fit, under ``rule`` or as unknown keys; false when a value is wrong."""
        places: dict[str, list[str]] = {shapes.WRONG: [], shapes.UNKNOWN: []}
        for kind, place in shapes.misfits(value, shape):
            places[kind].append(place.removeprefix(".") or "the whole")
        if places[shapes.WRONG]:
            self._note(rule, f"{what}: {', '.join(places[shapes.WRONG])} is missing or of the wrong type")
        if places[shapes.UNKNOWN]:
            self._note("unknown-key", f"{what}: {', '.join(places[shapes.UNKNOWN])}")
        return not places[shapes.WRONG]

    def _order(self, method: str, params: dict[str, Any]) -> None:
        if method == "initialize":
            if self._initialized != "no":
                self._note("initialize-first", "initialize again")
            self._initialized = "asked"
            self._client_info = params.get("clientInfo")
            return
        if self._initialized != "yes" and method != "$/cancel_request":
            self._note("initialize-first", f"{method} before initialize was answered")
            return
        if not protocol.is_advertised(self._offer, method):
            self._note("not-advertised", f"{method} was not advertised")
        if method == "authenticate" and params["methodId"] not in self._auth_methods:
            self._note("auth-method", "a login method that was not offered for this")
        self._setup(method, params)
        if method in (*protocol.LIVE_SESSION_METHODS, "session/cancel"):
            session = self._sessions.get(str(params.get("sessionId")))
            if session is None or (session["closing"] and method != "session/cancel"):
                self._note("unknown-session", f"{method} for a session that is not open")
            else:
                self._in_session(method, params, session)

    def _setup(self, method: str, params: dict[str, Any]) -> None:
        """Rules for what a session is opened with."""
        transports = _mapping(self._offer.get("mcpCapabilities"))
        for server in _listed(params.get("mcpServers")):
            kind = _mapping(server).get("type", "stdio")
            if kind in ("http", "sse") and transports.get(kind) is not True:
                self._note("not-advertised", f"{method}: an MCP transport that was not advertised")
            command = _mapping(server).get("command")
            if kind == "stdio" and isinstance(command, str) and not protocol.is_absolute(command):
                self._note("params", f"{method}: the command of an MCP server must be absolute")
        roots = _listed(params.get("additionalDirectories"))
        offered = _mapping(self._offer.get("sessionCapabilities")).get("additionalDirectories")
        if roots and not isinstance(offered, dict):
            self._note("not-advertised", f"{method}: additionalDirectories was not advertised")
        if any(isinstance(root, str) and not protocol.is_absolute(root) for root in roots):
            self._note("params", f"{method}: additionalDirectories must be absolute")

    def _in_session(self, method: str, params: dict[str, Any], session: dict[str, Any]) -> None:
        if method == "session/prompt":
            self._prompt(params, session)
        elif method == "session/close":
            session["closing"] = True
        elif method == "session/cancel" and session["turns"]:
            for request in self._ours.values():
                if _mapping(request.get("params")).get("sessionId") == params["sessionId"]:
                    request["cancelled"] = True
        elif method == "session/set_mode" and params["modeId"] not in session["modes"]:
            self._note("mode-or-option", "a mode that was not offered")
        elif method == "session/set_config_option":
            values = session["options"].get(params["configId"])
            if values is None:
                self._note("mode-or-option", "an option that was not offered")
            elif params.get("value") not in values:
                self._note("mode-or-option", "a value that the option does not have")

    def _prompt(self, params: dict[str, Any], session: dict[str, Any]) -> None:
        if session["turns"]:
            self._note("parallel-prompt", "a prompt while the session's turn is running")
        session["turns"] += 1
        if not params["prompt"]:
            self._note("empty-prompt", "a prompt without content")
        offered = _mapping(self._offer.get("promptCapabilities"))
        gates = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
        for block in params["prompt"]:
            gate = gates.get(block["type"])
            if gate and offered.get(gate) is not True:
                self._note("not-advertised", f"a prompt with {gate}, which was not advertised")

    def _answer(self, frame: dict[str, Any]) -> None:
        request = self._ours.pop(_key(frame.get("id")), None)
        if request is None:
            self._note("foreign-answer", "an answer to no open request")
            return
        method = request["method"]
        if "error" in frame:
            self._fits(frame["error"], shapes.ERROR, "result", f"error for {method}")
        elif method in shapes.RESULTS and "result" in frame:
            fits = self._fits(frame["result"], shapes.RESULTS[method], "result", f"result of {method}")
            if fits and method == "session/request_permission":
                self._decision(request, frame["result"]["outcome"])

    def _decision(self, request: dict[str, Any], outcome: dict[str, Any]) -> None:
        if outcome["outcome"] != "selected":
            return
        options = _listed(_mapping(request.get("params")).get("options"))
        if outcome["optionId"] not in [_mapping(option).get("optionId") for option in options]:
            self._note("option-not-offered", "a permission option that was not offered")
        if request["cancelled"]:
            self._note("permission-after-cancel", "an option was chosen after session/cancel")

    # What the agent's frames change. They may be wrong in every way: that is what a scenario is for.

    def _said(self, frame: dict[str, Any]) -> None:
        params = _mapping(frame.get("params"))
        update = _mapping(params.get("update"))
        session = self._sessions.get(str(params.get("sessionId")))
        if session and update.get("sessionUpdate") == "config_option_update":
            session["options"] = _offered_values(update.get("configOptions"))

    def _answered(self, request: dict[str, Any] | None, result: Any) -> None:
        if request is None:
            return
        method, params = request["method"], _mapping(request["params"])
        session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/prompt" and session:
            session["turns"] = max(0, session["turns"] - 1)
        if not isinstance(result, dict):
            if method == "session/close" and session:
                session["closing"] = False
            return
        if method == "initialize":
            self._initialized = "yes"
            self._offer = _mapping(result.get("agentCapabilities"))
            methods = [_mapping(offered) for offered in _listed(result.get("authMethods"))]
            self._auth_methods = {
                str(offered.get("id")) for offered in methods if offered.get("type", "agent") == "agent"
            }
        elif method in ("session/new", "session/load", "session/resume"):
            self._opened(str(result.get("sessionId", params.get("sessionId"))), result)
        elif method == "session/set_config_option" and session:
            session["options"] = _offered_values(result.get("configOptions"))
        elif method in ("session/close", "session/delete"):
            self._sessions.pop(str(params.get("sessionId")), None)

    def _opened(self, session_id: str, result: dict[str, Any]) -> None:
        modes = _listed(_mapping(result.get("modes")).get("availableModes"))
        known = self._sessions.get(session_id, {"turns": 0})
        self._sessions[session_id] = {
            "turns": known["turns"],
            "closing": False,
            "modes": [_mapping(mode).get("id") for mode in modes],
            "options": _offered_values(result.get("configOptions")),
        }


def _offered_values(options: Any) -> dict[str, list[Any]]:
    """Id of each config option -> the values that it may be set to; those of groups too."""
    offered: dict[str, list[Any]] = {}
    for option in map(_mapping, _listed(options)):
        entries = [_mapping(entry) for entry in _listed(option.get("options"))]
        entries += [_mapping(inner) for entry in entries for inner in _listed(entry.get("options"))]
        is_flag = option.get("type") == "boolean"
        offered[str(option.get("id"))] = [True, False] if is_flag else [e.get("value") for e in entries]
    return offered


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _key(request_id: Any) -> tuple[str, str]:
    return (type(request_id).__name__, json.dumps(request_id))
