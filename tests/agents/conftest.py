"""The agents, brought from the registries when needed, and a folder for each test to let one work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.launch import Launch
from tests.agents.scenes import AGENTS, Dsh, RealAgent
from tests.support import agent_packages


@pytest.fixture(scope="session", params=AGENTS)
def agent(request: pytest.FixtureRequest) -> RealAgent:
    """Each of the agents in turn; a download that fails is a failure of its tests."""
    name: str = request.param
    agent_packages.AGENTS[name]()
    return AGENTS[name]


@pytest.fixture(scope="session")
def dsh() -> Dsh:
    """The agent whose model the tests play."""
    agent_packages.dsh()
    return Dsh()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """The test's folder; its path has a space."""
    return Launch(tmp_path / "work space")
