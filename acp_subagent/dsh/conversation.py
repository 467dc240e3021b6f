"""The conversation with one DeepSeek Harness runtime: handshake, the one prompt, shutdown.

Owns what is said to the runtime, and when its one activity is over. There is no cancel on the wire: a turn
that we end is over for us at once, and the runtime is asked to shut down instead. When things happen is
supervision's to decide; what they mean is `dsh.classify`'s.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

import trio

from acp_subagent.dsh.activity import TurnEnd
from acp_subagent.dsh.classify import Facts, classify, classify_teardown
from acp_subagent.dsh.events import SessionEvents
from acp_subagent.dsh.turn_record import DshTurnRecord
from acp_subagent.dsh.vocabulary import PROVIDER_LABEL, Category, Stage
from acp_subagent.errors import UnsupportedCapabilityError
from acp_subagent.process.launch import SpawnFault
from acp_subagent.seam.activity import TeardownReport
from acp_subagent.seam.content import ContentBlock, TextBlock, block_to_json
from acp_subagent.seam.request import SessionRef
from acp_subagent.seam.result import Counters
from acp_subagent.supervised.advice import SHARED_ADVICE
from acp_subagent.supervised.asking import ask, fault
from acp_subagent.supervised.conversation import LifeEvent, Link, Outcome, TurnPort
from acp_subagent.supervised.ending import End
from acp_subagent.supervised.reporting import with_wire
from acp_subagent.supervised.verdicts import Verdict
from acp_subagent.wire.connection import Connection
from acp_subagent.wire.jsonrpc import METHOD_NOT_FOUND, Answer, RequestId, Result

#: Failures that another try would meet again.
_LASTING = {Category.CONFIGURATION, Category.PROTOCOL}


@dataclass(slots=True, kw_only=True)
class DshSettings:
    """What one conversation needs to know of its provider."""

    cwd: str = field(repr=False)  #: absolute; where the agent works
    provider: str
    model: str
    max_tokens: int | None
    reasoning_effort: str | None
    shutdown_grace_seconds: float
    max_output_bytes: int


class DshConversation:
    """One runtime process, spoken to over its SDK protocol."""

    def __init__(self, settings: DshSettings) -> None:
        self._settings = settings
        self._link: Link | None = None
        self._port: TurnPort | None = None
        self._stage = Stage.INITIALIZE
        self._initialized = False
        self._prompted = False
        # The runtime keeps its sessions; one that it knows already cannot be begun again.
        self._events = SessionEvents(str(uuid.uuid4()))

    # -- what it is

    @property
    def provider_label(self) -> str:
        """The provider's name in diagnostics."""
        return PROVIDER_LABEL

    @property
    def stage(self) -> str:
        """The published stage at this moment."""
        return self._stage

    @property
    def can_prompt(self) -> bool:
        """Whether the one prompt can be sent."""
        return self._stage is Stage.SESSION_RUN and not self._prompted

    @property
    def session(self) -> SessionRef | None:
        """None: what a run has begun cannot be continued by another."""
        return None

    def advance(self, event: LifeEvent) -> None:
        """The child's life went on."""
        if event is not LifeEvent.PROCESS_SPAWNED:
            self._stage = Stage.SHUTDOWN

    # -- the opening

    async def open(self, link: Link) -> Outcome:
        """Shake hands. The session comes into being with its prompt."""
        self._link = link
        params: dict[str, object] = {
            "cwd": self._settings.cwd,
            "provider": self._settings.provider,
            "model": self._settings.model,
        }
        if self._settings.reasoning_effort is not None:
            params["reasoningEffort"] = self._settings.reasoning_effort
        if self._settings.max_tokens is not None:
            params["maxTokens"] = self._settings.max_tokens
        outcome = await ask(self._connection, "initialize", params, self._on_initialized)
        if outcome.end is End.ANSWERED:
            link.timed("initialize")
        return outcome

    def _on_initialized(self, value: object) -> Outcome:
        if not (isinstance(value, dict) and isinstance(value.get("serverInfo"), dict)):
            return Outcome(end=End.MALFORMED)
        self._initialized = True
        self._stage = Stage.SESSION_RUN
        return Outcome(end=End.ANSWERED)

    # -- the turn

    def check_prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Raise `UnsupportedCapabilityError` for anything but text."""
        for block in blocks:
            if not isinstance(block, TextBlock):
                raise UnsupportedCapabilityError(str(block_to_json(block)["type"]))

    def begin_turn(self, port: TurnPort) -> DshTurnRecord:
        """The turn begins; what comes from now on belongs to it."""
        record = DshTurnRecord(max_output_bytes=self._settings.max_output_bytes, counted=self._counted)
        self._port = port
        self._events.begin_turn(record, port)
        return record

    def prompt(self, blocks: tuple[ContentBlock, ...]) -> None:
        """Send the prompt; its answer is a receipt, and the end comes with the agent's idleness."""
        self._prompted = True
        params: dict[str, object] = {
            "sessionId": self._events.session_id,
            "contentBlocks": [block_to_json(block) for block in blocks],
        }
        self._connection.send_request("session/prompt", params, self._on_receipt)

    def _on_receipt(self, answer: Answer) -> None:
        if self._port is None:
            return  # the turn is over
        if not isinstance(answer, Result):
            self._port.answered(fault(answer))
            return
        message_id = answer.value.get("messageId") if isinstance(answer.value, dict) else None
        if not isinstance(message_id, str):
            self._port.answered(Outcome(end=End.MALFORMED))
            return
        self._events.activity.accepted(message_id)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._port is not None and self._events.activity.over:
            self._port.answered(Outcome(end=End.ANSWERED, value=self._events.activity.turn_end))

    def cancel_turn(self) -> None:
        """The turn is over at once: the runtime cannot be told to stop it."""
        if self._port is not None:
            self._port.answered(Outcome(end=End.UNANSWERED))

    def end_turn(self) -> None:
        """The turn has settled; what still comes of it is late."""
        self._events.end_turn()
        self._port = None

    @property
    def takes_leave(self) -> bool:
        """Whether the runtime can still be asked to shut down."""
        return self._initialized and not self._connection.ended.is_set()

    async def close(self) -> None:
        """Ask the runtime to shut down, which ends what it still does; bounded by its grace."""
        with trio.move_on_after(self._settings.shutdown_grace_seconds):
            # Whatever the answer is: the ladder follows.
            await self._connection.request("shutdown", {})

    # -- what comes from the runtime (wire.jsonrpc.Receiver)

    def on_notification(self, method: str, params: dict[str, object]) -> None:
        """What is said of sessions is folded; everything else is passed over."""
        if method == "session.event":
            self._events.on_event(params)
        elif method == "session.status":
            self._events.on_status(params)
            self._end_if_over()

    def on_request(self, id: RequestId, method: str, params: dict[str, object]) -> None:
        """The runtime has nothing to ask of us."""
        self._connection.respond_error(id, METHOD_NOT_FOUND, "method not found")

    # -- what it means

    def classify(self, outcome: Outcome) -> Verdict:
        """What a failed start, or the end of the turn, means."""
        return classify(
            Facts(
                stage=self._stage,
                end=outcome.end,
                intent=outcome.intent,
                deadline=outcome.deadline,
                turn_end=outcome.value if isinstance(outcome.value, TurnEnd) else None,
                rpc_code=None if outcome.rpc_error is None else outcome.rpc_error.code,
                exit_status=outcome.exit_status,
                reason=outcome.reason,
            )
        )

    def classify_teardown(self, report: TeardownReport) -> Verdict | None:
        """What the report of a ladder means; None when nothing is wrong."""
        return classify_teardown(report)

    def raw_stop_reason(self, outcome: Outcome) -> str | None:
        """How the last turn ended, as the runtime says, for the host."""
        return outcome.value.kind if isinstance(outcome.value, TurnEnd) else None

    def retryable(self, verdict: Verdict) -> bool:
        """Whether nothing is known that would make another try fail the same way."""
        passing = verdict.reason == SpawnFault.OUT_OF_DESCRIPTORS or verdict.category not in _LASTING
        return passing and verdict.stage != Stage.SHUTDOWN

    def advice(self, reason: str | None) -> str | None:
        """One fixed sentence on what to do about a reason."""
        return None if reason is None else SHARED_ADVICE.get(reason)

    # -- small things

    @property
    def _connection(self) -> Connection:
        assert self._link is not None
        return self._link.connection

    def _counted(self) -> Counters:
        return with_wire(self._events.counted(), self._connection.counters)
