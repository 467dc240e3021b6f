"""Strict mode: judges what a client sends against the protocol, frame by frame, and writes a report.

The judge sees every frame of both sides in the order in which they count for the client: the agent's before
it is written, the client's when it is read. It changes nothing in the conversation. A violation is a rule's
name, the number of the client's frame and a sentence about it; no value that the client sent is copied into
it.
"""

from __future__ import annotations

import json
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
        if self._report_path:
            with open(self._report_path, "w", encoding="utf-8") as file:
                json.dump(self.report(complete), file, indent=2)
                file.write("\n")

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
        if "id" in frame and (isinstance(frame["id"], bool) or not isinstance(frame["id"], (int, str))):
            self._note("frame", "the id is neither an integer nor a text")
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
            return
        if ("id" in frame) == (method in ("session/cancel", "$/cancel_request")):
            self._note("frame", f"{method} has an id, or needs one")
        if not isinstance(params, dict):
            self._note("params", f"{method}: params must be an object")
            return
        if method in protocol.REQUIRED_PARAMS:
            problem = protocol.params_problem(method, params)
            if problem:
                self._note("params", f"{method}: {problem}")
                return
        for place in shapes.unknown_keys(params, shapes.PARAMS[method]):
            self._note("unknown-key", f"{method}: {place.removeprefix('.')}")
        self._order(method, params)

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
            if session is None:
                self._note("unknown-session", f"{method} for a session that is not open")
            else:
                self._in_session(method, params, session)

    def _setup(self, method: str, params: dict[str, Any]) -> None:
        """Rules for what a session is opened with."""
        transports = self._offer.get("mcpCapabilities") or {}
        for server in params.get("mcpServers") or []:
            kind = server.get("type", "stdio") if isinstance(server, dict) else "stdio"
            needed = shapes.REQUIRED_OF_SERVER.get(kind, ())
            if not isinstance(server, dict) or any(key not in server for key in needed):
                self._note("params", f"{method}: an MCP server lacks what its kind must have")
            if kind != "stdio" and not transports.get(kind):
                self._note("not-advertised", f"{method}: an MCP transport that was not advertised")
        wanted = params.get("additionalDirectories")
        if wanted and not isinstance(self._sessions_offer().get("additionalDirectories"), dict):
            self._note("not-advertised", f"{method}: additionalDirectories was not advertised")

    def _in_session(self, method: str, params: dict[str, Any], session: dict[str, Any]) -> None:
        if method == "session/prompt":
            self._prompt(params, session)
        elif method == "session/cancel" and session["turns"]:
            for request in self._ours.values():
                if (request.get("params") or {}).get("sessionId") == params["sessionId"]:
                    request["cancelled"] = True
        elif method == "session/set_mode" and params["modeId"] not in session["modes"]:
            self._note("mode-or-option", "a mode that was not offered")
        elif method == "session/set_config_option" and params["configId"] not in session["options"]:
            self._note("mode-or-option", "an option that was not offered")

    def _prompt(self, params: dict[str, Any], session: dict[str, Any]) -> None:
        if session["turns"]:
            self._note("parallel-prompt", "a prompt while the session's turn is running")
        session["turns"] += 1
        if not params["prompt"]:
            self._note("empty-prompt", "a prompt without content")
        offered = self._offer.get("promptCapabilities") or {}
        gates = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
        for block in params["prompt"]:
            gate = gates.get(block["type"])
            if gate and not offered.get(gate):
                self._note("not-advertised", f"a prompt with {gate}, which was not advertised")

    def _answer(self, frame: dict[str, Any]) -> None:
        request = self._ours.pop(_key(frame.get("id")), None)
        if request is None:
            self._note("foreign-answer", "an answer to no open request")
            return
        method, result = request["method"], frame.get("result")
        if "error" in frame:
            error = frame["error"]
            if not isinstance(error, dict) or not isinstance(error.get("code"), int):
                self._note("result", f"{method}: an error without a code")
            return
        if method not in shapes.RESULTS:
            return
        required = shapes.REQUIRED_RESULTS.get(method, {})
        if not isinstance(result, dict) or any(not isinstance(result.get(k), t) for k, t in required.items()):
            self._note("result", f"{method}: the result lacks what it must have")
            return
        for place in shapes.unknown_keys(result, shapes.RESULTS[method]):
            self._note("unknown-key", f"result of {method}: {place.removeprefix('.')}")
        if method == "session/request_permission":
            self._decision(request, result["outcome"])

    def _decision(self, request: dict[str, Any], outcome: dict[str, Any]) -> None:
        if outcome.get("outcome") != "selected":
            return
        offered = [option.get("optionId") for option in request["params"]["options"]]
        if outcome.get("optionId") not in offered:
            self._note("option-not-offered", "a permission option that was not offered")
        if request["cancelled"]:
            self._note("permission-after-cancel", "an option was chosen after session/cancel")

    # What the agent's answers change

    def _answered(self, request: dict[str, Any] | None, result: Any) -> None:
        if request is None:
            return
        method, params = request["method"], request["params"]
        if method == "session/prompt" and isinstance(params, dict):
            session = self._sessions.get(str(params.get("sessionId")))
            if session:
                session["turns"] = max(0, session["turns"] - 1)
        if not isinstance(result, dict):
            return
        if method == "initialize":
            self._initialized = "yes"
            self._offer = result.get("agentCapabilities") or {}
            self._auth_methods = {
                str(offered.get("id"))
                for offered in result.get("authMethods") or []
                if offered.get("type", "agent") == "agent"
            }
        elif method in ("session/new", "session/load", "session/resume"):
            self._opened(str(result.get("sessionId", params.get("sessionId"))), result)
        elif method in ("session/close", "session/delete"):
            self._sessions.pop(params["sessionId"], None)

    def _opened(self, session_id: str, result: dict[str, Any]) -> None:
        modes = (result.get("modes") or {}).get("availableModes") or []
        self._sessions[session_id] = {
            "turns": 0,
            "modes": [mode.get("id") for mode in modes],
            "options": [option.get("id") for option in result.get("configOptions") or []],
        }

    def _sessions_offer(self) -> dict[str, Any]:
        return self._offer.get("sessionCapabilities") or {}


def _key(request_id: Any) -> tuple[str, str]:
    return (type(request_id).__name__, json.dumps(request_id))
