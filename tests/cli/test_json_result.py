"""The JSON object: one form for every outcome, and always valid JSON."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from acp_subagent.cli.json_result import MAX_DEPTH, plain, to_json, to_text
from acp_subagent.cli.outcome import Outcome, as_result
from acp_subagent.errors import SubagentAbortedError, SubagentStartError, SubagentTeardownError
from acp_subagent.seam.activity import (
    Cost,
    ExitStatus,
    PermissionDecision,
    PermissionRecord,
    PlanEntry,
    Rung,
    TeardownReport,
    ToolCall,
    ToolKind,
    ToolStatus,
    Usage,
)
from acp_subagent.seam.content import ImageBlock, TextBlock, UnknownBlock
from acp_subagent.seam.request import SessionRef
from acp_subagent.seam.result import Counters, Failure, RpcFault, SubagentResult, Timings
from tests.cli.driver import run, turn


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
SECONDS: dict[str, Any] = {"type": "number", "minimum": 0}
BLOCKS = list_of({"type": "object"})
EXIT_STATUS = closed(
    {
        "code": or_null(COUNT),
        "signal": or_null(COUNT),
        "signal_name": or_null(TEXT),
    }
)
FAILURE = closed({"stage": TEXT, "category": TEXT, "reason": or_null(TEXT)})
DETAIL = closed(
    {
        "rpc_error": or_null(closed({"code": {"type": "integer"}, "message": TEXT, "data": {}})),
        "stderr_tail": TEXT,
        "stop_reason": or_null(TEXT),
        "noise": list_of(TEXT),
        "cause": or_null(TEXT),
        "exit_status": or_null(EXIT_STATUS),
        "deadline": or_null(TEXT),
        "prompt_dispatched": {"type": "boolean"},
        "retryable": {"type": "boolean"},
        "advice": or_null(TEXT),
    }
)
USAGE = closed(
    {
        "used_tokens": or_null(COUNT),
        "size_tokens": or_null(COUNT),
        "cost": or_null(closed({"amount": {"type": "number"}, "currency": TEXT})),
    }
)
PERMISSION = closed(
    {
        "kind": TEXT,
        "policy": TEXT,
        "decision": {"enum": ["allowed", "denied", "cancelled"]},
        "tool_call_id": TEXT,
        "option_id": or_null(TEXT),
    }
)
TOOL_CALL = closed(
    {
        **dict.fromkeys(("id", "title", "kind", "status"), TEXT),
        "locations": list_of(TEXT),
        "content": {"type": "array"},
        "raw_input": {},
        "raw_output": {},
    }
)
TEARDOWN = closed(
    {
        "rungs": {"type": "object", "additionalProperties": SECONDS},
        "processes_found": COUNT,
        "survivors": COUNT,
        "failed": {"type": "boolean"},
    }
)
COUNTERS = (
    "updates",
    "unknown_updates",
    "repaired_frames",
    "noise_lines",
    "late_updates",
    "early_updates_dropped",
    "dropped_responses",
    "permission_violations",
    "output_dropped_bytes",
)


def schema(*, detail: bool = False) -> dict[str, Any]:
    failure = closed({**FAILURE["properties"], "detail": DETAIL}) if detail else FAILURE
    times = ("spawn", "initialize", "new_session", "turn", "teardown")
    return closed(
        {
            "stop_reason": {"enum": ["completed", "aborted", "error", "max-tokens", "refusal"]},
            "text": TEXT,
            "output": BLOCKS,
            "messages": list_of(BLOCKS),
            "diagnostic": or_null(TEXT),
            "failure": or_null(failure),
            "structured": {},
            "usage": USAGE,
            "permissions": list_of(PERMISSION),
            "tool_calls": list_of(TOOL_CALL),
            "plan": list_of(closed({"content": TEXT, "priority": TEXT, "status": TEXT})),
            "session": or_null(closed({"provider": TEXT, "cwd": TEXT, "token": TEXT})),
            "exit_status": or_null(EXIT_STATUS),
            "teardown": or_null(TEARDOWN),
            "context_lost": {"type": "boolean"},
            "timings": closed(dict.fromkeys(times, or_null(SECONDS))),
            "counters": closed(dict.fromkeys(COUNTERS, COUNT)),
        }
    )


REPORT = TeardownReport(
    {Rung.EOF: 0.25, Rung.REAP: 0.0}, processes_found=3, survivors=0, exit_status=ExitStatus(code=0)
)
FAULT = Failure(
    diagnostic="the line",
    stage="prompt",
    category="remote-error",
    cause=ValueError("never shown"),
    rpc_error=RpcFault(-32603, "broken", {"key": float("nan")}),
    stderr_tail="a last word",
    noise=("a banner",),
    exit_status=ExitStatus(signal=9),
)
FULL = SubagentResult(
    stop_reason="completed",
    output=(TextBlock("answer"), ImageBlock("aGk=", "image/png")),
    messages=((TextBlock("first"),), (TextBlock("answer"), ImageBlock("aGk=", "image/png"))),
    usage=Usage(812, 200_000, Cost(0.5, "USD")),
    permissions=(PermissionRecord(ToolKind.EDIT, "reject", PermissionDecision.DENIED, "call-1", "no"),),
    tool_calls=(
        ToolCall("call-1", "Edit", ToolKind.EDIT, ToolStatus.FAILED, ("/a",), ({"type": "diff"},), {"a": 1}),
    ),
    plan=(PlanEntry("think", "high", "pending"),),
    session=SessionRef("agent", "/srv", "token"),
    exit_status=ExitStatus(code=0),
    teardown=REPORT,
    timings=Timings(0.1, 0.2, 0.3, 0.4, 0.5),
    counters=Counters(updates=7),
)
FAILED = SubagentResult(stop_reason="error", diagnostic="the line", failure=FAULT, teardown=REPORT)
SECOND = SubagentTeardownError("the second line", failure=FAULT, report=REPORT)


@pytest.mark.parametrize(
    "outcome",
    [
        FULL,
        FAILED,
        SubagentStartError("the line", failure=FAULT),
        SubagentStartError("both lines", failure=FAULT, teardown=SECOND),
        SubagentAbortedError(),
        SECOND,
        SubagentTeardownError("the line", failure=FAULT, report=REPORT, result=FULL),
    ],
)
@pytest.mark.parametrize("detail", [False, True])
def test_every_outcome_has_the_same_fields(outcome: Outcome, detail: bool) -> None:
    value = json.loads(to_text(as_result(outcome), show_failure=detail))
    jsonschema.validate(value, schema(detail=detail))


def test_the_fields_say_what_the_result_says() -> None:
    value = to_json(FULL, show_failure=False)
    assert value["text"] == "answer"
    assert value["output"] == [
        {"type": "text", "text": "answer"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    ]
    assert value["messages"] == [[{"type": "text", "text": "first"}], value["output"]]
    assert value["usage"] == {
        "used_tokens": 812,
        "size_tokens": 200_000,
        "cost": {"amount": 0.5, "currency": "USD"},
    }
    assert value["session"] == {"provider": "agent", "cwd": "/srv", "token": "token"}
    assert value["exit_status"] == {"code": 0, "signal": None, "signal_name": None}
    assert value["teardown"] == {
        "rungs": {"eof": 0.25, "reap": 0.0},
        "processes_found": 3,
        "survivors": 0,
        "failed": False,
    }
    assert value["failure"] is None


def test_the_local_detail_is_there_only_when_it_was_asked_for() -> None:
    assert to_json(FAILED, show_failure=False)["failure"] == {
        "stage": "prompt",
        "category": "remote-error",
        "reason": None,
    }
    shown = json.loads(to_text(FAILED, show_failure=True))["failure"]["detail"]
    assert shown["rpc_error"] == {"code": -32603, "message": "broken", "data": {"key": None}}
    assert shown["cause"] == "ValueError"
    assert shown["exit_status"]["signal_name"] == "SIGKILL"
    assert "never shown" not in to_text(FAILED, show_failure=True)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        pytest.param(10**5000, None, id="a number too long to print"),
        (2**64, 2**64),
        (True, True),
        ("\ud800 \x1b[31m", "\ud800 \x1b[31m"),
        ((1, [2]), [1, [2]]),
        ({"a": {"b": 1.5}}, {"a": {"b": 1.5}}),
        (b"bytes", None),
    ],
)
def test_whatever_an_agent_sends_becomes_json(sent: object, shown: object) -> None:
    value = plain(sent)
    assert value == shown
    assert type(value) is type(shown)
    assert json.loads(json.dumps(value, allow_nan=False)) == shown


def test_what_is_nested_without_end_is_cut() -> None:
    text = json.dumps(plain(nested(100_000)))
    assert text == "[" * MAX_DEPTH + "null" + "]" * MAX_DEPTH


def test_the_object_is_one_line_of_ascii() -> None:
    odd = SubagentResult(
        stop_reason="completed", output=(TextBlock("é\x1b\n\ud800"), UnknownBlock({"type": 1}))
    )
    text = to_text(odd, show_failure=False)
    assert text.isascii()
    assert text.isprintable()


def test_a_real_run_prints_the_object_and_nothing_else() -> None:
    done = run({"turns": [[{"text": "hi"}, {"permission": {}}]]}, "--format", "json")
    assert done.stdout.count("\n") == 1
    jsonschema.validate(done.json, schema())
    assert done.json["text"] == "hi"
    assert done.json["permissions"][0]["decision"] == "denied"
    assert done.json["exit_status"]["code"] == 0
    assert done.json["teardown"]["survivors"] == 0
    assert None not in done.json["timings"].values()


def test_a_failed_start_prints_the_same_object() -> None:
    done = run(["/no/such/agent"], "--format", "json", "--show-failure")
    jsonschema.validate(done.json, schema(detail=True))
    assert done.json["stop_reason"] == "error"
    assert done.json["failure"]["reason"] == "command-not-found"
    assert done.json["diagnostic"] in done.stderr


def test_a_real_failure_shows_its_detail_in_the_object() -> None:
    broken = turn({"stderr": "a last word"}, {"error": {"code": -32603, "message": "no", "data": [1]}})
    done = run(broken, "--format", "json", "--show-failure")
    jsonschema.validate(done.json, schema(detail=True))
    detail = done.json["failure"]["detail"]
    assert detail["rpc_error"] == {"code": -32603, "message": "no", "data": [1]}
    assert "a last word" in detail["stderr_tail"]
    assert "a last word" not in done.stderr
