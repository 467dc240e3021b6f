"""Fixtures for the process room: a stage, and the proof after each test that nothing is left on it."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from acp_subagent.process.host import ProcessHost
from tests.conftest import reap_inherited
from tests.process.stage import Stage, open_descriptors, our_children


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """A stage without a watchdog; afterwards no child, no descriptor, nothing with the cookie may be left."""
    children, descriptors = our_children(), len(open_descriptors())
    service_id = secrets.token_hex(4)
    with tempfile.TemporaryDirectory() as directory:  # short: a socket's path has room for 107 bytes
        async with trio.open_nursery() as nursery:
            stage = Stage(ProcessHost(service_id, watchdog=False), service_id, nursery, Path(directory))
            await stage.roll.open()
            try:
                yield stage
            finally:
                with trio.CancelScope(shield=True):
                    hurry = trio.Event()
                    hurry.set()
                    for child in stage.children:
                        await child.end_tree(hurried=hurry.is_set)
                        child.stdout.close()
                    await stage.host.aclose()
                    left = stage.carriers()
                    stage.roll.close()
    assert left == [], "processes with the service's cookie live on"
    reap_inherited(children)
    assert our_children() == children
    assert len(open_descriptors()) == descriptors
