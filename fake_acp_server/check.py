"""``fake-acp-server check -- CLIENT ...``: runs a client through many scenarios in strict mode and prints a
table.

The client's command gets the fake's command at its end, or where ``{agent}`` stands: alone as separate
arguments, inside a longer argument as one shell-quoted text. ``{agent-file}`` is the path of an executable
that needs no arguments.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

from fake_acp_server.wire import IS_WINDOWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Scenarios that end by themselves whatever a client does, so that only its own conduct is judged.
CONFORMANCE = (
    "demo", "echo", "rich", "stream", "flood", "conversation", "files", "terminal", "elicit", "options",
    "end-completed", "end-max-tokens", "end-max-turn-requests", "end-refusal",
    "end-cancelled", "end-empty", "end-error",
    "wire-long-lines", "wire-text-noise", "wire-stderr-flood", "wire-early-updates", "wire-early-requests",
    "wire-unoffered-calls", "wire-unknown-methods", "wire-string-ids", "wire-uuid-ids", "wire-extra-fields",
    "wire-bare-initialize", "wire-tools-out-of-order", "wire-permission-options", "wire-mixed-messages",
    "wire-ansi", "wire-json-noise", "wire-bad-utf8", "wire-split-frames", "wire-crlf", "wire-nulls",
    "wire-unknown-variants", "wire-foreign-answer",
    "turn-permission", "turn-reject-ends", "turn-two-permissions", "turn-model-error", "process-goes-on",
)  # fmt: skip

#: How long a fake that its client left may take to finish its report.
REPORT_SECONDS = 1.0

AGENT, AGENT_FILE = "{agent}", "{agent-file}"


def run(client: list[str], scenarios: list[str], timeout_seconds: float) -> int:
    """Run the client once for each scenario and print how it did; 0 when it kept the rules in all of them,
    else 1.
    """
    width = max(map(len, scenarios))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="fake-acp-check-") as folder:
        for name in scenarios:
            verdict = check_one(client, name, folder, timeout_seconds)
            failed += verdict != "ok"
            sys.stdout.write(f"{name:{width}}  {verdict}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(scenarios) - failed} of {len(scenarios)} scenarios without a violation\n")
    return 1 if failed else 0


def check_one(client: list[str], name: str, folder: str, timeout_seconds: float) -> str:
    """``ok``, or in a few words what the client did wrong in one scenario."""
    report = os.path.join(folder, f"{name}.json")
    agent = [
        sys.executable,
        os.path.dirname(os.path.abspath(__file__)),
        "--scenario",
        name,
        "--report",
        report,
    ]
    command = client_command(client, agent, os.path.join(folder, name))
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=not IS_WINDOWS,
        )
    except OSError as problem:
        return f"the client cannot be started: {problem.strerror}"
    try:
        code = process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        return f"timeout: the client was still running after {timeout_seconds:g} s; {judged(report)}"
    finally:
        _end(process)
    verdict = judged(report, REPORT_SECONDS)
    return verdict if code >= 0 else f"the client died by signal {-code}; {verdict}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a client that is still there, and what it started in its group: a shell's commands, the agent."""
    if process.poll() is not None:
        return
    if IS_WINDOWS:
        process.kill()
    else:
        import signal

        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def judged(report: str, wait_seconds: float = 0) -> str:
    """What a report says, in a few words. ``wait_seconds``: how long an unfinished one is waited for."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            with open(report, encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
        except (OSError, ValueError):
            return "the client never started the agent"
        if found["complete"] or time.monotonic() >= deadline:
            break
        time.sleep(0.01)
    rules = dict.fromkeys(violation["rule"] for violation in found["violations"])
    if rules:
        return f"broken: {', '.join(rules)}"
    return "ok" if found["frames"]["client"] else "the client sent nothing"


def client_command(client: list[str], agent: list[str], file: str) -> list[str]:
    """The client's argv with the agent's in the place that was meant for it."""
    as_text = subprocess.list2cmdline(agent) if IS_WINDOWS else shlex.join(agent)
    if AGENT_FILE in " ".join(client):
        file += ".cmd" if IS_WINDOWS else ""
        with open(file, "w", encoding="utf-8") as script:
            script.write(f"@{as_text} %*\n" if IS_WINDOWS else f'#!/bin/sh\nexec {as_text} "$@"\n')
        os.chmod(file, 0o700)
    elif AGENT not in " ".join(client):
        client = [*client, AGENT]
    argv: list[str] = []
    for argument in client:
        if argument == AGENT:
            argv += agent
        else:
            argv.append(argument.replace(AGENT, as_text).replace(AGENT_FILE, file))
    return argv
