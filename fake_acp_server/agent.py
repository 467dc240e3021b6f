"""The JSON-RPC side of the agent: reads frames in order, checks them, hands each request to whom it concerns.

The main thread runs ``Agent.serve`` and nothing else, so that a cancel, a permission answer or the end of the
input is seen whatever a turn is doing. Shared state is touched under the one condition ``changed``.
"""

from __future__ import annotations

import json
import os
import sys
import threading

from fake_acp_server import answers, protocol, turns
from fake_acp_server.job import Job, StepError
from fake_acp_server.protocol import RpcError
from fake_acp_server.sessions import Session, Sessions
from fake_acp_server.template import UnknownNameError
from fake_acp_server.wire import FrameLog, Inlet, Output, decode_line, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from fake_acp_server.scenario import Scenario
    from fake_acp_server.strict import Judge

#: How many received frames are kept for the ``echo`` step.
KEPT_FRAMES = 1000


#: How long the process stays for a client that does not read the last answers.
LAST_ANSWER_SECONDS = 1.0

#: Exit code when the client broke a rule.
STRICT_FAILURE = 1

#: Exit code when a step cannot be done: its scenario is wrong.
STEP_FAILURE = 70


class Pending:
    """A request of ours; ``frame`` is the client's answer once it is there."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.frame: dict[str, Any] | None = None


class Agent:
    """One agent process that behaves as its scenario says."""

    def __init__(
        self, scenario: Scenario, argv: list[str], log: FrameLog | None, judge: Judge | None = None
    ) -> None:
        self.scenario = scenario
        self.argv = argv
        self.log = log
        self.judge = judge
        self.output = Output(log, judge)
        self.inlet = Inlet()
        self.changed = threading.Condition()
        self.cwd = os.getcwd()
        self.sessions = Sessions(scenario.session_id, scenario.history)
        self.initialized = False
        self.input_ended = False
        self.authenticated = False
        self.capabilities = scenario.capabilities
        self.on_cancel: Any = scenario.on_cancel
        self.on_eof: dict[str, Any] = scenario.on_eof
        self.second_prompt = scenario.second_prompt
        self.ids = scenario.ids
        self.received: list[Any] = []
        self.calls: dict[str, int] = {}
        self.jobs: dict[tuple[str, Any], Job] = {}
        #: Turns whose answer is not yet written out.
        self.unsent_turns: set[Job] = set()
        self._pending: dict[tuple[str, Any], Pending] = {}
        self._requests_sent = 0

    # Reading

    def serve(self) -> None:
        """Read and serve until the input ends, and then leave the process as the scenario says."""
        try:
            self._serve()
        except StepError as problem:
            self.give_up(problem)

    def _serve(self) -> None:
        self.inlet.limit_life(self.scenario.lifetime_seconds)
        turns.run_start(self)
        begun: list[bytes] = []  # pieces of a line whose end has not come yet
        while chunk := self.inlet.read():
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self._line(b"".join([*begun, line]))
                begun.clear()
            begun.append(rest)
        self._line(b"".join(begun))
        turns.end_of_input(self)

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            frame = decode_line(line)
        except ValueError:
            if self.log:
                self.log.raw("client", line)
            if self.judge:
                self.judge.not_json()
            self.refuse(None, RpcError(protocol.PARSE_ERROR, "Parse error"))
            return
        if self.log:
            self.log.frame("client", frame)
        if self.judge:
            self.judge.client(frame)
        with self.changed:
            self.received.append(frame)
            del self.received[:-KEPT_FRAMES]
            self._frame(frame)

    def _frame(self, frame: Any) -> None:
        if not isinstance(frame, dict) or frame.get("jsonrpc") != "2.0":
            self.refuse(None, RpcError(protocol.INVALID_REQUEST, "Invalid request"))
        elif "method" not in frame:
            self._response(frame)
        elif not isinstance(frame["method"], str):
            self.refuse(frame.get("id"), RpcError(protocol.INVALID_REQUEST, "Invalid request"))
        elif "id" not in frame:
            self._notification(frame["method"], frame.get("params"))
        else:
            self._request(frame["id"], frame["method"], frame.get("params"))

    def _response(self, frame: dict[str, Any]) -> None:
        pending = self._pending.get(id_key(frame.get("id")))
        if pending and pending.frame is None:
            pending.frame = frame
            self.changed.notify_all()

    def _notification(self, method: str, params: Any) -> None:
        params = params if isinstance(params, dict) else {}
        if method == "session/cancel":
            session = self.sessions.open.get(str(params.get("sessionId")))
            if session:
                turns.cancel(session)
        elif method == "$/cancel_request":
            job = self.jobs.get(id_key(params.get("requestId")))
            if job:
                job.request_cancelled = True
        self.changed.notify_all()

    def _request(self, request_id: Any, method: str, params: Any) -> None:
        params = {} if params is None else params
        job = Job(self, method, request_id, params, None)
        try:
            job.session = self._checked(method, params)
        except RpcError as error:
            self._cannot_serve(job, error)
            return
        self.jobs[id_key(request_id)] = job
        if method == "session/prompt":
            turns.start(job)
        else:
            answers.start(job)

    def _cannot_serve(self, job: Job, error: RpcError) -> None:
        known = job.method in protocol.REQUIRED_PARAMS
        key = {protocol.METHOD_NOT_FOUND: "unknown_method", protocol.NOT_FOUND: "unknown_session"}.get(
            error.code
        )
        if key and self.scenario.answers(key) and known == (key == "unknown_session"):
            answers.start_fallback(job, key)
        else:
            self.refuse(job.request_id, error)

    def _checked(self, method: str, params: Any) -> Session | None:
        """The session that a request names, if it does; ``RpcError`` when the request cannot be served."""
        if method not in protocol.REQUIRED_PARAMS:
            raise RpcError(protocol.METHOD_NOT_FOUND, "Method not found")
        problem = protocol.params_problem(method, params)
        if problem:
            raise RpcError(protocol.INVALID_PARAMS, "Invalid params", problem)
        if method == "initialize":
            return None
        if not self.initialized:
            raise RpcError(protocol.INVALID_REQUEST, "Invalid request", "not initialized")
        if not protocol.is_advertised(self.capabilities, method):
            raise RpcError(protocol.METHOD_NOT_FOUND, "Method not found", "not advertised")
        if method not in protocol.LIVE_SESSION_METHODS:
            return None
        session = self.sessions.open.get(params["sessionId"])
        if session is None:
            raise RpcError(protocol.NOT_FOUND, "Resource not found", {"uri": params["sessionId"]})
        return session

    # Writing

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.output.frame({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any, request_id: Any = None) -> Any:
        """Send a request and return its id; the answer is had from ``answer_to``."""
        with self.changed:
            if request_id is None:
                request_id = self._next_id()
            self._pending[id_key(request_id)] = Pending(method)
        self.output.frame({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return request_id

    def refuse(self, request_id: Any, error: RpcError) -> None:
        """Answer a request, or a line that is none (id None), with an error."""
        self.output.frame({"jsonrpc": "2.0", "id": request_id, "error": error.as_json()})

    def _next_id(self) -> Any:
        number = self._requests_sent
        self._requests_sent += 1
        if self.ids == "string":
            return f"req-{number}"
        if self.ids == "uuid":
            text = os.urandom(16).hex()
            return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        return number

    def leave(self, code: int) -> NoReturn:
        """End the process. In strict mode the code is 1 when the client broke a rule, unless it tells of
        more.
        """
        self.output.flush(LAST_ANSWER_SECONDS)
        if self.judge and not self.judge.end() and code == 0:
            code = STRICT_FAILURE
        os._exit(code)

    # What jobs and steps ask

    def answer_to(self, request_id: Any) -> Pending:
        """The state of a request of ours."""
        return self._pending[id_key(request_id)]

    def open_requests(self) -> list[Pending]:
        """Our requests that the client has not answered."""
        return [pending for pending in self._pending.values() if pending.frame is None]

    def answers_received(self) -> list[dict[str, Any]]:
        """The client's answers to our requests, in the order of the requests."""
        return [
            {
                "method": pending.method,
                **{key: pending.frame.get(key) for key in ("result", "error") if key in pending.frame},
            }
            for pending in self._pending.values()
            if pending.frame
        ]

    def in_thread(self, call: Callable[[], None]) -> None:
        """Run the call beside the main thread."""

        def call_or_end() -> None:
            try:
                call()
            except StepError as problem:
                self.give_up(problem)
            except Exception:  # noqa: BLE001  # a mistake of the fake itself: seen, and nobody waits for it
                sys.excepthook(*sys.exc_info())
                os._exit(STEP_FAILURE)

        threading.Thread(target=call_or_end, daemon=True).start()

    def give_up(self, problem: StepError) -> NoReturn:
        """End the process because the scenario cannot be gone on with, and say why."""
        write_all(2, f"fake-acp-server: {problem}\n".encode("utf-8", "backslashreplace"))
        os._exit(STEP_FAILURE)

    def job_ended(self, job: Job) -> None:
        """The job has, or will never have, its answer: the session is free for the next prompt."""
        with self.changed:
            self.jobs.pop(id_key(job.request_id), None)
            if job.session and job.session.turn is job:
                job.session.turn = None
            self.changed.notify_all()

    def start_queued(self, session: Session | None) -> None:
        """Start the prompt that waited for the end of the turn, if there is one."""
        with self.changed:
            if session and session.turn is None and session.queue:
                turns.start(session.queue.pop(0))

    def names(self, name: str) -> Any:
        """What ``${name}`` stands for where no job knows better; ``UnknownNameError`` when nothing."""
        if name == "pid":
            return os.getpid()
        if name == "cwd":
            return self.cwd
        if name.startswith("FAKE_ACP_") and name in os.environ:
            return os.environ[name]
        raise UnknownNameError


def id_key(request_id: Any) -> tuple[str, Any]:
    """An id with its type: ``1``, ``"1"`` and ``true`` are three ids."""
    if isinstance(request_id, (dict, list)):
        return ("json", json.dumps(request_id))
    return (type(request_id).__name__, request_id)
