"""Asking the child and waiting for the outcome.

Owns how an answer becomes an `Outcome`: read in the reader, the moment it comes, so that what follows right
behind it is never misplaced. What is asked is the conversation's, how long it may take is supervision's.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from acp_subagent.seam.result import RpcFault
from acp_subagent.supervised.conversation import Outcome
from acp_subagent.supervised.ending import End
from acp_subagent.wire.connection import Connection
from acp_subagent.wire.jsonrpc import Answer, NoAnswer, Result, RpcError


async def ask(
    connection: Connection,
    method: str,
    params: dict[str, object],
    on_result: Callable[[object], Outcome],
    *,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    """Send a request and wait for its outcome. The result is read in the reader, in order.

    `meanwhile` is called once the request is sent, and before anything more can be read.
    """
    outcomes: list[Outcome] = []
    answered = trio.Event()

    def on_answer(answer: Answer) -> None:
        try:
            outcomes.append(on_result(answer.value) if isinstance(answer, Result) else fault(answer))
        except Exception as exc:  # noqa: BLE001  a fault of ours; whoever waits must be told all the same
            outcomes.append(Outcome(end=End.UNEXPECTED, cause=exc))
        answered.set()

    request_id = connection.send_request(method, params, on_answer)
    try:
        if meanwhile is not None:
            meanwhile()
        await answered.wait()
    finally:
        connection.abandon(request_id)
    return outcomes[0]


def fault(answer: Answer) -> Outcome:
    """The outcome of an answer that is no result."""
    if isinstance(answer, RpcError):
        return Outcome(end=End.RPC_ERROR, rpc_error=RpcFault(answer.code, answer.message, answer.data))
    return Outcome(end=End.UNANSWERED if isinstance(answer, NoAnswer) else End.MALFORMED)
