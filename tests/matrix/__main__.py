"""`python -m tests.matrix`: the full product, with its size and time."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import trio

from tests.matrix.cells import Cell, covering_array, full_product
from tests.matrix.run import play_all


def main() -> int:
    """Play every cell (with `--pairs`, the covering array); exit 1 when one fails."""
    cells = covering_array() if "--pairs" in sys.argv[1:] else full_product()
    began, played = time.monotonic(), 0

    def progress(cell: Cell) -> None:
        nonlocal played
        played += 1
        if played % 50 == 0:
            print(f"{played} of {len(cells)} cells, {time.monotonic() - began:.0f} s", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        failures = trio.run(lambda: play_all(cells, Path(folder), at_once=6, progress=progress))
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(cells)} cells, {len(failures)} failed, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
