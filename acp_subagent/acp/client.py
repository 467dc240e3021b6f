"""The client's side of the protocol: answers to what the agent asks.

Owns that each request is answered exactly once. A permission whose decision is a pure function is answered
in the reader at once; one that asks the host runs in a task of its own, bounded in time and number. No
file, terminal or elicitation capability is advertised, so such requests are refused as the protocol says.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from acp_subagent.acp.permissions import (
    CANCELLED,
    Choice,
    PermissionAnswer,
    PermissionOption,
    PermissionPolicy,
    answer,
    decide,
    outcome,
    selectable,
)
from acp_subagent.acp.tool_calls import ToolCalls
from acp_subagent.acp.updates import SessionUpdates
from acp_subagent.seam.activity import PermissionRecord, ToolCall
from acp_subagent.seam.events import PermissionDecided, PermissionRequested
from acp_subagent.supervised.conversation import Link, TurnPort
from acp_subagent.wire.jsonrpc import RequestId

_log = logging.getLogger("acp_subagent.acp")

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a permission handler is asked: the tool call, and the options that the agent offers."""

    call: ToolCall
    options: tuple[PermissionOption, ...]


#: Decides on one request: `allow` or `deny`, one of the offered options, or the id of one. Anything else, an
#: exception, and an answer that comes too late mean deny.
PermissionHandler = Callable[[PermissionRequest], Awaitable[object]]


@dataclass(slots=True, kw_only=True)
class _OpenPermission:
    """A request that waits for the host's handler."""

    id: RequestId = field(repr=False)
    call: ToolCall
    options: object = field(repr=False)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
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
        self._handler = handler
        self._timeout_seconds = permission_timeout_seconds
        self._max_open_requests = max_open_requests
        self._open: list[_OpenPermission] = []
        self._link: Link | None = None
        self._port: TurnPort | None = None

    def attach(self, link: Link) -> None:
        """The connection is there; called before anything can come."""
        self._link = link

    def begin_turn(self, port: TurnPort) -> None:
        """A turn begins."""
        self._port = port

    def end_turn(self) -> None:
        """The turn has settled; whatever still waits for the host is answered `cancelled`."""
        self.cancel_open()
        self._port = None

    def cancel_open(self) -> None:
        """Answer every request that waits for the host `cancelled`."""
        for request in list(self._open):
            self._answer(request, CANCELLED)
            request.scope.cancel()

    def on_request(self, id: RequestId, method: str, params: dict[str, object]) -> None:  # noqa: A002
        """One request of the agent."""
        assert self._link is not None
        connection = self._link.connection
        if method == "session/request_permission":
            self._on_permission(id, params)
        elif method == "elicitation/create":
            # The one gated method that must be refused with this code when its mode was not advertised.
            connection.respond_error(id, INVALID_PARAMS, "no elicitation mode is supported")
        else:
            connection.respond_error(id, METHOD_NOT_FOUND, "method not found")

    def _on_permission(self, id: RequestId, params: dict[str, object]) -> None:  # noqa: A002
        assert self._link is not None
        record, raw = self._updates.record, params.get("toolCall")
        call = ToolCalls().update(raw) if record is None else record.note_tool_call(raw)
        request = _OpenPermission(id=id, call=call, options=params.get("options"))
        if self._port is not None and self._port.feed.wanted:
            self._port.feed.put(PermissionRequested(call.kind, call.id))
        if self._port is not None and self._port.ending:
            self._answer(request, CANCELLED)
        elif self._handler is None or self._port is None:
            self._answer(request, decide(self._policy, request.options))
        elif len(self._open) >= self._max_open_requests:
            self._link.connection.respond_error(id, INTERNAL_ERROR, "too many open requests")
        else:
            self._open.append(request)
            port, handler = self._port, self._handler
            self._link.spawn(lambda: self._ask(request, port, handler))

    async def _ask(self, request: _OpenPermission, port: TurnPort, handler: PermissionHandler) -> None:
        wish: object = PermissionAnswer.DENY
        port.pause()
        try:
            if self._timeout_seconds is not None:
                request.scope.deadline = trio.current_time() + self._timeout_seconds
            with request.scope:
                wish = await handler(PermissionRequest(request.call, selectable(request.options)))
        except Exception as exc:  # noqa: BLE001  the host's handler; a failure of it means deny
            _log.warning("a permission handler raised %s", type(exc).__name__)
        finally:
            port.unpause()
        self._answer(request, answer(wish, request.options))

    def _answer(self, request: _OpenPermission, choice: Choice) -> None:
        """Answer one permission request, unless it was answered before."""
        if request.answered:
            return
        request.answered = True
        if request in self._open:
            self._open.remove(request)
        assert self._link is not None
        self._link.connection.respond(request.id, outcome(choice))
        permission = PermissionRecord(
            kind=request.call.kind,
            policy=str(self._policy),
            decision=choice.decision,
            tool_call_id=request.call.id,
            option_id=choice.option_id,
        )
        if self._updates.record is not None:
            self._updates.record.note_permission(permission)
        if self._port is not None and self._port.feed.wanted:
            self._port.feed.put(PermissionDecided(permission))
