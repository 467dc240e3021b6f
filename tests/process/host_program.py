"""A host that is about to be killed: spawns children through the room under test, says so, and waits.

Run as `python host_program.py SERVICE_ID SOCKET OPTIONS`, where OPTIONS is a JSON object: `children` (a list
of step lists for actors), and what else to do: `fork_worker`, `close_in_order`, `die_at_once`, and `become`
(a command, when a line comes on stdin).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import trio

from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec

ACTOR = Path(__file__).with_name("actor.py")


def fork_worker() -> int:
    worker = os.fork()
    if worker == 0:
        time.sleep(30)
        os._exit(0)
    return worker


def become(command: list[str]) -> None:
    os.execv(command[0], command)


async def main() -> None:
    service_id, roll, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    host = ProcessHost(service_id, watchdog=True)
    async with trio.open_nursery() as nursery:
        children = []
        for steps in options["children"]:
            spec = LaunchSpec(
                command=sys.executable,
                args=("-I", "-S", str(ACTOR), roll, json.dumps(steps)),
                cwd="/",
                environment={},
                eof_grace_seconds=5,
                term_grace_seconds=5,
                kill_grace_seconds=5,
                exit_observation_seconds=1,
                stderr_tail_bytes=1000,
            )
            children.append(await host.spawn(spec, nursery))
            if options.get("die_at_once"):
                os.kill(os.getpid(), 9)
        if options.get("fork_worker"):
            # A worker that holds all descriptors of the host, as multiprocessing makes them.
            os.write(1, f"worker {fork_worker()}\n".encode())
        assert host.watchdog_pid is not None
        os.write(1, f"watchdog {host.watchdog_pid}\n".encode())
        os.write(1, b"ready\n")
        if options.get("close_in_order"):
            for child in children:
                await child.end_tree()
                child.stdout.close()
            await host.aclose()
            return
        if options.get("become"):
            await trio.to_thread.run_sync(sys.stdin.readline)
            become(options["become"])
        await trio.sleep(30)


if __name__ == "__main__":
    trio.run(main)
