"""The clients of the official SDKs have a whole conversation with the fake, which judges every frame of
theirs.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fake.driver import REPOSITORY, fake_command
from tests.support import agent_packages
from tests.support.npm_packages import node_command, package_folder
from tests.support.wire_schema import FrameChecker

HERE = Path(__file__).resolve().parent


def python_client() -> list[str]:
    """The command of the client on the Python SDK."""
    return [agent_packages.python_sdk_agent()[0], str(HERE / "python_sdk_client.py")]


def typescript_client() -> list[str]:
    """The command of the client on the TypeScript SDK."""
    sdk = package_folder(agent_packages.TYPESCRIPT_SDK)
    return [*node_command(), str(HERE / "typescript_sdk_client.mjs"), str(sdk)]


@pytest.mark.parametrize("client", [python_client, typescript_client])
def test_an_official_client_keeps_the_rules_through_a_whole_conversation(
    client: Any, tmp_path: Path, acp_schema: dict[str, Any]
) -> None:
    report, log = tmp_path / "report", tmp_path / "log"
    agent = fake_command("--scenario", "tour", "--report", str(report), "--log", str(log))
    done = subprocess.run(
        [*client(), *agent], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["end_turn", "cancelled"]
    judged = json.loads(report.read_text())
    assert judged["violations"] == []
    assert judged["complete"]
    checker = FrameChecker(acp_schema)
    methods = set()
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        methods.add(entry["frame"].get("method"))
        checker.check(entry["from"], entry["frame"])
    assert {"session/cancel", "session/load", "terminal/release", "fs/write_text_file"} <= methods
