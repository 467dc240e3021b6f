"""Playing many cells, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from tests.matrix.cells import Cell
from tests.matrix.play import play


async def play_all(
    cells: Sequence[Cell],
    folder: Path,
    *,
    at_once: int,
    progress: Callable[[Cell], None] | None = None,
) -> list[str]:
    """Play the cells, `at_once` at a time; what went wrong, a line a cell."""
    failures: list[str] = []
    limiter = trio.CapacityLimiter(at_once)

    async def one(number: int, cell: Cell) -> None:
        async with limiter:
            try:
                # The folder's name is short (a socket lies in it) and is nobody else's.
                await play(cell, folder / str(number))
            except Exception as exc:  # noqa: BLE001  every way to fail is a line of the report
                failures.append(f"{cell}: {describe(exc)}")
            if progress is not None:
                progress(cell)

    async with trio.open_nursery() as nursery:
        for number, cell in enumerate(cells):
            nursery.start_soon(one, number, cell)
    return failures


def describe(error: BaseException) -> str:
    """An exception in one line; of a group, what is in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"
