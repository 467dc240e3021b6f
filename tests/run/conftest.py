"""Fixtures of the tests that run real children through the public API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run.stage import Stage
from tests.support.npm_packages import schema_path
from tests.support.wire_schema import AGENT, CLIENT, FrameChecker, load_schema


@pytest.fixture(scope="session")
def acp_schema() -> dict[str, Any]:
    """The official JSON Schema of ACP v1."""
    return load_schema(schema_path())


@pytest.fixture
def stage(tmp_path: Path, acp_schema: dict[str, Any]) -> Iterator[Stage]:
    """Makes providers over the fake; afterwards every frame is judged by the schema.

    Of an agent that breaks the protocol on purpose nothing is judged, and of ours what is no answer to it.
    """
    made = Stage(tmp_path)
    yield made
    for log, faulty in made.logs:
        judge(log, acp_schema, faulty=faulty)


def judge(log: Path, schema: dict[str, Any], *, faulty: bool) -> None:
    """Check the conversations that the fakes of one provider wrote down, one after the other."""
    checker = FrameChecker(schema)
    for line in log.read_text().splitlines() if log.exists() else ():
        entry = json.loads(line)
        sender, frame = entry["from"], entry.get("frame")
        assert sender != CLIENT or frame is not None, "we sent something that is no frame"
        if sender == CLIENT and frame.get("method") == "initialize":
            checker = FrameChecker(schema)  # another child
        if not faulty and frame is not None:
            checker.check(sender, frame)
        elif sender != AGENT and "method" in frame:
            checker.check(CLIENT, frame)
