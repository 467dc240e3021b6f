"""Fixtures of the tests with the scripted runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dsh.stage import DshStage
from tests.run.conftest import clock

__all__ = ["clock"]

#: The only methods that there are.
METHODS = {"initialize", "session/prompt", "shutdown"}


@pytest.fixture
def dsh_stage(tmp_path: Path) -> Iterator[DshStage]:
    """Makes providers over the scripted runtime; afterwards every frame that it got is judged."""
    made = DshStage(tmp_path)
    yield made
    for frame in made.received():
        assert frame["jsonrpc"] == "2.0"
        assert frame.get("method") in METHODS or set(frame) == {"jsonrpc", "id", "error"}
