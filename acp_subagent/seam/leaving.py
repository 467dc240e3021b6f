"""What comes out of a block that has a nursery of ours when several things were raised: one, and plain."""

from __future__ import annotations

import trio


def foremost(body: BaseException | None, group: BaseExceptionGroup) -> BaseException | None:
    """What is to be raised when the body raised `body` (or nothing) and the nursery `group`.

    The body's exception as it is, unless that is a cancellation or something in the group is to leave the
    program; None when there were only cancellations, which come again by themselves.
    """
    left = _plain(group)
    return left if _plain(body) is None or not isinstance(left, Exception | None) else body


def _plain(error: BaseException | None) -> BaseException | None:
    """Without cancellations; what is in a group, when it is alone in it."""
    if isinstance(error, BaseExceptionGroup):
        _, error = error.split(trio.Cancelled)
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return None if isinstance(error, trio.Cancelled) else error
