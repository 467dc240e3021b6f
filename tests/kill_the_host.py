"""A demonstration: a host is killed with SIGKILL in mid-run, and everything that its agents started dies.

`python -m tests.kill_the_host` starts a host with three runs whose agents have started children that hide
(a daemon, a session of its own, one that ignores SIGTERM), kills it, and watches by the kernel who still
lives.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import trio

from acp_subagent import AcpConfig, AcpProvider, Parent, SubagentRequest, open_subagents
from tests.matrix.life import LifeSocket

REPOSITORY = Path(__file__).resolve().parents[1]
RUNS = 3
CHILDREN = ({"kind": "double-fork"}, {"kind": "setsid", "ignore_term": True}, {"kind": "launcher-exits"})
BOUND_SECONDS = 60.0


async def host(folder: str) -> None:
    """The program that is going to be killed."""
    socket = str(Path(folder) / "life")
    steps = [{"child": {**child, "connect": socket}} for child in CHILDREN]
    scenario = {"life_socket": socket, "turns": [[*steps, {"wait_cancel": True}]]}
    config = AcpConfig(
        name="fake",
        command=sys.executable,
        args=["-m", "fake_acp_server", "--json", json.dumps(scenario)],
        env={"PYTHONPATH": str(REPOSITORY)},
    )
    async with open_subagents() as subagents:
        subagents.register(AcpProvider(config))
        request = SubagentRequest(prompt="go", parent=Parent(cwd=folder))
        for _ in range(RUNS):
            await subagents.start("fake", request)
        await trio.sleep(BOUND_SECONDS)


async def demonstrate() -> int:
    """Start the host, kill it, and say what became of its processes; 1 when some live on."""
    expected = RUNS * (1 + len(CHILDREN))
    with tempfile.TemporaryDirectory() as folder:
        life = LifeSocket(Path(folder))
        async with trio.open_nursery() as nursery:
            await nursery.start(life.serve)
            command = [sys.executable, "-m", "tests.kill_the_host", folder]
            process = await trio.lowlevel.open_process(command, cwd=REPOSITORY)
            with trio.fail_after(BOUND_SECONDS):
                await life.met_all(expected)
            print(f"{RUNS} agents and {expected - RUNS} children of theirs live; killing their host")
            os.kill(process.pid, signal.SIGKILL)
            killed_at = trio.current_time()
            await process.wait()
            with trio.move_on_after(BOUND_SECONDS):
                await life.all_dead()
            print(f"{trio.current_time() - killed_at:.2f} s later {life.alive} of them live")
            nursery.cancel_scope.cancel()
    return 1 if life.alive else 0


if __name__ == "__main__":
    if sys.argv[1:]:
        trio.run(host, sys.argv[1])
    else:
        sys.exit(trio.run(demonstrate))
