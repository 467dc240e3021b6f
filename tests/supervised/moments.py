"""The moments at which a caller can end a turn, seen from the agent's answer to it.

One table for two uses: the deeds are played to a real `Turn`, whose intent has to be the one that stands
here; the classifiers get that intent in every cell of their products.
"""

from __future__ import annotations

from dataclasses import dataclass

from acp_subagent.supervised.ending import Intent


@dataclass(frozen=True)
class Moment:
    """What happens to a turn, in order, and what has to be known of it in the end."""

    name: str
    deeds: tuple[str, ...]  #: `abort`: the caller's event is set; `cancel`; `answer`; `pass`: others run
    intent: Intent | None


MOMENTS = (
    Moment("not cancelled", ("pass", "answer"), None),
    Moment("cancelled before the answer", ("pass", "cancel", "pass", "answer"), Intent.CANCELLED),
    Moment("aborted before the answer", ("pass", "abort", "pass", "answer"), Intent.CANCELLED),
    Moment("cancelled in the instant of the answer", ("pass", "cancel", "answer"), Intent.CANCELLED),
    # The event is set, and whoever heeds it has not come to run when the answer is read.
    Moment("aborted in the instant of the answer", ("pass", "abort", "answer"), Intent.CANCELLED),
    Moment("cancelled in the instant after the answer", ("pass", "answer", "cancel"), None),
    Moment("aborted in the instant after the answer", ("pass", "answer", "abort"), None),
    Moment("cancelled after the answer", ("pass", "answer", "pass", "cancel"), None),
    Moment("aborted after the answer", ("pass", "answer", "pass", "abort"), None),
)
