"""No secret of any channel gets where it does not belong, however a run fails; and each is where it does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trio

from acp_subagent import (
    ConfigurationError,
    DshConfig,
    DshProvider,
    SubagentError,
    SubagentResult,
    SubagentStartError,
    SubagentTeardownError,
    open_subagents,
)
from acp_subagent.dsh.conversation import DshConversation
from acp_subagent.process import child, tree
from tests.dsh.fake_runtime import DEFAULTS
from tests.dsh.rows import ERROR, START_ROWS, TURN_ROWS, Row, turn
from tests.dsh.stage import DshStage
from tests.run.canaries import FAULT, leaks, secret
from tests.run.watching import Watch, conduct, first_line, watching

PIECE = {"type": "text-delta", "text": secret("piece")}

CALL = {"callId": secret("call-id"), "name": secret("tool-name"), "arguments": secret("raw-input")}
CALL_RESULT = {"toolCallId": secret("call-id"), "content": [secret("tool-output")], "isError": True}


def said(message: dict[str, Any]) -> dict[str, Any]:
    """A step: the agent says this message."""
    return {"event": {"type": "assistant/message", "data": {"message": message}}}


#: a runtime that says a secret wherever it can say anything
TALK: list[dict[str, Any]] = [
    {"stderr": secret("stderr")},
    {"raw": secret("noise") + "\n"},
    {"raw": json.dumps({secret("noise-json"): secret("noise-json")}) + "\n"},
    {"text": secret("answer")},
    said({"content": [{"type": "reasoning", "text": secret("thought")}]}),
    {"event": {"type": "assistant/chunk", "data": {"chunk": PIECE}}},
    {"event": {"type": "tool/call", "data": CALL}},
    {"event": {"type": "tool/result", "data": {"message": {"content": [CALL_RESULT]}}}},
    {"event": {"type": secret("event-kind"), secret("event-key"): secret("event-value")}},
    {"event": [secret("child-session"), {"type": "turn/end", "data": {"reason": secret("child-end")}}]},
    {"event": {"type": "turn/end", "data": {"reason": {"kind": secret("kind"), "reason": secret("cause")}}}},
    {"status": secret("status")},
    {"notify": [secret("notification"), {"x": secret("notification")}]},
    {"request": [secret("method"), {"x": secret("method")}]},
]


def poisoned(part: Any) -> Any:
    """The script with a secret in every error and in place of every unknown word."""
    if isinstance(part, list):
        return [poisoned(item) for item in part]
    if isinstance(part, Mapping):
        changed = {key: poisoned(value) for key, value in part.items()}
        if isinstance(part.get("error"), dict) and "code" in part["error"]:
            changed["error"] = {**FAULT, "code": part["error"]["code"]}
        return changed
    return part.replace("CANARY", secret("word")) if isinstance(part, str) else part


class DshWatch(Watch):
    """Watches runs over the scripted runtime."""

    def __init__(self, stage: DshStage, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__(stage.folder, caplog)
        self.stage = stage

    def provider(self, script: dict[str, Any], **settings: Any) -> DshProvider:
        told = poisoned({**DEFAULTS, **script})
        told["initialize"] = [*TALK[:3], *told["initialize"]]
        told["prompt"] = [*TALK, *told["prompt"]]
        told["shutdown"] = [*TALK[:3], *told["shutdown"]]
        config = self.stage.config(told, **settings)
        *interpreter, text = config["args"]
        script_file = self.folder / "script.json"  # too long for an argument
        script_file.write_text(text)
        config["args"] = [*interpreter, str(script_file), secret("argv")]
        config["env"] = {"SOME_VARIABLE": secret("env"), "DSH_HOME": secret("env")}
        return DshProvider(DshConfig(**{**config, "command": str(self.command), "cwd": str(self.cwd)}))


@pytest.fixture
def watch(
    dsh_stage: DshStage, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[DshWatch]:
    made = DshWatch(dsh_stage, caplog)
    with watching(made, caplog, capfd):
        yield made


def one_of_each(rows: list[Row]) -> list[Row]:
    """The rows without those that differ from another one only in a code or a signal."""
    chosen: dict[str, Row] = {}
    for row in rows:
        chosen.setdefault(re.sub(r"(code|signal): \S+\b", r"\1", row.expected or row.name), row)
    return list(chosen.values())


@pytest.mark.parametrize("row", one_of_each(START_ROWS), ids=lambda row: row.name)
async def test_a_failed_start_keeps_every_secret(row: Row, watch: DshWatch) -> None:
    outcome = await conduct(watch, watch.provider(row.script, **row.settings))
    assert isinstance(outcome, SubagentStartError)
    assert first_line(outcome) == row.expected


@pytest.mark.parametrize("row", one_of_each(TURN_ROWS), ids=lambda row: row.name)
async def test_a_turn_keeps_every_secret_however_it_ends(row: Row, watch: DshWatch) -> None:
    outcome = await conduct(watch, watch.provider(row.script, **row.settings))
    assert isinstance(outcome, SubagentResult)
    assert outcome.stop_reason == row.stop_reason
    if row.expected is not None:
        assert first_line(outcome) == row.expected


async def test_a_cancelled_turn_keeps_every_secret(watch: DshWatch) -> None:
    with trio.fail_after(30):
        async with open_subagents() as subagents:
            provider = watch.provider(turn({"wait": True}))
            subagents.register(provider)
            async with await subagents.start("fake", watch.request()) as run:
                async for _ in run.events():
                    run.cancel()
                    watch.look("cancelled", run)
                result = await run.result()
            watch.look("ended", subagents, run, result)
    assert result.stop_reason == "aborted"


async def test_an_exception_of_our_own_that_quotes_a_secret_keeps_it(
    watch: DshWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_receipt(_: DshConversation, answer: object) -> None:
        raise RuntimeError(f"cannot read {secret('answer')}")

    monkeypatch.setattr(DshConversation, "_on_receipt", on_receipt)
    outcome = await conduct(watch, watch.provider({}))
    assert isinstance(outcome, SubagentResult)
    assert "category: unknown" in str(outcome.diagnostic)


async def test_a_teardown_that_fails_keeps_every_secret(
    watch: DshWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tree.kill

    def kill_and_raise(*arguments: Any) -> None:
        original(*arguments)
        raise RuntimeError(secret("kill"))

    monkeypatch.setattr(tree, "kill", kill_and_raise)
    script: dict[str, Any] = {"shutdown": [{"error": ERROR}], "ignore_eof": True, "ignore_term": True}
    graces: dict[str, Any] = {"eof_grace_seconds": 0.2, "term_grace_seconds": 0.2}
    outcome = await conduct(watch, watch.provider(script, **graces))
    assert isinstance(outcome, SubagentTeardownError)
    assert "stage: shutdown" in str(outcome)
    assert child._uncollected == []


@pytest.mark.parametrize(
    "settings",
    [
        {"command": f"/{secret('command-path')}"},
        {"args": [f"a\0{secret('argv')}"]},
        {"env": {"X": f"a\0{secret('env')}"}},
    ],
)
async def test_a_command_that_cannot_be_started_keeps_every_secret(
    settings: dict[str, Any], watch: DshWatch
) -> None:
    config: dict[str, Any] = {"name": "fake", "command": str(watch.command), "cwd": str(watch.cwd)}
    outcome = await conduct(watch, DshProvider(DshConfig(**{**config, **settings})))
    assert isinstance(outcome, SubagentStartError)
    assert "stage: initialize; category: configuration" in str(outcome)


async def test_a_configuration_that_is_refused_keeps_its_values(watch: DshWatch) -> None:
    values: list[dict[str, Any]] = [
        {"max_tokens": secret("env")},
        {secret("env"): 1},
        {"env": [secret("env")]},
    ]
    for settings in values:
        with pytest.raises(ConfigurationError) as caught:
            DshConfig(**settings)
        watch.look("refused", caught.value)
    outcome: SubagentResult | SubagentError = await conduct(watch, watch.provider({}))
    assert isinstance(outcome, SubagentResult)


async def test_the_secrets_are_where_they_belong(watch: DshWatch) -> None:
    events = list[object]()
    with trio.fail_after(30):
        async with open_subagents() as subagents:
            subagents.register(watch.provider({"prompt": [{"error": ERROR}]}))
            async with await subagents.start("fake", watch.request()) as run:
                async for event in run.events(stderr=True):
                    events.append(event)
                result = await run.result()
    assert result.text == secret("answer")
    shown = [getattr(event, name) for event in events for name in type(event).__slots__]  # type: ignore[attr-defined]  # every event has them
    assert leaks(shown) >= {"answer", "piece", "thought", "event-kind", "event-value", "stderr"}
    (call,) = result.tool_calls
    assert leaks([call.id, call.title]) == {"call-id", "tool-name"}
    assert leaks([call.raw_input, call.content]) == {"raw-input", "tool-output"}
    failure = result.failure
    assert failure is not None
    assert failure.rpc_error is not None
    assert leaks(failure.rpc_error.message) == {"rpc-message"}
    assert leaks(failure.stderr_tail) == {"stderr"}
    assert leaks(failure.noise) == {"noise", "noise-json"}
    # And the runtime got what it was to get.
    assert leaks(watch.stage.log.read_text()) >= {"prompt", "cwd", "env"}


async def test_the_look_reaches_the_objects_that_matter(watch: DshWatch) -> None:
    await conduct(watch, watch.provider(turn({"end": "CANARY"}, {"exit": 1})))
    names = {kind.__name__ for kind in watch.looked_at}
    assert names >= {
        "Activity", "Chain", "Child", "Connection", "DshConfig", "DshConversation", "DshProvider",
        "DshSettings", "DshTurnRecord", "Failure", "SessionEvents", "SubagentResult", "SupervisedRun",
        "TextChunk", "ThoughtChunk", "ToolCall", "ToolCallChanged", "ToolCalls", "Turn",
        "TurnEnd", "TurnOutput", "UnknownUpdate",
    }  # fmt: skip
