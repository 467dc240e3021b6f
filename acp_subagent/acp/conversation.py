"""The ACP conversation with one child: our introduction, prompts, cancel, leave.

Owns what is said in a session and when its machine moves. Answers are read in the reader, the moment they
come, so that an update right behind one is never misplaced. How a session is opened is `acp.handshake`'s.
When things happen is supervision's to decide; what they mean is `acp.classify`'s.

An agent takes its time to start: whatever only reads or judges is imported then, see `_get_ready`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

import trio

from acp_subagent.acp.permissions import PermissionHandler, PermissionPolicy
from acp_subagent.acp.session import Event, SessionMachine
from acp_subagent.acp.vocabulary import ADVICE, PROTOCOL_VERSION, PROVIDER_LABEL, Category, Stage
from acp_subagent.seam.content import ContentBlock, block_to_json
from acp_subagent.seam.request import SessionRef
from acp_subagent.seam.result import Counters
from acp_subagent.supervised.asking import ask, fault
from acp_subagent.supervised.conversation import LifeEvent, Link, Outcome, TurnPort
from acp_subagent.supervised.ending import End
from acp_subagent.supervised.reading import word
from acp_subagent.supervised.reporting import with_wire
from acp_subagent.version import VERSION
from acp_subagent.wire.connection import Connection
from acp_subagent.wire.jsonrpc import Answer, Result

if TYPE_CHECKING:
    from acp_subagent.acp.client import AcpClient
    from acp_subagent.acp.handshake import Handshake
    from acp_subagent.acp.turn_record import AcpTurnRecord
    from acp_subagent.acp.updates import SessionUpdates
    from acp_subagent.seam.activity import TeardownReport
    from acp_subagent.supervised.verdicts import Verdict

_LIFE = {
    LifeEvent.PROCESS_SPAWNED: Event.PROCESS_SPAWNED,
    LifeEvent.RUN_FAILED: Event.RUN_FAILED,
    LifeEvent.DISPOSED: Event.DISPOSED,
    LifeEvent.LADDER_ENDED: Event.LADDER_ENDED,
}

#: Failures that another try would meet again.
_LASTING = {Category.CONFIGURATION, Category.AUTH_REQUIRED, Category.SESSION_LOST, Category.PROTOCOL}


@dataclass(slots=True, kw_only=True)
class AcpSettings:
    """What one conversation needs to know of its provider and request."""

    provider: str  #: name of the provider
    cwd: str = field(repr=False)  #: absolute; the session's working directory
    policy: PermissionPolicy
    handler: PermissionHandler | None = field(repr=False)
    permission_timeout_seconds: float | None
    close_grace_seconds: float
    max_output_bytes: int
    max_early_updates: int
    max_open_requests: int
    session: SessionRef | None = None  #: the session to continue
    allow_new_session: bool = False


class AcpConversation:
    """One agent process, spoken to in ACP."""

    def __init__(
        self,
        settings: AcpSettings,
        first_prompt: tuple[ContentBlock, ...] = (),
        *,
        errand: Callable[[Handshake], Awaitable[Outcome]] | None = None,
    ) -> None:
        """`errand` is what takes the place of a session: it asks what it wants, and there are no turns."""
        self._settings = settings
        self._first_prompt = first_prompt
        self._machine = SessionMachine()
        self._errand = errand
        self._handshake: Handshake | None = None
        self._link: Link | None = None
        self._port: TurnPort | None = None
        self._prompt_id: int | None = None  # of the prompt that may still be answered
        self._counted_before = Counters()

    # -- what it is

    @property
    def provider_label(self) -> str:
        """The provider's name in diagnostics."""
        return PROVIDER_LABEL

    @property
    def stage(self) -> str:
        """The published stage at this moment."""
        return self._machine.stage

    @property
    def can_prompt(self) -> bool:
        """Whether the session is ready for a prompt."""
        return self._machine.can_prompt

    @property
    def session(self) -> SessionRef | None:
        """The open session."""
        token = self._updates.session_id
        return None if token is None else SessionRef(self._settings.provider, self._settings.cwd, token)

    def advance(self, event: LifeEvent) -> None:
        """The child's life went on."""
        self._machine.advance(_LIFE[event])
        if self._machine.ended:
            self._client.refuse_all()
            if self._prompt_id is not None:
                # Nobody waits for it any more: an answer that comes all the same is counted as dropped.
                self._connection.abandon(self._prompt_id)
                self._prompt_id = None

    # -- the opening

    async def open(self, link: Link) -> Outcome:
        """Introduce ourselves, then open the session (or do the errand that this conversation is for).

        Raises `UnsupportedCapabilityError` when the agent does not take the first prompt.
        """
        self._link = link
        params: dict[str, object] = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            "clientInfo": {"name": "acp_subagent", "version": VERSION},
        }
        outcome = await ask(
            link.connection, "initialize", params, self._on_initialized, meanwhile=self._get_ready
        )
        if outcome.end is not End.ANSWERED:
            return outcome
        link.timed("initialize")
        assert self._handshake is not None
        if self._errand is not None:
            return await self._errand(self._handshake)
        self.check_prompt(self._first_prompt)
        return await self._handshake.open_session(
            self._settings.session, allow_new=self._settings.allow_new_session
        )

    def _get_ready(self) -> None:
        """Get ready to read what the agent says: it is just starting, and nothing can be read before this."""
        from acp_subagent.acp.handshake import Handshake  # noqa: PLC0415  start-up time, see above

        assert self._link is not None
        self._client.attach(self._link)
        self._handshake = Handshake(self._link, self._machine, self._updates, cwd=self._settings.cwd)
        # `wire.jsonrpc.Receiver`: the reader calls these for all that comes, so there is nothing in between.
        self.on_notification = self._updates.on_notification
        self.on_request = self._client.on_request

    @cached_property
    def _updates(self) -> SessionUpdates:
        from acp_subagent.acp.updates import SessionUpdates  # noqa: PLC0415  start-up time, see above

        return SessionUpdates(max_early_updates=self._settings.max_early_updates)

    @cached_property
    def _client(self) -> AcpClient:
        from acp_subagent.acp.client import AcpClient  # noqa: PLC0415  start-up time, see above

        return AcpClient(
            self._updates,
            policy=self._settings.policy,
            handler=self._settings.handler,
            permission_timeout_seconds=self._settings.permission_timeout_seconds,
            max_open_requests=self._settings.max_open_requests,
        )

    def _on_initialized(self, value: object) -> Outcome:
        assert self._handshake is not None
        return self._handshake.on_initialized(value)

    @property
    def _context_lost(self) -> bool:
        return self._handshake is not None and self._handshake.context_lost

    # -- turns

    def check_prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Raise `UnsupportedCapabilityError` when the agent did not say that it takes such content."""
        assert self._handshake is not None
        self._handshake.check_prompt(blocks)

    def begin_turn(self, port: TurnPort) -> AcpTurnRecord:
        """A turn begins; what comes from now on belongs to it."""
        self._port = port
        record = self._updates.begin_turn(
            port, max_output_bytes=self._settings.max_output_bytes, counted=self._counted
        )
        record.context_lost = self._context_lost
        self._client.begin_turn(port)
        return record

    def prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Send the prompt of the turn."""
        self._machine.advance(Event.PROMPT_SENT)
        params: dict[str, object] = {
            "sessionId": self._updates.session_id,
            "prompt": [block_to_json(block) for block in blocks],
        }
        self._prompt_id = self._connection.send_request("session/prompt", params, self._on_prompt_answered)

    def _on_prompt_answered(self, answer: Answer) -> None:
        if not self._machine.in_turn or self._port is None:
            return  # the turn was given up before
        self._prompt_id = None
        outcome = self._turn_outcome(answer)
        if outcome.end in {End.ANSWERED, End.RPC_ERROR}:
            self._machine.advance(Event.TURN_ENDED)
        self._client.turn_answered()
        self._port.answered(outcome)

    def _turn_outcome(self, answer: Answer) -> Outcome:
        from acp_subagent.acp.schema import PromptResult, read  # noqa: PLC0415  start-up time, see above

        if not isinstance(answer, Result):
            return fault(answer)
        result = read(PromptResult, answer.value)
        if result is None:
            return Outcome(end=End.MALFORMED)
        return Outcome(end=End.ANSWERED, value=result.stopReason)

    def cancel_turn(self) -> None:
        """Tell the agent to stop, and answer `cancelled` to what it asked."""
        if self._machine.in_turn:
            self._machine.advance(Event.CANCEL_SENT)
            self._connection.notify("session/cancel", {"sessionId": self._updates.session_id})
        self._client.cancel_open()

    def end_turn(self) -> None:
        """The turn has settled; what still comes of it is late."""
        self._client.end_turn()
        self._updates.end_turn()
        self._port = None
        self._counted_before = self._totals()

    @property
    def takes_leave(self) -> bool:
        """Whether there is a session to close, and the agent closes sessions."""
        if self._handshake is None or self._handshake.agent.sessionCapabilities.close is None:
            return False
        return self._machine.can_prompt and self._updates.session_id is not None

    async def close(self) -> None:
        """Close the session; bounded by the close grace."""
        with trio.move_on_after(self._settings.close_grace_seconds):
            await self._connection.request("session/close", {"sessionId": self._updates.session_id})

    # -- what it means

    def classify(self, outcome: Outcome) -> Verdict:
        """What a failed start, or the end of a turn, means."""
        from acp_subagent.acp.classify import Facts, classify  # noqa: PLC0415  start-up time, see above

        record = self._updates.record
        return classify(
            Facts(
                stage=self._machine.stage,
                end=outcome.end,
                intent=outcome.intent,
                deadline=outcome.deadline,
                stop_reason=outcome.value,
                rpc_code=None if outcome.rpc_error is None else outcome.rpc_error.code,
                exit_status=outcome.exit_status,
                reason=outcome.reason,
                session_required=self._settings.session is not None and not self._context_lost,
                permission=None if record is None else record.latest_decision,
            )
        )

    def classify_teardown(self, report: TeardownReport) -> Verdict | None:
        """What the report of a ladder means; None when nothing is wrong."""
        from acp_subagent.acp.classify import classify_teardown  # noqa: PLC0415  start-up time, see above

        return classify_teardown(report)

    def raw_stop_reason(self, outcome: Outcome) -> str | None:
        """The stop reason as the agent sent it, bounded, for the host."""
        return word(outcome.value)

    def retryable(self, verdict: Verdict) -> bool:
        """Whether nothing is known that would make another try fail the same way."""
        return verdict.category not in _LASTING and verdict.stage != Stage.TEARDOWN

    def advice(self, reason: str | None) -> str | None:
        """One fixed sentence on what to do about a reason."""
        return None if reason is None else ADVICE.get(reason)

    # -- small things

    @property
    def _connection(self) -> Connection:
        assert self._link is not None
        return self._link.connection

    def _totals(self) -> Counters:
        """What was counted since the child was spawned."""
        counted = self._updates.counted()
        return counted if self._link is None else with_wire(counted, self._connection.counters)

    def _counted(self) -> Counters:
        """What was counted since the last turn settled (for the first: since the spawn)."""
        totals, before = self._totals(), self._counted_before
        names = [item.name for item in fields(Counters)]
        return Counters(**{name: getattr(totals, name) - getattr(before, name) for name in names})
