"""Answers to an agent's requests, without a wire: each exactly once, whatever happens in which order."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from hypothesis import given, strategies as st

from acp_subagent.acp.client import AcpClient
from acp_subagent.acp.permissions import PermissionPolicy
from acp_subagent.acp.updates import SessionUpdates
from acp_subagent.supervised.conversation import Link
from tests.acp.test_updates import Port, begun

OPTIONS = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]


class Wire:
    """Keeps what is answered; tasks that ask a host are kept and never run."""

    def __init__(self) -> None:
        self.answers: list[tuple[Any, Any]] = []
        self.tasks: list[Any] = []

    def respond(self, id: Any, value: Any) -> None:
        self.answers.append((id, value))

    def respond_error(self, id: Any, code: int, message: str) -> None:
        self.answers.append((id, code))


class Turn(Port):
    """A turn that can be ended, and counts its pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.ending = False
        self.pauses = 0
        self.feed.flush = lambda: None

    def pause(self) -> None:
        self.pauses += 1

    def unpause(self) -> None:
        self.pauses -= 1


async def asks(request: object) -> str:
    """A handler of a host; no test here comes to run it."""
    return "allow"


def client(policy: PermissionPolicy, wire: Wire, made: SessionUpdates) -> AcpClient:
    handler = asks if policy is PermissionPolicy.ASK else None
    client = AcpClient(
        made, policy=policy, handler=handler, permission_timeout_seconds=None, max_open_requests=2
    )
    client.attach(Link(connection=cast("Any", wire), spawn=wire.tasks.append, timed=lambda what: None))
    return client


DEEDS = ["ask", "ask", "ask", "other", "cancel", "begin", "end", "refuse"]


@given(st.sampled_from(["allow", "reject", "ask"]), st.lists(st.sampled_from(DEEDS), max_size=20))
def test_every_request_is_answered_exactly_once(policy: str, deeds: list[str]) -> None:
    wire, made, turns = Wire(), SessionUpdates(max_early_updates=1), [Turn()]
    made.open_session("s")
    under_test = client(PermissionPolicy(policy), wire, made)
    asked, refused, in_turn = 0, False, False
    for deed in deeds:
        if deed == "ask":
            call = {"toolCallId": "c"}
            params: dict[str, object] = {"sessionId": "s", "toolCall": call, "options": OPTIONS}
            under_test.on_request(asked, "session/request_permission", params)
            if refused and asked in dict(wire.answers):
                assert dict(wire.answers)[asked] in ({"outcome": {"outcome": "cancelled"}}, -32603)
            asked += 1
        elif deed == "other":
            under_test.on_request(asked, "fs/read_text_file", {})
            asked += 1
        elif deed == "cancel" and in_turn:
            turns[-1].ending = True
            under_test.cancel_open()
        elif deed == "begin" and not in_turn and not refused:
            turns.append(Turn())
            begun(made)
            under_test.begin_turn(cast("Any", turns[-1]))
            in_turn = True
        elif deed == "end":
            under_test.end_turn()
            made.end_turn()
            in_turn = False
        elif deed == "refuse":
            under_test.refuse_all()
            refused = True
    under_test.end_turn()
    assert Counter(request_id for request_id, _ in wire.answers) == Counter(range(asked))
    assert all(turn.pauses == 0 for turn in turns)
