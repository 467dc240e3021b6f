"""The session machine as a full product of states and events."""

from __future__ import annotations

from itertools import product

import pytest

from acp_subagent.acp.session import STAGES, TABLE, Event, SessionMachine, State
from acp_subagent.acp.vocabulary import Stage
from acp_subagent.errors import IllegalTransitionError

#: how a machine gets into each state
PATHS: dict[State, tuple[Event, ...]] = {State.PROCESS: ()}
PATHS[State.INITIALIZE] = (*PATHS[State.PROCESS], Event.PROCESS_SPAWNED)
PATHS[State.NEW_SESSION] = (*PATHS[State.INITIALIZE], Event.INITIALIZED)
PATHS[State.READY] = (*PATHS[State.NEW_SESSION], Event.SESSION_OPENED)
PATHS[State.PROMPT] = (*PATHS[State.READY], Event.PROMPT_SENT)
PATHS[State.CANCELLING] = (*PATHS[State.PROMPT], Event.CANCEL_SENT)
PATHS[State.TEARDOWN] = (*PATHS[State.CANCELLING], Event.RUN_FAILED)
PATHS[State.CLOSED] = (*PATHS[State.TEARDOWN], Event.LADDER_ENDED)

#: every legal step, written down a second time
LEGAL: dict[tuple[State, Event], State] = {
    (State.PROCESS, Event.PROCESS_SPAWNED): State.INITIALIZE,
    (State.INITIALIZE, Event.INITIALIZED): State.NEW_SESSION,
    (State.NEW_SESSION, Event.SESSION_OPENED): State.READY,
    (State.READY, Event.PROMPT_SENT): State.PROMPT,
    (State.PROMPT, Event.TURN_ENDED): State.READY,
    (State.PROMPT, Event.CANCEL_SENT): State.CANCELLING,
    (State.CANCELLING, Event.TURN_ENDED): State.READY,
    (State.TEARDOWN, Event.LADDER_ENDED): State.CLOSED,
    **{
        (state, event): State.TEARDOWN
        for state in State
        if state not in {State.TEARDOWN, State.CLOSED}
        for event in (Event.RUN_FAILED, Event.DISPOSED)
    },
}


def machine_in(state: State) -> SessionMachine:
    machine = SessionMachine()
    for event in PATHS[state]:
        machine.advance(event)
    assert machine.state is state
    return machine


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_a_legal_event_moves_and_any_other_raises_and_changes_nothing(state: State, event: Event) -> None:
    machine = machine_in(state)
    if (state, event) in LEGAL:
        assert machine.advance(event) is LEGAL[state, event]
        assert machine.state is LEGAL[state, event]
        return
    before = (machine.state, machine.stage, machine.can_prompt, machine.in_turn, machine.ended)
    with pytest.raises(IllegalTransitionError):
        machine.advance(event)
    assert (machine.state, machine.stage, machine.can_prompt, machine.in_turn, machine.ended) == before


def test_every_state_has_a_row_and_a_published_stage() -> None:
    assert set(TABLE) == set(State)
    assert set(STAGES) == set(State)


def test_every_event_is_legal_somewhere() -> None:
    assert {event for row in TABLE.values() for event in row} == set(Event)


@pytest.mark.parametrize("state", State)
def test_the_end_can_be_reached_from_every_state(state: State) -> None:
    machine = machine_in(state)
    if not machine.ended:
        machine.advance(Event.DISPOSED)
    if machine.state is State.TEARDOWN:
        machine.advance(Event.LADDER_ENDED)
    assert machine.state is State.CLOSED


@pytest.mark.parametrize("state", State)
def test_a_prompt_may_be_sent_only_when_ready(state: State) -> None:
    assert machine_in(state).can_prompt == (state is State.READY)


@pytest.mark.parametrize("state", State)
def test_a_turn_is_on_until_it_is_answered_cancelled_or_not(state: State) -> None:
    assert machine_in(state).in_turn == (state in {State.PROMPT, State.CANCELLING})


def test_the_stages_are_published_in_the_order_of_a_run() -> None:
    machine = SessionMachine()
    seen = [machine.stage]
    for event in (
        Event.PROCESS_SPAWNED,
        Event.INITIALIZED,
        Event.SESSION_OPENED,
        Event.PROMPT_SENT,
        Event.TURN_ENDED,
        Event.DISPOSED,
        Event.LADDER_ENDED,
    ):
        machine.advance(event)
        seen.append(machine.stage)
    assert list(dict.fromkeys(seen)) == list(Stage)


def test_a_session_takes_another_turn_after_an_answered_cancel() -> None:
    machine = machine_in(State.CANCELLING)
    machine.advance(Event.TURN_ENDED)
    assert machine.can_prompt


def test_the_text_of_an_illegal_step_is_made_of_our_own_words() -> None:
    with pytest.raises(IllegalTransitionError, match=r"^no TurnEnded in state closed$"):
        machine_in(State.CLOSED).advance(Event.TURN_ENDED)


def test_a_machine_shows_its_state() -> None:
    assert repr(SessionMachine()) == "<SessionMachine process>"
