"""What a session comes to besides its turns: its mode, options, commands and title.

Owns how the updates about these are read, the latest of each kind, and which of them no turn was told of.
Telling them is left to `updates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from acp_subagent.seam.events import (
    CommandsChanged,
    ModeChanged,
    OptionsChanged,
    SessionChange,
    SessionInfoChanged,
)

Raw = dict[str, object]


class SessionState:
    """The state of one session, by kind of change."""

    def __init__(self) -> None:
        self._latest: dict[type[SessionChange], SessionChange] = {}
        self._untold: dict[type[SessionChange], SessionChange] = {}

    @property
    def latest(self) -> tuple[SessionChange, ...]:
        """The latest change of each kind; of the session's info, everything that was ever said."""
        return tuple(self._latest.values())

    def note(self, change: SessionChange, *, told: bool) -> None:
        """Keep a change; `told` is whether a turn is there to be told of it."""
        kind = type(change)
        if isinstance(change, SessionInfoChanged):
            known = self._latest.get(kind)
            so_far = known.changes if isinstance(known, SessionInfoChanged) else {}
            change = SessionInfoChanged({**so_far, **change.changes})
        self._latest[kind] = change
        if not told:
            self._untold[kind] = change

    def take_untold(self) -> tuple[SessionChange, ...]:
        """The changes that no turn was told of, once."""
        untold = tuple(self._untold.values())
        self._untold.clear()
        return untold


def _mode(update: Raw) -> SessionChange | None:
    mode_id = update.get("currentModeId")
    return ModeChanged(mode_id) if isinstance(mode_id, str) else None


def _options(update: Raw) -> SessionChange:
    return OptionsChanged(_objects(update.get("configOptions")))


def _commands(update: Raw) -> SessionChange:
    return CommandsChanged(_objects(update.get("availableCommands")))


def _info(update: Raw) -> SessionChange:
    return SessionInfoChanged({name: update[name] for name in ("title", "updatedAt") if name in update})


def _objects(value: object) -> tuple[Raw, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


#: By the kind of the update: the change that it tells of; None when it cannot be read.
CHANGES: Mapping[str, Callable[[Raw], SessionChange | None]] = {
    "current_mode_update": _mode,
    "config_option_update": _options,
    "available_commands_update": _commands,
    "session_info_update": _info,
}
