"""Fixtures for the tests of the fake: the official schema, and fakes that are ended with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fake.driver import Fake, LifeSocket
from tests.support.npm_packages import schema_path
from tests.support.wire_schema import FrameChecker, load_schema


@pytest.fixture(scope="session")
def acp_schema() -> dict[str, Any]:
    """The official JSON Schema of ACP v1."""
    return load_schema(schema_path())


@pytest.fixture
def checker(acp_schema: dict[str, Any]) -> FrameChecker:
    """A checker for one connection."""
    return FrameChecker(acp_schema)


@pytest.fixture
def start(acp_schema: dict[str, Any]) -> Iterator[Callable[..., Fake]]:
    """Starts fakes whose frames are judged; ends them with the test."""
    with ExitStack() as stack:

        def start_one(scenario: dict[str, Any] | str, **options: Any) -> Fake:
            return stack.enter_context(Fake(scenario, FrameChecker(acp_schema), **options))

        yield start_one


@pytest.fixture
def start_faulty() -> Iterator[Callable[..., Fake]]:
    """Starts fakes whose frames are not judged, for scenarios that break the protocol."""
    with ExitStack() as stack:

        def start_one(scenario: dict[str, Any] | str, **options: Any) -> Fake:
            return stack.enter_context(Fake(scenario, **options))

        yield start_one


@pytest.fixture
def life(tmp_path: Path) -> Iterator[LifeSocket]:
    """A socket that proves life and death."""
    with LifeSocket(tmp_path) as socket:
        yield socket
