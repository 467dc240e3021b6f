"""Every row of the failure table that one run can meet, each provoked with a real child."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from acp_subagent import ConfigurationError, DshConfig, DshProvider, Failure, Parent, SubagentStartError
from acp_subagent.supervised.advice import SHARED_ADVICE
from tests.dsh.rows import START_ROWS, TURN_ROWS, Row, line
from tests.dsh.stage import DshStage


@pytest.mark.parametrize("row", START_ROWS, ids=lambda row: row.name)
async def test_a_failed_start_says_why(row: Row, dsh_stage: DshStage) -> None:
    async with dsh_stage.service(row.script, **row.settings) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", dsh_stage.request())
    assert str(caught.value) == row.expected
    assert caught.value.teardown is None
    assert [failure.diagnostic for failure in dsh_stage.failures] == [row.expected]
    expect_advice(caught.value.failure)
    assert not caught.value.failure.prompt_dispatched
    assert "session/prompt" not in {frame["method"] for frame in dsh_stage.received()}


@pytest.mark.parametrize("row", TURN_ROWS, ids=lambda row: row.name)
async def test_a_turn_says_how_it_ended(row: Row, dsh_stage: DshStage) -> None:
    async with dsh_stage.service(row.script, **row.settings) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    assert (result.stop_reason, result.diagnostic) == (row.stop_reason, row.expected)
    assert dsh_stage.failures == ([] if result.failure is None else [result.failure])
    assert (result.failure is None) == (row.expected is None)
    if '"text": "x"' in str(row.script).replace("'", '"'):
        assert result.text == "x", "what was said survives every end"
    if result.failure is not None:
        assert result.failure.prompt_dispatched
        assert not result.failure.retryable
        assert "CANARY" not in f"{result!r}{result.failure!r}{result.failure}"
        expect_advice(result.failure)


def expect_advice(failure: Failure) -> None:
    """Every reason comes with its sentence of advice, and nothing else does."""
    assert failure.advice == (None if failure.reason is None else SHARED_ADVICE[failure.reason])
    assert f"reason: {failure.reason}" in failure.diagnostic or failure.reason is None


UNUSABLE: list[tuple[dict[str, Any], str]] = [
    ({"command": ""}, "command-empty"),
    ({"command": "no-such-command-anywhere"}, "command-not-found"),
    ({"command": "/"}, "not-executable"),
    ({"args": ["a\0b"]}, "nul-byte"),
    ({"args": ["x" * 200_000]}, "arguments-too-long"),
]


@pytest.mark.parametrize(("settings", "word"), UNUSABLE)
async def test_a_command_that_cannot_be_started_is_a_matter_of_configuration(
    settings: dict[str, Any], word: str, dsh_stage: DshStage
) -> None:
    async with dsh_stage.service({}, **settings) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.run("fake", dsh_stage.request())
    assert str(caught.value) == line(f"stage: initialize; category: configuration; reason: {word}")
    assert not caught.value.failure.retryable
    expect_advice(caught.value.failure)


@pytest.mark.parametrize(
    ("cwd", "word"),
    [
        (None, "cwd-missing"),
        ("relative", "cwd-relative"),
        ("/no/such/directory", "cwd-not-found"),
        (os.devnull, "cwd-not-directory"),
    ],
)
async def test_a_working_directory_that_cannot_be_used_is_refused_before_the_spawn(
    cwd: str | None, word: str, dsh_stage: DshStage
) -> None:
    async with dsh_stage.service({}, cwd=None) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.run("fake", dsh_stage.request(parent=Parent(cwd=cwd)))
    assert str(caught.value) == line(f"stage: initialize; category: configuration; reason: {word}")
    assert dsh_stage.entries() == []


#: Reads until the prompt has begun and no further, and then asks for something.
DEAF = """
import os, time
print('{"jsonrpc": "2.0", "id": 0, "result": {"serverInfo": {}}}', flush=True)
heard = b""
while b"session/prompt" not in heard:
    heard += os.read(0, 1000)
print('{"jsonrpc": "2.0", "id": 7, "method": "question", "params": {}}', flush=True)
time.sleep(60)
"""


async def test_a_runtime_that_does_not_read_fails_the_run_as_write_blocked(dsh_stage: DshStage) -> None:
    async with dsh_stage.service({}, args=["-c", DEAF], max_unsent_bytes=1000) as subagents:
        result = await subagents.run("fake", dsh_stage.request("x" * 1_000_000))
    assert result.diagnostic == line("stage: session-run; category: transport; reason: write-blocked")


async def test_the_host_finds_the_details_in_the_failure(dsh_stage: DshStage) -> None:
    error = {"code": -32603, "message": "because", "data": [1]}
    script = {"prompt": [{"stderr": "from stderr"}, {"raw": "not json\n"}, {"error": error}]}
    async with dsh_stage.service(script) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    failure = result.failure
    assert failure is not None
    assert failure.rpc_error is not None
    assert (failure.rpc_error.code, failure.rpc_error.message, failure.rpc_error.data) == (
        -32603,
        "because",
        [1],
    )
    assert "from stderr" in failure.stderr_tail
    assert failure.noise == ("not json",)
    assert (failure.stage, failure.category) == ("session-run", "protocol")


async def test_the_word_of_an_unknown_end_is_kept_for_the_host_alone(dsh_stage: DshStage) -> None:
    script = {"prompt": [{"answer": True}, {"end": "paused" * 1000}, {"status": "idle"}]}
    async with dsh_stage.service(script) as subagents:
        result = await subagents.run("fake", dsh_stage.request())
    assert result.failure is not None
    assert result.failure.stop_reason == ("paused" * 1000)[:200]


async def test_a_start_that_failed_before_the_prompt_can_be_tried_again(dsh_stage: DshStage) -> None:
    async with dsh_stage.service({"initialize": [{"exit": 1}]}) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", dsh_stage.request())
    assert caught.value.failure.retryable


async def test_a_working_directory_of_the_provider_is_checked_when_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist") as caught:
        DshProvider(DshConfig(cwd=tmp_path / "gone"))
    assert caught.value.reason == "cwd-not-found"
