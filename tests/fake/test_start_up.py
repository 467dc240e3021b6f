"""The fake starts quickly and alone: what makes it cheap to use in every test of a client."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from tests.fake.driver import REPOSITORY, fake_command

#: The promise: how much more a start with its first answer may cost than a bare start of Python.
ALLOWED_SECONDS = 0.060

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'


def processor_seconds(*command: str) -> float:
    """What one run of a command that is given an ``initialize`` and no more costs the processor."""
    process = subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin
    assert process.stdout
    with process.stdin, process.stdout:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(INITIALIZE)
        process.stdin.close()
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_the_first_answer_costs_at_most_60_ms_more_than_a_bare_start() -> None:
    # Processor time, the best of several: a start waits for nothing, and what else the machine does is not
    # measured.
    processor_seconds(*fake_command())
    bare, fake = [], []
    for _ in range(20):
        bare.append(processor_seconds(sys.executable, "-c", "pass"))
        fake.append(processor_seconds(*fake_command("--scenario", "demo")))
        if min(fake) - min(bare) < ALLOWED_SECONDS:
            return
    raise AssertionError(f"bare {min(bare):.3f} s, with the first answer {min(fake):.3f} s")


def test_a_conversation_loads_nothing_but_the_standard_library() -> None:
    lines = b"".join(
        [
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n',
            b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n',
        ]
    )
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *fake_command("--scenario", "demo")[1:]],
        input=lines,
        capture_output=True,
        cwd=REPOSITORY,
        check=True,
        timeout=60,
    )
    names = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    loaded = {name.partition(".")[0] for name in names}
    assert not loaded & {
        "trio",
        "acp_subagent",
        "pydantic",
        "psutil",
        "asyncio",
        "argparse",
        "dataclasses",
        "typing",
    }
    assert done.stdout.count(b"\n") == 2


def test_the_command_line_answers_list_help_and_version() -> None:
    for option, expected in (
        ("--list", "demo"),
        ("--help", "usage:"),
        ("--version", "fake-acp-server 0.1.0"),
    ):
        done = subprocess.run(
            fake_command(option), capture_output=True, text=True, cwd=REPOSITORY, check=True, timeout=60
        )
        assert expected in done.stdout


def test_a_command_line_that_makes_no_sense_is_a_usage_error() -> None:
    for arguments in (["--scenario"], ["--scenario", "no-such-scenario"], ["--json", "{"]):
        done = subprocess.run(
            fake_command(*arguments), capture_output=True, text=True, cwd=REPOSITORY, check=False, timeout=60
        )
        assert done.returncode == 2
        assert done.stderr.startswith("fake-acp-server: ")
