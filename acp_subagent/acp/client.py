"""The client's side of the protocol: answers to what the agent asks.

Owns that each request is answered exactly once. A permission whose decision is a pure function is answered
in the reader at once; one that asks the host runs in a task of its own, bounded in time and number, and is
answered at its deadline whatever the host's handler still does. No file, terminal or elicitation capability
is advertised, so such requests are refused as the protocol says.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import trio

from acp_subagent.acp.permissions import (
    CANCELLED,
    Choice,
    PermissionAnswer,
    PermissionHandler,
    PermissionPolicy,
    PermissionRequest,
    answer,
    decide,
    outcome,
    selectable,
)
from acp_subagent.acp.updates import SessionUpdates
from acp_subagent.seam.activity import PermissionRecord, ToolCall
from acp_subagent.seam.events import PermissionDecided, PermissionRequested
from acp_subagent.supervised.conversation import Link, TurnPort
from acp_subagent.supervised.tool_calls import TrackedCall
from acp_subagent.wire.connection import Connection
from acp_subagent.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RequestId

_log = logging.getLogger("acp_subagent.acp")

INTERNAL_ERROR = -32603
NOT_FOUND = -32002


@dataclass(slots=True, kw_only=True, eq=False)
class _OpenPermission:
    """A request that waits for the host."""

    id: RequestId = field(repr=False)
    call: ToolCall
    options: object = field(repr=False)
    port: TurnPort = field(repr=False)  #: the turn that it belongs to
    handling: trio.CancelScope = field(default_factory=trio.CancelScope)  #: holds the host's handler
    waiting: trio.CancelScope = field(default_factory=trio.CancelScope)  #: holds the wait for its deadline
    answered: bool = False


class AcpClient:
    """Answers the agent's requests for one connection."""

    def __init__(
        self,
        updates: SessionUpdates,
        *,
        policy: PermissionPolicy,
        handler: PermissionHandler | None,
        permission_timeout_seconds: float | None,
        max_open_requests: int,
    ) -> None:
        self._updates = updates
        self._policy = policy
        self._policy_word = str(policy)
        self._handler = handler
        self._timeout_seconds = permission_timeout_seconds
        self._max_open_requests = max_open_requests
        self._open: list[_OpenPermission] = []
        self._link: Link | None = None
        self._connection: Connection  # from `attach` on, which comes before anything that can be asked
        self._port: TurnPort | None = None
        self._refusing = False  # nothing is allowed any more: a turn was cancelled, or the child is to go
        self._answered = False  # the turn is over but for what comes right behind its answer

    def attach(self, link: Link) -> None:
        """The connection is there; called before anything can come."""
        self._link = link
        self._connection = link.connection

    def begin_turn(self, port: TurnPort) -> None:
        """A turn begins."""
        self._port = port
        self._refusing = self._answered = False

    def turn_answered(self) -> None:
        """The prompt is answered: nobody is asked now; what waits for the host is answered `cancelled`."""
        self._answered = True
        self.cancel_open()

    def end_turn(self) -> None:
        """The turn has settled; whatever still waits for the host is answered `cancelled`.

        After a turn that we ended, so is whatever comes before the next one begins.
        """
        self.cancel_open()
        self._refusing = self._refusing or (self._port is not None and self._port.ending)
        self._port = None

    def refuse_all(self) -> None:
        """The child is to go: answer `cancelled` from now on."""
        self._refusing = True
        self.cancel_open()

    def cancel_open(self) -> None:
        """Answer every request that waits for the host `cancelled`."""
        for request in list(self._open):
            self._answer(request, CANCELLED)

    def on_request(self, id: RequestId, method: str, params: dict[str, object]) -> None:
        """One request of the agent."""
        if method == "session/request_permission":
            if self._updates.is_other_session(params.get("sessionId")):
                self._connection.respond_error(id, NOT_FOUND, "unknown session")
            else:
                self._on_permission(id, params)
        elif method == "elicitation/create":
            # The one gated method that must be refused with this code when its mode was not advertised.
            self._connection.respond_error(id, INVALID_PARAMS, "no elicitation mode is supported")
        else:
            self._connection.respond_error(id, METHOD_NOT_FOUND, "method not found")

    def _on_permission(self, id: RequestId, params: dict[str, object]) -> None:
        port, handler = self._port, self._handler
        call = self._updates.on_permission_call(params.get("toolCall"))
        options = params.get("options")
        if port is not None and port.feed.wanted:
            port.feed.put(PermissionRequested(call.kind, call.id))
        if self._refusing or (port is not None and port.ending):
            self._respond(id, call, CANCELLED, port)
        elif handler is None or port is None or self._answered:
            self._respond(id, call, decide(self._policy, options), port)
        elif len(self._open) >= self._max_open_requests:
            self._connection.respond_error(id, INTERNAL_ERROR, "too many open requests")
        else:
            self._ask(_OpenPermission(id=id, call=call.call, options=options, port=port), handler)

    def _ask(self, request: _OpenPermission, handler: PermissionHandler) -> None:
        """Let the host decide, in a task of its own; the turn's silence is not the agent's meanwhile."""
        assert self._link is not None
        self._open.append(request)
        request.port.pause()
        self._link.spawn(lambda: self._handle(request, handler))
        if self._timeout_seconds is not None:
            request.waiting.deadline = trio.current_time() + self._timeout_seconds
            self._link.spawn(lambda: self._deny_when_late(request))

    async def _handle(self, request: _OpenPermission, handler: PermissionHandler) -> None:
        wish: object = PermissionAnswer.DENY
        try:
            with request.handling:
                wish = await handler(PermissionRequest(request.call, selectable(request.options)))
        except Exception as exc:  # noqa: BLE001  the host's handler; a failure of it means deny
            _log.warning("a permission handler raised %s", type(exc).__name__)
        self._answer(request, answer(wish, request.options))

    async def _deny_when_late(self, request: _OpenPermission) -> None:
        """At its deadline the request is denied, also when the handler cannot be interrupted."""
        with request.waiting:
            await trio.sleep_forever()
        self._answer(request, answer(PermissionAnswer.DENY, request.options))

    def _answer(self, request: _OpenPermission, choice: Choice) -> None:
        """Answer one request that waits for the host, unless it was answered before."""
        if request.answered:
            return
        request.answered = True
        self._open.remove(request)
        request.handling.cancel()
        request.waiting.cancel()
        self._respond(request.id, request.call, choice, request.port)
        request.port.unpause()
        request.port.feed.flush()  # the reader may have nothing to read for long

    def _respond(
        self, id: RequestId, call: ToolCall | TrackedCall, choice: Choice, port: TurnPort | None
    ) -> None:
        """Send the answer, and note it in the turn that it belongs to."""
        self._connection.respond(id, outcome(choice))
        permission = (call.kind, self._policy_word, choice.decision, call.id, choice.option_id)
        record = self._updates.record
        if record is not None and self._port is port:
            record.note_permission(permission)
        if port is not None and port.feed.wanted:
            port.feed.put(PermissionDecided(PermissionRecord(*permission)))
