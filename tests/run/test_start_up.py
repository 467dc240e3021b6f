"""What is not loaded yet when an agent is started: its start is the time to load what reads its answers."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.run.stage import REPOSITORY

#: imported while the agent starts or later: what only reads, folds, judges or tells
LATE = {
    "acp_subagent.acp.classify",
    "acp_subagent.acp.client",
    "acp_subagent.acp.failure_table",
    "acp_subagent.acp.handshake",
    "acp_subagent.acp.schema",
    "acp_subagent.acp.session_state",
    "acp_subagent.acp.tool_calls",
    "acp_subagent.acp.turn_record",
    "acp_subagent.acp.updates",
    "acp_subagent.seam.events",
    "acp_subagent.seam.lifecycle",
    "acp_subagent.supervised.output",
    "acp_subagent.supervised.tool_calls",
    "acp_subagent.supervised.verdicts",
}

#: not imported at all for a plain run
NEVER = {
    "acp_subagent.acp.errands",
    "acp_subagent.cli",
    "acp_subagent.delegate",
    "acp_subagent.dsh",
    "asyncio",
    "psutil",
}

#: one run; says what was loaded when a request was about to be sent, and at the end
PROGRAM = """
import sys
import trio
from acp_subagent import AcpConfig, AcpProvider, Parent, SubagentRequest, open_subagents
from acp_subagent.wire.connection import Connection

send_request = Connection.send_request

def send(connection, method, *rest):
    print(method, *sys.modules)
    return send_request(connection, method, *rest)

Connection.send_request = send

async def main():
    async with open_subagents() as subagents:
        agent = AcpConfig(name="fake", command=sys.executable, args=["-m", "fake_acp_server"])
        subagents.register(AcpProvider(agent))
        result = await subagents.run("fake", SubagentRequest(prompt="hello", parent=Parent(cwd=sys.argv[1])))
    print(result.stop_reason, *sys.modules)

trio.run(main)
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The modules that were loaded, by the request that was about to be sent; at the end, `completed`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(REPOSITORY)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {moment: set(modules) for moment, *modules in map(str.split, done.stdout.splitlines())}


def test_what_reads_and_judges_is_not_loaded_before_the_first_byte(loaded: dict[str, set[str]]) -> None:
    assert LATE & loaded["initialize"] == set()


def test_what_reads_is_loaded_when_the_agent_has_answered(loaded: dict[str, set[str]]) -> None:
    assert {f"acp_subagent.acp.{name}" for name in ("client", "handshake", "updates")} <= loaded[
        "session/new"
    ]


def test_a_run_needs_all_of_it_in_the_end(loaded: dict[str, set[str]]) -> None:
    assert loaded["completed"] >= LATE


def test_a_plain_run_loads_nothing_that_it_has_no_use_for(loaded: dict[str, set[str]]) -> None:
    assert all(find_spec(name) for name in NEVER)
    assert NEVER & loaded["completed"] == set()
