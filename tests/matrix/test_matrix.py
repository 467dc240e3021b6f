"""The covering array of the fault matrix: after each cell nobody is left, and each call came back in time."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.kill_the_host import demonstrate
from tests.matrix.cells import covering_array, full_product, pairs
from tests.matrix.run import play_all


def test_the_covering_array_covers_every_pair_that_is_possible() -> None:
    covered = {pair for cell in covering_array() for pair in pairs(cell)}
    assert covered == {pair for cell in full_product() for pair in pairs(cell)}
    assert len(covering_array()) < len(full_product()) / 4


@pytest.mark.timeout(300)
async def test_every_pair_of_values_ends_with_nobody_left(tmp_path: Path) -> None:
    with trio.fail_after(280):
        failures = await play_all(covering_array(), tmp_path, at_once=4)
    assert failures == []


async def test_the_demonstration_of_a_killed_host_ends_with_nobody_alive(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with trio.fail_after(100):
        assert await demonstrate() == 0
    assert capsys.readouterr().out.endswith(" s later 0 of them live\n")
