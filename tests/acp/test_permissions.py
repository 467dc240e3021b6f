"""How a wish to allow or to deny becomes one of the options that an agent offers."""

from __future__ import annotations

from itertools import permutations

import pytest

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
from acp_subagent.acp.vocabulary import PermissionOptionKind
from acp_subagent.seam.activity import PermissionDecision, PermissionRecord, ToolKind

ALLOWED, DENIED = PermissionDecision.ALLOWED, PermissionDecision.DENIED
KINDS = tuple(PermissionOptionKind)


def offer(*kinds: str) -> list[object]:
    """Options of these kinds whose ids and names say nothing about them."""
    return [
        {"optionId": f"o{number}", "name": "Yes, of course", "kind": kind}
        for number, kind in enumerate(kinds)
    ]


def record(decision: PermissionDecision, call_id: str = "c") -> PermissionRecord:
    return PermissionRecord(ToolKind.EDIT, "reject", decision, call_id)


ORDERS = [order for size in range(len(KINDS) + 1) for order in permutations(KINDS, size)]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "+".join(order) or "none")
def test_allow_takes_once_before_always_and_never_a_rejection(
    order: tuple[PermissionOptionKind, ...],
) -> None:
    choice = decide(PermissionPolicy.ALLOW, offer(*order))
    for kind in (PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS):
        if kind in order:
            assert choice == Choice(ALLOWED, f"o{order.index(kind)}")
            return
    assert choice == decide(PermissionPolicy.REJECT, offer(*order))


@pytest.mark.parametrize("policy", [PermissionPolicy.REJECT, PermissionPolicy.ASK, PermissionPolicy.RULES])
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "+".join(order) or "none")
def test_every_other_policy_denies_by_once_before_always_else_by_cancelled(
    policy: PermissionPolicy, order: tuple[PermissionOptionKind, ...]
) -> None:
    choice = decide(policy, offer(*order))
    for kind in (PermissionOptionKind.REJECT_ONCE, PermissionOptionKind.REJECT_ALWAYS):
        if kind in order:
            assert choice == Choice(DENIED, f"o{order.index(kind)}")
            return
    assert choice == Choice(DENIED, None)
    assert outcome(choice) == {"outcome": {"outcome": "cancelled"}}


def test_of_two_options_of_one_kind_the_first_is_taken() -> None:
    assert decide(PermissionPolicy.ALLOW, offer("allow_once", "allow_once")).option_id == "o0"


@pytest.mark.parametrize(
    "options",
    [
        None,
        "allow_once",
        7,
        {},
        [],
        [None, 7, "allow_once", [], {}],
        [{"optionId": "x"}],
        [{"kind": "allow_once"}],
        [{"optionId": 7, "kind": "allow_once"}],
        [{"optionId": None, "kind": "allow_once"}],
        [{"optionId": "x", "kind": ["allow_once"]}],
        [{"optionId": "x", "kind": {}}],
        [{"optionId": "x", "kind": "allow_forever"}],
        [{"optionId": "x", "kind": "ALLOW_ONCE"}],
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_never_chosen(options: object) -> None:
    assert selectable(options) == ()
    assert decide(PermissionPolicy.ALLOW, options) == Choice(DENIED, None)


def test_a_readable_option_beside_junk_is_still_chosen() -> None:
    options = [None, {"kind": "allow_once"}, {"optionId": "ok", "kind": "allow_once", "name": 3}]
    assert decide(PermissionPolicy.ALLOW, options) == Choice(ALLOWED, "ok")


def test_an_id_offered_both_to_allow_and_to_deny_is_not_chosen() -> None:
    options = [
        {"optionId": "x", "name": "No", "kind": "reject_once"},
        {"optionId": "x", "name": "Yes", "kind": "allow_once"},
        {"optionId": "y", "name": "Never", "kind": "reject_always"},
    ]
    assert decide(PermissionPolicy.REJECT, options) == Choice(DENIED, "y")
    assert decide(PermissionPolicy.ALLOW, options) == Choice(DENIED, "y")


def test_an_empty_id_is_an_id() -> None:
    options = [{"optionId": "", "name": "", "kind": "allow_once"}]
    assert outcome(decide(PermissionPolicy.ALLOW, options)) == {
        "outcome": {"outcome": "selected", "optionId": ""}
    }


def test_a_handler_may_say_allow_or_deny() -> None:
    options = offer(*KINDS)
    assert answer("allow", options) == answer(PermissionAnswer.ALLOW, options) == Choice(ALLOWED, "o0")
    assert answer("deny", options) == answer(PermissionAnswer.DENY, options) == Choice(DENIED, "o2")


@pytest.mark.parametrize("number", range(4))
def test_a_handler_may_choose_an_offered_option_or_its_id(number: int) -> None:
    options = offer(*KINDS)
    expected = Choice(ALLOWED if number < 2 else DENIED, f"o{number}")
    assert answer(f"o{number}", options) == expected
    assert answer(selectable(options)[number], options) == expected


@pytest.mark.parametrize("wish", [None, True, 1, "", "o9", "yes", ["o0"], {"optionId": "o0"}, object()])
def test_a_wrong_answer_of_a_handler_is_a_denial(wish: object) -> None:
    assert answer(wish, offer("allow_once", "reject_once")) == Choice(DENIED, "o1")


def test_an_option_that_was_not_offered_is_a_denial() -> None:
    stranger = PermissionOption("elsewhere", PermissionOptionKind.ALLOW_ONCE)
    assert answer(stranger, offer("allow_once", "reject_once")) == Choice(DENIED, "o1")
    relabelled = PermissionOption("o1", PermissionOptionKind.ALLOW_ONCE)
    assert answer(relabelled, offer("allow_once", "reject_once")) == Choice(DENIED, "o1")


def test_an_option_of_unknown_kind_cannot_be_chosen_by_its_id_either() -> None:
    assert answer("o0", offer("allow_forever", "reject_once")) == Choice(DENIED, "o1")


def test_an_agent_cannot_turn_a_denial_around_by_what_it_calls_an_option() -> None:
    options = [{"optionId": "deny", "name": "Deny", "kind": "allow_once"}]
    assert answer("deny", options) == Choice(DENIED, None)
    options = [{"optionId": "allow", "name": "Allow", "kind": "reject_once"}]
    assert answer("allow", options) == Choice(DENIED, "allow")


def test_a_choice_becomes_the_result_on_the_wire() -> None:
    assert outcome(Choice(ALLOWED, "o1")) == {"outcome": {"outcome": "selected", "optionId": "o1"}}
    assert outcome(CANCELLED) == {"outcome": {"outcome": "cancelled"}}
    assert CANCELLED.decision is PermissionDecision.CANCELLED


def test_no_repr_shows_what_the_agent_called_an_option() -> None:
    option = PermissionOption("secret-id", PermissionOptionKind.ALLOW_ONCE, "secret-name")
    shown = repr([option, Choice(ALLOWED, "secret-id"), record(ALLOWED, "secret-call")])
    assert "secret" not in shown
