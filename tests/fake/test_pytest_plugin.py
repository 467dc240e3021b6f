"""The pytest plugin, used as a user of it would: in plain, asyncio and trio tests."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest
import trio

from fake_acp_server.pytest_plugin import FakeAgent, fake_acp_agent
from tests.fake.driver import REPOSITORY, Fake
from tests.fake.visitor import Visit, leave

Make = Callable[..., FakeAgent]

__all__ = ["fake_acp_agent"]  # the fixture, found here also where the entry point is not installed


def test_the_argv_starts_the_scenario_and_the_frames_can_be_read(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent("echo")
    assert agent.frames() == []
    assert not agent.ready()
    with Fake(agent.argv) as client:
        assert Visit(client).run() == "prompt: end_turn"
        agent.wait()
        assert leave(client) == 0
    assert agent.methods() == ["initialize", "session/new", "session/prompt"]
    assert agent.methods("agent") == ["session/update"]
    assert len(agent.frames()) == 7
    assert agent.report()["complete"]
    assert agent.violations() == []


def test_the_environment_says_the_same_as_the_arguments(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent({"turns": [[{"stop": "refusal"}]]})
    with Fake(agent.command, environment=agent.environment) as client:
        assert Visit(client).run() == "prompt: refusal"
        leave(client)
    assert agent.violations() == []


def test_violations_are_told(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent()
    assert agent.violations() == []
    with Fake(agent.argv) as client:
        client.call("session/new", {"cwd": "/", "mcpServers": []})
        assert [violation["rule"] for violation in agent.violations()] == ["initialize-first"]


def test_nonsense_of_a_client_or_an_agent_is_told_too(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent({"initialize": {"before_answer": [{"frame": ["agent"]}]}})
    with Fake(agent.argv) as client:
        client.write(b'["client"]\n{"id": {}, "method": ["session/new"]}\nno JSON\n')
        client.read()
        client.send({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        agent.wait(lambda: ["agent"] in agent.frames("agent"))
        assert ["client"] in agent.frames("client")
        assert not agent.ready()
        leave(client)
    assert [violation["rule"] for violation in agent.violations()] == ["frame"] * 3


def test_a_report_is_never_seen_half_written(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent("echo")
    with Fake(agent.argv) as client:
        client.call("initialize", {"protocolVersion": 1})
        for number in range(200):
            client.send({"id": number + 10, "method": f"vendor/{number}"})
        agent.wait(lambda: len(agent.violations()) == 200)  # each look reads the report anew
        leave(client)
    assert [path.name for path in agent._report.parent.iterdir() if path.name.startswith("report")] == [
        "report.json"
    ]


def test_a_wait_has_an_end(fake_acp_agent: Make) -> None:
    with pytest.raises(TimeoutError):
        fake_acp_agent().wait(timeout_seconds=0.02)


async def test_a_trio_test_waits_with_trio(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent("echo")
    with Fake(agent.argv) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.wait_async)
            await trio.to_thread.run_sync(client.open_session)
    with pytest.raises(TimeoutError):
        await agent.wait_async(lambda: False, timeout_seconds=0.02)


def test_an_asyncio_test_waits_with_asyncio(fake_acp_agent: Make) -> None:
    agent = fake_acp_agent("echo")

    async def converse(client: Fake) -> None:
        waiting = asyncio.create_task(agent.wait_async())
        await asyncio.to_thread(client.open_session)
        await waiting

    with Fake(agent.argv) as client:
        asyncio.run(converse(client))


def test_loading_the_plugin_imports_pytest_and_nothing_else() -> None:
    code = "import pytest, sys; before = set(sys.modules); import fake_acp_server.pytest_plugin; "
    code += "print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.strip() == "['fake_acp_server', 'fake_acp_server.pytest_plugin']"
