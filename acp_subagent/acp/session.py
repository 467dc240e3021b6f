"""The state machine of one agent process and its session: a table with a row for every state.

Owns which event may follow which, and nothing else: it sends nothing, reads nothing and waits for nothing.
The driver says what happened (`SessionMachine.advance`); an event that the state has no row for is a bug of
the driver, raises, and changes nothing. `docs/session-machine.md` is generated from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from acp_subagent.acp.vocabulary import Stage
from acp_subagent.errors import IllegalTransitionError


class State(StrEnum):
    """Where the process and its session are; finer than the published `Stage`."""

    PROCESS = "process"  #: nothing is spawned yet, or the spawn is under way
    INITIALIZE = "initialize"  #: the process runs; the handshake is not answered
    NEW_SESSION = "new-session"  #: the handshake is done; the session is not open yet
    READY = "ready"  #: the session is open and no turn runs: a prompt may be sent
    PROMPT = "prompt"  #: a prompt was sent and is not answered
    CANCELLING = "cancelling"  #: the same, and we have told the agent to stop
    TEARDOWN = "teardown"  #: the process tree is being ended; nothing more is asked of the agent
    CLOSED = "closed"  #: the ladder has ended and its report is in


class Event(StrEnum):
    """What happened to the process or its session."""

    PROCESS_SPAWNED = "ProcessSpawned"  #: the child runs and its pipes are connected
    INITIALIZED = "Initialized"  #: the handshake was answered, in a version that we speak
    SESSION_OPENED = "SessionOpened"  #: the session is there, with everything that was asked for
    PROMPT_SENT = "PromptSent"  #: a turn has begun
    TURN_ENDED = "TurnEnded"  #: a well-formed answer to the prompt came, a JSON-RPC error included
    CANCEL_SENT = "CancelSent"  #: the agent was told to stop the turn
    RUN_FAILED = "RunFailed"  #: the child cannot be used any more
    DISPOSED = "Disposed"  #: the owner does not need the child any more
    LADDER_ENDED = "LadderEnded"  #: the teardown is over, survivors or not


#: leaving is possible from everywhere before the teardown, and always in the same two ways
_LEAVE: Mapping[Event, State] = {Event.RUN_FAILED: State.TEARDOWN, Event.DISPOSED: State.TEARDOWN}

#: for every state the events that may come and the state that follows
TABLE: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        State.PROCESS: MappingProxyType({Event.PROCESS_SPAWNED: State.INITIALIZE, **_LEAVE}),
        State.INITIALIZE: MappingProxyType({Event.INITIALIZED: State.NEW_SESSION, **_LEAVE}),
        State.NEW_SESSION: MappingProxyType({Event.SESSION_OPENED: State.READY, **_LEAVE}),
        State.READY: MappingProxyType({Event.PROMPT_SENT: State.PROMPT, **_LEAVE}),
        State.PROMPT: MappingProxyType(
            {Event.TURN_ENDED: State.READY, Event.CANCEL_SENT: State.CANCELLING, **_LEAVE}
        ),
        State.CANCELLING: MappingProxyType({Event.TURN_ENDED: State.READY, **_LEAVE}),
        State.TEARDOWN: MappingProxyType({Event.LADDER_ENDED: State.CLOSED}),
        State.CLOSED: MappingProxyType({}),
    }
)

#: the word that a failure in each state is reported with
STAGES: Mapping[State, Stage] = MappingProxyType(
    {
        State.PROCESS: Stage.PROCESS,
        State.INITIALIZE: Stage.INITIALIZE,
        State.NEW_SESSION: Stage.NEW_SESSION,
        State.READY: Stage.PROMPT,  # what can fail here is the turn that is about to begin
        State.PROMPT: Stage.PROMPT,
        State.CANCELLING: Stage.PROMPT,
        State.TEARDOWN: Stage.TEARDOWN,
        State.CLOSED: Stage.TEARDOWN,
    }
)


class SessionMachine:
    """The state of one process and its session; starts in `State.PROCESS`."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = State.PROCESS

    def __repr__(self) -> str:
        return f"<SessionMachine {self._state}>"

    @property
    def state(self) -> State:
        """Where the session is now."""
        return self._state

    @property
    def stage(self) -> Stage:
        """The published word for the present state."""
        return STAGES[self._state]

    @property
    def can_prompt(self) -> bool:
        """True when a prompt may be sent now."""
        return Event.PROMPT_SENT in TABLE[self._state]

    @property
    def in_turn(self) -> bool:
        """True while a prompt is unanswered, cancelled or not."""
        return Event.TURN_ENDED in TABLE[self._state]

    @property
    def ended(self) -> bool:
        """True once the teardown has begun: the child can never be used again."""
        return self._state in {State.TEARDOWN, State.CLOSED}

    def advance(self, event: Event) -> State:
        """Record that `event` happened and return the new state.

        Raises IllegalTransitionError, and changes nothing, when the present state has no row for the event.
        """
        following = TABLE[self._state].get(event)
        if following is None:
            raise IllegalTransitionError(f"no {event} in state {self._state}")
        self._state = following
        return following
