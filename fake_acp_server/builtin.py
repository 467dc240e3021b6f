"""The built-in scenarios, found by name. The first word of a name says in which file it stands; only that is
loaded.

``start-``, ``session-``, ``end-``: how a run can end, stage by stage. ``wire-``, ``turn-``, ``process-``:
habits of real agents, and what can go wrong with bytes, turns and processes. Anything else: good examples.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: First word of a name -> module with those scenarios.
_MODULES = {
    "start": "builtin_outcomes",
    "session": "builtin_outcomes",
    "end": "builtin_outcomes",
    "wire": "builtin_wire",
    "turn": "builtin_turns",
    "process": "builtin_process",
}
_BASICS = "builtin_basics"


def find(name: str) -> dict[str, Any] | None:
    """The scenario of that name, or None."""
    return _load(_MODULES.get(name.partition("-")[0], _BASICS)).get(name)


def everything() -> dict[str, dict[str, Any]]:
    """Name -> scenario, of all of them, in the order of the list."""
    modules = dict.fromkeys((_BASICS, *_MODULES.values()))
    return {name: scenario for module in modules for name, scenario in _load(module).items()}


def purposes() -> dict[str, str]:
    """Name -> one line of purpose, of all of them."""
    return {name: scenario["purpose"] for name, scenario in everything().items()}


def _load(module: str) -> dict[str, dict[str, Any]]:
    loaded = __import__(f"fake_acp_server.{module}", fromlist=["SCENARIOS"])
    return {name: {"name": name, **scenario} for name, scenario in loaded.SCENARIOS.items()}
