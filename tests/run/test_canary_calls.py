"""No secret gets out by a wrong call of the host, nor on the command line's stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import trio

from acp_subagent import (
    AcpConfig,
    ConfigurationError,
    Deadlines,
    Parent,
    SessionRef,
    SubagentError,
    SubagentRequest,
    SubagentStartError,
    TextBlock,
    open_subagents,
)
from acp_subagent.acp import schema
from tests.run.canaries import leaks, poisoned, secret, texts_of_exception, texts_of_objects
from tests.run.rows import START_ROWS, Row, line
from tests.run.stage import REPOSITORY, Stage
from tests.run.turn_rows import TURN_ROWS

SECRET = secret("value")


class Odd:
    """A value of a type that nothing takes, whose every text is a secret."""

    def __repr__(self) -> str:
        return SECRET

    def __fspath__(self) -> str:
        raise ValueError(SECRET)


@pytest.mark.parametrize("value", [SECRET, {SECRET: SECRET}, [SECRET, 5], SECRET.encode(), Odd(), -1, None])
@pytest.mark.parametrize("name", [*AcpConfig.model_fields, SECRET])
def test_a_configuration_that_is_refused_repeats_no_value(name: str, value: object) -> None:
    settings: dict[str, Any] = {"name": "a", "command": SECRET, "args": [SECRET], "env": {SECRET: SECRET}}
    try:
        config = AcpConfig(**{**settings, name: value})
        config.check()
    except SubagentError as error:
        texts = [*texts_of_exception(error)]
    else:
        # A name of the host's own choice, and the names of variables, may be shown.
        texts = [] if name in {"name", "pass_env"} else [*texts_of_objects(config)]
    assert [text for text in texts if leaks(text)] == []


@pytest.mark.parametrize("name", [*AcpConfig.model_fields, "no_such_field"])
def test_a_configuration_that_is_changed_repeats_no_value(name: str) -> None:
    config = AcpConfig(name="a", command="b")
    with pytest.raises(ConfigurationError, match="frozen") as caught:
        setattr(config, name, SECRET)
    assert [text for text in texts_of_exception(caught.value) if leaks(text)] == []
    assert (config.name, config.command) == ("a", "b")


@pytest.mark.parametrize(
    "call",
    [
        lambda: SubagentRequest(prompt={SECRET: SECRET}),  # type: ignore[dict-item]  # wrong on purpose
        lambda: SubagentRequest(prompt=[SECRET]),  # type: ignore[list-item]  # wrong on purpose
        lambda: SubagentRequest(prompt="x", parent=SECRET),  # type: ignore[arg-type]  # wrong on purpose
        lambda: SubagentRequest(prompt="x", abort=SECRET),  # type: ignore[arg-type]  # wrong on purpose
        lambda: SubagentRequest(prompt="x", session=SECRET),  # type: ignore[arg-type]  # wrong on purpose
        lambda: SubagentRequest(prompt="x", deadlines=SECRET),  # type: ignore[arg-type]  # wrong on purpose
        lambda: Parent(depth=SECRET),  # type: ignore[arg-type]  # wrong on purpose
        lambda: Deadlines(turn_seconds=SECRET),  # type: ignore[arg-type]  # wrong on purpose
        lambda: SessionRef.from_json({"provider": SECRET, "cwd": SECRET, "token": [SECRET]}),
    ],
)
def test_a_request_that_is_refused_repeats_no_value(call: Callable[[], object]) -> None:
    with pytest.raises(SubagentError) as caught:
        call()
    assert [text for text in texts_of_exception(caught.value) if leaks(text)] == []


def test_a_request_shows_nothing_of_what_it_carries() -> None:
    request = SubagentRequest(
        prompt=[TextBlock(SECRET)],
        parent=Parent(cwd=SECRET, session_id=SECRET),
        label=SECRET,
        session=SessionRef("agent", SECRET, SECRET),
        output_schema={SECRET: SECRET},
        tool_filter=SECRET,
        persona=SECRET,
        agent_options={SECRET: SECRET},
    )
    assert [text for text in texts_of_objects(request) if leaks(text)] == []


async def test_a_start_that_is_refused_repeats_no_value(stage: Stage) -> None:
    foreign = SessionRef(SECRET, SECRET, SECRET)
    wrong: list[tuple[str, dict[str, Any]]] = [
        (SECRET, {}),
        ("fake", {"persona": SECRET}),
        ("fake", {"agent_options": {SECRET: SECRET}}),
        ("fake", {"output_schema": {"type": SECRET}}),
        ("fake", {"max_depth": SECRET}),
        ("fake", {"session": foreign}),
    ]
    async with open_subagents() as subagents:
        subagents.register(stage.provider({}))
        for name, fields in wrong:
            with pytest.raises(SubagentError) as caught:
                await subagents.start(name, stage.request(SECRET, **fields))
            assert [text for text in texts_of_exception(caught.value) if leaks(text)] == []


async def test_what_the_system_says_of_a_spawn_is_for_the_host_alone(stage: Stage) -> None:
    command = stage.folder / SECRET
    command.write_bytes(b"\x7fELF and nothing more")
    command.chmod(0o700)
    async with stage.service({}, command=str(command)) as subagents:
        with pytest.raises(SubagentStartError) as caught:
            await subagents.start("fake", stage.request())
    assert [text for text in texts_of_exception(caught.value) if leaks(text)] == []
    assert leaks(caught.value.failure.cause)


@pytest.mark.parametrize(
    "model", [schema.InitializeResult, schema.NewSessionResult, schema.SessionResult, schema.PromptResult]
)
def test_an_answer_that_cannot_be_read_raises_nothing(model: type[schema.WireModel]) -> None:
    for value in (SECRET, [SECRET], {name: {SECRET: SECRET} for name in model.model_fields}):
        read = schema.read(model, value)
        assert read is None or not leaks(repr(read)) or model is schema.SessionResult
    # Not even pydantic's own words would quote it.
    with pytest.raises(ValueError, match="validation error") as caught:
        model.model_validate(SECRET)
    assert not leaks("".join(traceback.format_exception(caught.value)))


#: more than the command line takes for one frame, and nothing but secrets
HUGE_FRAME = {"raw": {"text": secret("frame") * 1000, "repeat": 3000}}

#: one row of each kind that the command line tells apart
COMMAND_LINE_ROWS = [
    *(
        next(row for row in rows if row.name == name)
        for rows, name in (
            (START_ROWS, "the process exits before initialize is answered"),
            (START_ROWS, "stdout ends and the process stays"),
            (START_ROWS, "an error of a code that is not in the list"),
            (START_ROWS, "another protocol version"),
            (START_ROWS, "noise and nothing else"),
            (START_ROWS, "a session id that is no string"),
            (TURN_ROWS, "end_turn"),
            (TURN_ROWS, "a JSON-RPC error"),
            (TURN_ROWS, "a stop reason that is not known"),
            (TURN_ROWS, "the process exits"),
        )
    ),
    Row(
        "a frame beyond the limit before the session is open",
        {"session_new": {"before_answer": [HUGE_FRAME, {"sleep": 20}]}},
        line("stage: new-session; category: protocol; reason: frame-too-large"),
    ),
    Row(
        "a frame beyond the limit",
        {"turns": [[HUGE_FRAME, {"sleep": 20}]]},
        line("stage: prompt; category: protocol; reason: frame-too-large"),
    ),
]


def command_line(
    stage: Stage,
    *options: str,
    scenario: dict[str, Any],
    debug: bool = False,
    agent: tuple[str, ...] | None = None,
) -> Any:
    """Run the real command line with a secret in everything it is given."""
    script, cwd = stage.folder / "scenario.json", stage.folder / secret("cwd")
    script.write_text(json.dumps(scenario))
    cwd.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "ACP_SUBAGENT_DEBUG": "1" if debug else "0"}
    variables = ["--env", f"PYTHONPATH={REPOSITORY}", "--env", f"SOME_VARIABLE={secret('env')}"]
    fake = (sys.executable, "-m", "fake_acp_server", "--scenario", str(script), secret("argv"))
    run = [sys.executable, "-m", "acp_subagent", "run", "--cwd", str(cwd), *variables, *options]
    return subprocess.run(
        [*run, secret("prompt"), "--", *(agent or fake)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("row", COMMAND_LINE_ROWS, ids=lambda row: row.name)
def test_the_command_lines_stderr_keeps_every_secret(row: Row, stage: Stage) -> None:
    ended = command_line(stage, scenario=poisoned(row.scenario), debug=True)
    assert not leaks(ended.stderr), ended.stderr
    assert leaks(ended.stdout) <= {"answer"}
    for expected in (row.expected or "").splitlines()[:1]:
        assert expected in ended.stderr


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((secret("command-path"),), "command-not-found"),
        ((f"/{secret('command-path')}", secret("argv")), "command-not-found"),
        (("/dev/null", secret("argv")), "not-executable"),
    ],
)
def test_the_command_lines_stderr_keeps_a_command_that_cannot_be_started(
    command: tuple[str, ...], reason: str, stage: Stage
) -> None:
    for debug, *options in ((True,), (False, "--show-failure")):
        ended = command_line(stage, *options, scenario={}, agent=command, debug=bool(debug))
        assert ended.returncode == 2
        assert line(f"stage: process; category: process-start; reason: {reason}") in ended.stderr
        assert not leaks(ended.stderr + ended.stdout), ended.stderr


def test_the_local_detail_of_a_failure_is_shown_when_it_is_asked_for(stage: Stage) -> None:
    scenario = poisoned({"turns": [[{"error": {"code": -32603, "message": ""}}]]})
    ended = command_line(stage, "--show-failure", scenario=scenario)
    assert {"rpc-message", "rpc-data-nested", "stderr", "noise"} <= leaks(ended.stderr)
    ended = command_line(stage, "--format", "json", scenario=scenario)
    assert not leaks(ended.stderr)
    assert not leaks(json.loads(ended.stdout)["failure"])


@pytest.mark.parametrize(
    "arguments",
    [
        *([option, SECRET] for option in ("--env", "--cwd", "--permission", "--format", "--turn-timeout")),
        ["--startup-timeout", SECRET],
        [f"--{SECRET}"],
        [f"-{SECRET}"],
        [f"--show-failure={SECRET}"],
        [f"--nonsense={SECRET}"],
        [SECRET],
    ],
)
def test_a_wrong_argument_repeats_no_secret(arguments: list[str], stage: Stage) -> None:
    ended = command_line(stage, *arguments, scenario={})
    assert ended.returncode == 2
    assert not leaks(ended.stderr + ended.stdout), ended.stderr


def test_a_prompt_without_its_command_is_not_repeated() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "acp_subagent", SECRET],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 2
    assert not leaks(ended.stderr + ended.stdout), ended.stderr


def test_these_tests_would_find_a_secret() -> None:
    error = SubagentError(f"it holds {SECRET}")
    error.add_note(SECRET)
    assert [leaks(text) for text in texts_of_exception(error)][:4] == [{"value"}] * 3 + [{"value"}]
    assert leaks(next(texts_of_objects([{"deep": error}]))) == {"value"}


async def test_a_resume_that_is_refused_repeats_no_value(stage: Stage) -> None:
    with trio.fail_after(30):
        async with open_subagents() as subagents:
            subagents.register(stage.provider({"turns": [[{"wait_cancel": True}]]}))
            async with await subagents.start("fake", stage.request(SECRET)) as run:
                for prompt in (SECRET, [SECRET], {SECRET: SECRET}):
                    with pytest.raises(SubagentError) as caught:
                        await run.resume(prompt)  # type: ignore[attr-defined]  # an ACP run has it
                    assert [text for text in texts_of_exception(caught.value) if leaks(text)] == []
