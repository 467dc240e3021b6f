"""Every test in this folder runs on a virtual clock: time passes as soon as nothing else happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

HERE = Path(__file__).parent


def on_a_virtual_clock(
    test: Callable[[], Awaitable[Any]],
    *,
    clock: trio.abc.Clock | None,
    instruments: Sequence[trio.abc.Instrument],
) -> Any:
    """What `trio.run` is for tests with a real child."""
    return trio.run(test, clock=clock or MockClock(autojump_threshold=0), instruments=instruments)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose the runner, before the one that is chosen for all tests."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("trio") is not None:
            item.add_marker(pytest.mark.trio(run=on_a_virtual_clock), append=False)
