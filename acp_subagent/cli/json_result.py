"""The one JSON object of `--format json`: the result with all its fields. Pure.

Owns the spelling of each field and the promise that whatever an agent sent becomes valid JSON: numbers that
JSON does not have, and what is nested without end, become null. Paths, ids and texts of the agent are in the
object; the local detail of a failure only when it was asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TypeAlias

from acp_subagent.seam.activity import (
    ExitStatus,
    PermissionRecord,
    PlanEntry,
    TeardownReport,
    ToolCall,
    Usage,
)
from acp_subagent.seam.content import ContentBlock, block_to_json
from acp_subagent.seam.result import Counters, Failure, SubagentResult, Timings

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

#: What is nested deeper becomes null: the agent chooses the depth, and encoders recurse.
MAX_DEPTH = 200

#: An integer with more bits becomes null: Python refuses to print numbers of some thousand digits.
MAX_INTEGER_BITS = 4096


def to_text(result: SubagentResult, *, show_failure: bool) -> str:
    """The object as one line of ASCII, without a newline."""
    return json.dumps(to_json(result, show_failure=show_failure), allow_nan=False)


def to_json(result: SubagentResult, *, show_failure: bool) -> dict[str, Json]:
    """The result as a JSON object; `show_failure` adds `failure.detail`."""
    return {
        "stop_reason": str(result.stop_reason),
        "text": result.text,
        "output": _blocks(result.output),
        "messages": [_blocks(message) for message in result.messages],
        "diagnostic": result.diagnostic,
        "failure": _failure(result.failure, with_detail=show_failure),
        "structured": plain(result.structured),
        "usage": _usage(result.usage),
        "permissions": [_permission(record) for record in result.permissions],
        "tool_calls": [_tool_call(call) for call in result.tool_calls],
        "plan": [_plan_entry(entry) for entry in result.plan],
        "session": None if result.session is None else {**result.session.to_json()},
        "exit_status": _exit_status(result.exit_status),
        "teardown": _teardown(result.teardown),
        "context_lost": result.context_lost,
        "timings": _fields(result.timings),
        "counters": _fields(result.counters),
    }


def plain(value: object, depth: int = 0) -> Json:
    """Any value that was read from JSON, as something that can be written as JSON."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= MAX_INTEGER_BITS else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth < MAX_DEPTH:
        if isinstance(value, Mapping):
            return {str(key): plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item, depth + 1) for item in value]
    return None


def _blocks(blocks: tuple[ContentBlock, ...]) -> list[Json]:
    return [plain(block_to_json(block)) for block in blocks]


def _failure(failure: Failure | None, *, with_detail: bool) -> Json:
    if failure is None:
        return None
    shown: dict[str, Json] = {
        "stage": failure.stage,
        "category": failure.category,
        "reason": failure.reason,
    }
    if with_detail:
        shown["detail"] = failure_detail(failure)
    return shown


def failure_detail(failure: Failure) -> dict[str, Json]:
    """What only the host may see: the agent's own words, and facts of the failure beyond its three."""
    fault = failure.rpc_error
    return {
        "rpc_error": None
        if fault is None
        else {"code": plain(fault.code), "message": fault.message, "data": plain(fault.data)},
        "stderr_tail": failure.stderr_tail,
        "stop_reason": failure.stop_reason,
        "noise": list(failure.noise),
        "cause": None if failure.cause is None else type(failure.cause).__name__,
        "exit_status": _exit_status(failure.exit_status),
        "deadline": failure.deadline,
        "prompt_dispatched": failure.prompt_dispatched,
        "retryable": failure.retryable,
        "advice": failure.advice,
    }


def _usage(usage: Usage) -> Json:
    cost = usage.cost
    return {
        "used_tokens": plain(usage.used_tokens),
        "size_tokens": plain(usage.size_tokens),
        "cost": None if cost is None else {"amount": plain(cost.amount), "currency": cost.currency},
    }


def _permission(record: PermissionRecord) -> Json:
    return {
        "kind": str(record.kind),
        "policy": record.policy,
        "decision": str(record.decision),
        "tool_call_id": record.tool_call_id,
        "option_id": record.option_id,
    }


def _tool_call(call: ToolCall) -> Json:
    return {
        "id": call.id,
        "title": call.title,
        "kind": str(call.kind),
        "status": str(call.status),
        "locations": list(call.locations),
        "content": plain(call.content),
        "raw_input": plain(call.raw_input),
        "raw_output": plain(call.raw_output),
    }


def _plan_entry(entry: PlanEntry) -> Json:
    return {"content": entry.content, "priority": entry.priority, "status": entry.status}


def _exit_status(status: ExitStatus | None) -> Json:
    if status is None:
        return None
    return {"code": status.code, "signal": status.signal, "signal_name": status.signal_name}


def _teardown(report: TeardownReport | None) -> Json:
    if report is None:
        return None
    return {
        "rungs": {str(rung): seconds for rung, seconds in report.rungs.items()},
        "processes_found": report.processes_found,
        "survivors": report.survivors,
        "failed": report.failed,
    }


def _fields(record: Timings | Counters) -> Json:
    return {item.name: plain(getattr(record, item.name)) for item in fields(record)}
