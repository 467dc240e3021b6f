"""What to answer when the agent asks for a permission: pure rules over what it offers.

Owns how a wish to allow or to deny becomes one of the offered options. Options are chosen by their kind,
never by their name, and only an id that was offered is ever sent. What cannot be read is not selectable;
where nothing fits, the answer is a denial. Who wishes (a fixed policy, a handler, rules), and waiting for it,
are left to others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from acp_subagent.acp.vocabulary import PermissionOptionKind
from acp_subagent.seam.activity import PermissionDecision, ToolCall


class PermissionPolicy(StrEnum):
    """Who decides on permission requests."""

    REJECT = "reject"  #: everything is denied
    ALLOW = "allow"  #: everything is allowed
    ASK = "ask"  #: a handler of the embedding program decides; without one everything is denied
    RULES = "rules"  #: rules over the tool call's kind and locations decide


class PermissionAnswer(StrEnum):
    """What a handler or a rule may wish, without naming an option."""

    ALLOW = "allow"  #: by the first `allow_once`, else `allow_always`; with neither offered it is a denial
    DENY = "deny"  #: by the first `reject_once`, else `reject_always`, else `cancelled`


@dataclass(frozen=True, slots=True, repr=False)
class PermissionOption:
    """One option that the agent offers, well-formed and of a kind that we know."""

    id: str  #: the agent's id of the option; any string
    kind: PermissionOptionKind  #: what choosing it means
    name: str = ""  #: what the agent calls it; display text of the agent

    def __repr__(self) -> str:
        return f"<PermissionOption {self.kind}>"


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a permission handler is asked: the tool call, and the options that the agent offers."""

    call: ToolCall
    options: tuple[PermissionOption, ...]


#: Decides on one request: `allow` or `deny`, one of the offered options, or the id of one. Anything else, an
#: exception, and an answer that comes too late mean deny.
PermissionHandler = Callable[[PermissionRequest], Awaitable[object]]


class Choice(NamedTuple):
    """What is answered to one permission request."""

    decision: PermissionDecision  #: what it counts as
    option_id: str | None = None  #: the offered id that is sent; None is answered as `cancelled`

    def __repr__(self) -> str:
        return f"<Choice {self.decision}>"


#: the answer while a turn is ending: no decision of anybody
CANCELLED = Choice(PermissionDecision.CANCELLED)

#: kinds in order of preference: once before always, since always widens what is done unasked later
_ALLOWING = (PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS)
_DENYING = (PermissionOptionKind.REJECT_ONCE, PermissionOptionKind.REJECT_ALWAYS)

#: by the word on the wire: the kind, and what choosing it counts as
_KINDS = {
    kind.value: (kind, PermissionDecision.ALLOWED if kind.allows else PermissionDecision.DENIED)
    for kind in PermissionOptionKind
}

#: one option that may be chosen: its id, its kind, what it counts as, and what was sent for it
_Offer: TypeAlias = tuple[str, PermissionOptionKind, PermissionDecision, dict[str, object]]


def selectable(options: object) -> tuple[PermissionOption, ...]:
    """Read the `options` of a request as the agent sent them, and keep what may be chosen.

    Left out are options that are malformed or of an unknown kind, and an id offered both to allow and to
    deny: nobody could tell what the agent would take it for.
    """
    return tuple(_option(offer) for offer in _offers(options))


def decide(policy: PermissionPolicy, options: object) -> Choice:
    """Decide at once, by the policy alone; `options` are as the agent sent them.

    `allow` allows. Every other policy denies here: `ask` and `rules` come to a wish first and use `answer`.
    """
    offered = _offers(options)
    return _allowed(offered) if policy is PermissionPolicy.ALLOW else _denied(offered)


def answer(wish: object, options: object) -> Choice:
    """Turn what a handler returned into an answer.

    `wish` is `allow` or `deny`, one of the offered `PermissionOption`s, or the id of one. The two words come
    before ids, so that no agent can turn a denial around by what it calls an option. Anything else is a wrong
    answer: a denial.
    """
    offered = _offers(options)
    if not isinstance(wish, (str, PermissionOption)) or wish == PermissionAnswer.DENY:
        return _denied(offered)
    if wish == PermissionAnswer.ALLOW:
        return _allowed(offered)
    for offer in offered:
        option_id, _, decision, _ = offer
        if wish == (option_id if isinstance(wish, str) else _option(offer)):
            return Choice(decision, option_id)
    return _denied(offered)


def outcome(choice: Choice) -> dict[str, dict[str, str]]:
    """The result of `session/request_permission` that says `choice`."""
    if choice.option_id is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": choice.option_id}}


def _offers(options: object) -> list[_Offer]:
    """What may be chosen, in one pass over what was sent."""
    if not isinstance(options, (list, tuple)):
        return []
    offered: list[_Offer] = []
    sides: dict[str, PermissionDecision] = {}
    ambiguous = set()
    for raw in options:
        try:
            option_id = raw["optionId"]
            kind, decision = _KINDS[raw["kind"]]
        except (KeyError, TypeError):
            continue  # something is missing, of a kind that we do not know, or no object
        if isinstance(option_id, str):
            offered.append((option_id, kind, decision, raw))
            if sides.setdefault(option_id, decision) is not decision:
                ambiguous.add(option_id)
    return [offer for offer in offered if offer[0] not in ambiguous] if ambiguous else offered


def _option(offer: _Offer) -> PermissionOption:
    option_id, kind, _, raw = offer
    name = raw.get("name")
    return PermissionOption(option_id, kind, name if isinstance(name, str) else "")


def _by_kind(kinds: tuple[PermissionOptionKind, ...], offered: list[_Offer]) -> Choice | None:
    """The first option of the first kind that is offered at all."""
    for wanted in kinds:
        for option_id, kind, decision, _ in offered:
            if kind is wanted:
                return Choice(decision, option_id)
    return None


def _allowed(offered: list[_Offer]) -> Choice:
    """What allows; with nothing offered for it, a denial."""
    return _by_kind(_ALLOWING, offered) or _denied(offered)


def _denied(offered: list[_Offer]) -> Choice:
    """A denial; without an option for it, by `cancelled`: never by approving something else."""
    return _by_kind(_DENYING, offered) or Choice(PermissionDecision.DENIED)
