"""Carrying out one delegated task, whoever waits for it.

Owns the way from a request to an `Outcome`: start, wait, always dispose (all of it `service.run`'s work),
and which exceptions are an outcome and which are the host's. Also what a run has said so far.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_subagent.delegate.outcome import Outcome, outcome_of, outcome_of_error
from acp_subagent.errors import (
    SubagentAbortedError,
    SubagentRunError,
    UnknownProviderError,
    UnsupportedCapabilityError,
)
from acp_subagent.seam.content import TextBlock
from acp_subagent.seam.events import Snapshot
from acp_subagent.seam.request import SubagentRequest
from acp_subagent.seam.run import SubagentRun
from acp_subagent.seam.service import SubagentService


async def carry_out(
    service: SubagentService,
    provider: str,
    request: SubagentRequest,
    *,
    on_ready: Callable[[SubagentRun], None] | None = None,
) -> Outcome:
    """Run one task to its end; when this returns or raises, its subagent has been disposed.

    Whatever a subagent or its machine did is an outcome, and so is a provider that is not registered (any
    more) or cannot do what is asked. Raises what is the host's: `ConfigurationError`, `ServiceClosedError`,
    and a foreign exception of a provider.
    """
    try:
        return outcome_of(await service.run(provider, request, on_ready=on_ready))
    except (
        SubagentAbortedError,
        SubagentRunError,
        UnknownProviderError,
        UnsupportedCapabilityError,
    ) as error:
        return outcome_of_error(error)


async def text_so_far(run: SubagentRun) -> str:
    """All that a run has said up to now, its messages apart by an empty line; '' when nothing yet.

    Asks the run for a snapshot, which costs nothing while nobody asks.
    """
    async with run.events() as events:
        # A subscription that comes late gets a snapshot at once, one that comes in time nothing yet.
        event = await anext(events) if events.undelivered else None
    if not isinstance(event, Snapshot):
        return ""
    texts = [
        "".join(block.text for block in message if isinstance(block, TextBlock)) for message in event.messages
    ]
    return "\n\n".join(text for text in texts if text)
