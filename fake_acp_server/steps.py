"""What each step does: the ones that speak and wait. The ones that break things are in ``faults``.

``run`` does the steps of a list in order. A step is a mapping with one key; its value is scenario data,
checked when the scenario was read. Texts are expanded (``${cwd}`` and so on) just before they are used.
"""

from __future__ import annotations

import json
import os
import time

from fake_acp_server import protocol
from fake_acp_server.job import CancelledError, Job, StepError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

#: How often a file is looked for.
POLL_SECONDS = 0.005

FILLER = "abcdefghijklmnopqrstuvwxyz012345"

DEFAULT_OPTIONS = [
    {"optionId": "allow-once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "allow-always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
    {"optionId": "reject-always", "name": "Always reject", "kind": "reject_always"},
]


def run(job: Job, steps: list[Any]) -> None:
    """Do the steps one after the other.

    ``CancelledError`` when the client cancelled between two of them, ``StepError`` when one cannot be done.
    """
    for step in steps:
        job.check_cancel()
        for name, value in step.items():
            try:
                _action(name)(job, value)
            except (CancelledError, StepError):
                raise
            except Exception as problem:  # noqa: BLE001  # inline values are not checked, files go missing, ...
                raise StepError(f"step {name}: {type(problem).__name__}: {problem}") from None


def _action(name: str) -> Callable[[Job, Any], None]:
    if name in STEPS:
        return STEPS[name]
    from fake_acp_server import faults

    if name in faults.STEPS:
        return faults.STEPS[name]
    from fake_acp_server import client_steps

    return client_steps.STEPS[name]


# Saying something


def _update(job: Job, value: Any) -> None:
    job.update(job.expand(value))


def _plan(job: Job, value: Any) -> None:
    entries = [
        {"content": entry, "priority": "medium", "status": "pending"} if isinstance(entry, str) else entry
        for entry in value
    ]
    job.update({"sessionUpdate": "plan", "entries": job.expand(entries)})


def _tool_call(job: Job, value: Any) -> None:
    job.update({"sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "A tool", **job.expand(value)})


def _tool_call_update(job: Job, value: Any) -> None:
    job.update({"sessionUpdate": "tool_call_update", "toolCallId": "call-1", **job.expand(value)})


def _text(job: Job, value: Any) -> None:
    _chunks(job, "agent_message_chunk", value)


def _thought(job: Job, value: Any) -> None:
    _chunks(job, "agent_thought_chunk", value)


def _user_text(job: Job, value: Any) -> None:
    _chunks(job, "user_message_chunk", value)


def _chunks(job: Job, kind: str, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"text": value}
    delay_seconds = spec.get("delay_seconds", 0)
    message_id = spec.get("message_id", True)
    if message_id is True:
        job.messages += 1
        turn = job.session.turns_started if job.session else 0
        message_id = f"message-{turn}-{job.messages}"
    for number, text in enumerate(_pieces(job.expand({**spec}))):
        if number and delay_seconds:
            job.wait(lambda: False, delay_seconds)
        job.check_cancel()
        update: dict[str, Any] = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
        if message_id:
            update["messageId"] = message_id
        job.update(update)


def _pieces(spec: dict[str, Any]) -> Iterator[str]:
    """The texts of the chunks: given, or cut from one text, or ``count`` fillers of ``size`` characters."""
    size = spec.get("size", 0)
    if "chunks" in spec:
        pieces = spec["chunks"]
    elif "text" in spec:
        text = str(spec["text"])
        pieces = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    else:
        pieces = [(FILLER * (size // len(FILLER) + 1))[:size]]
    times = spec.get("count", 1)
    while times > 0 or spec.get("forever"):
        yield from pieces
        times -= 1


def _echo(job: Job, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"what": value}
    _chunks(job, "agent_message_chunk", {"chunks": [_echoed(job, spec)]})


def _echoed(job: Job, spec: dict[str, Any]) -> str:
    what = spec["what"]
    if what == "prompt":
        return protocol.prompt_text(job.params.get("prompt") or [])
    seen: dict[str, Callable[[], Any]] = {
        "blocks": lambda: job.params.get("prompt"),
        "argv": lambda: job.agent.argv,
        "cwd": lambda: {"process": job.agent.cwd, "session": job.session.cwd if job.session else None},
        "env": lambda: sorted(os.environ),
        "frames": lambda: job.agent.received,
        "answers": job.agent.answers_received,
        "pid": os.getpid,
        "session": lambda: job.session_id,
    }
    if "values" in spec:
        return json.dumps({name: os.environ.get(name) for name in spec["values"]})
    return json.dumps(seen[what]())


def _notify(job: Job, value: Any) -> None:
    job.agent.notify(value["method"], job.expand(value.get("params", {})))


# Asking and waiting


def _permission(job: Job, value: Any) -> None:
    params = {
        "sessionId": job.expand(value.get("session_id", job.session_id)),
        "toolCall": {"toolCallId": "call-1", **job.expand(value.get("tool_call", {}))},
        "options": job.expand(value.get("options", DEFAULT_OPTIONS)),
    }
    request_id = job.agent.request("session/request_permission", params, value.get("id"))
    if not value.get("wait", True):
        return
    patient = not value.get("interrupted_by_cancel", False)
    frame = job.wait_for_answer(request_id, value.get("timeout_seconds"), patient)
    branches = value.get("on", {})
    for name in _permission_branches(frame, params["options"]):
        if name in branches:
            run(job, branches[name])
            return


def _permission_branches(frame: dict[str, Any] | None, options: list[Any]) -> list[str]:
    """Names of the branch that an answer takes, the most exact first: option id, kind, allow or reject."""
    if frame is None:
        return ["timeout"]
    result = frame.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if not isinstance(outcome, dict):
        return ["error", "reject"]
    if outcome.get("outcome") != "selected":
        return ["cancelled"]
    option_id = outcome.get("optionId")
    for option in options:
        if option.get("optionId") == option_id:
            kind = str(option.get("kind"))
            return [str(option_id), kind, "allow" if kind.startswith("allow") else "reject"]
    # An id that was not offered is no approval.
    return ["not_offered", "reject"]


def ask(job: Job, value: Any) -> str:
    """Send a request, wait for the answer, save it if so wanted; the name of the branch that it takes."""
    request_id = job.agent.request(value["method"], job.expand(value.get("params", {})), value.get("id"))
    if not value.get("wait", True):
        return "sent"
    frame = job.wait_for_answer(request_id, value.get("timeout_seconds"), patient=False)
    branch = "timeout" if frame is None else "error" if "error" in frame else "result"
    if frame and value.get("save"):
        job.saved[value["save"]] = frame.get(branch)
    return branch


def _request(job: Job, value: Any) -> None:
    run(job, value.get("on", {}).get(ask(job, value), []))


def _wait_requests(job: Job, value: Any) -> None:
    timeout_seconds = value.get("timeout_seconds") if isinstance(value, dict) else None
    job.wait(lambda: job.agent.input_ended or not job.agent.open_requests(), timeout_seconds)


def _wait_cancel(job: Job, value: Any) -> None:
    timeout_seconds = value.get("timeout_seconds") if isinstance(value, dict) else None
    if job.wait(lambda: job.cancel_seen or job.request_cancelled, timeout_seconds, patient=True):
        job.cancel_handled = True


def _sleep(job: Job, value: Any) -> None:
    job.wait(lambda: False, value)


def _wait_file(job: Job, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"path": value}
    path = job.expand(spec["path"])
    deadline = time.monotonic() + spec.get("timeout_seconds", 1e9)
    while not os.path.exists(path) and time.monotonic() < deadline:
        job.wait(lambda: False, POLL_SECONDS)


def _touch_file(job: Job, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"path": value}
    mode = "a" if spec.get("append") else "w"
    with open(job.expand(spec["path"]), mode, encoding="utf-8") as file:
        file.write(str(job.expand(spec.get("text", ""))))


# Ending


def _stop(job: Job, value: Any) -> None:
    result = value if isinstance(value, dict) else {"stopReason": value}
    job.answer(job.expand(result))


def _error(job: Job, value: Any) -> None:
    spec = value if isinstance(value, dict) else {"code": value}
    job.refuse({"code": protocol.INTERNAL_ERROR, "message": "Internal error", **job.expand(spec)})


def _no_answer(job: Job, value: Any) -> None:
    job.drop()


def _set(job: Job, value: Any) -> None:
    for name, setting in value.items():
        setattr(job.agent, name, setting)


def _repeat(job: Job, value: Any) -> None:
    for _ in range(value["times"]):
        run(job, value["steps"])


STEPS: dict[str, Callable[[Job, Any], None]] = {
    "update": _update,
    "text": _text,
    "thought": _thought,
    "user_text": _user_text,
    "plan": _plan,
    "tool_call": _tool_call,
    "tool_call_update": _tool_call_update,
    "permission": _permission,
    "request": _request,
    "notify": _notify,
    "sleep": _sleep,
    "wait_cancel": _wait_cancel,
    "wait_requests": _wait_requests,
    "wait_file": _wait_file,
    "touch_file": _touch_file,
    "stop": _stop,
    "error": _error,
    "no_answer": _no_answer,
    "echo": _echo,
    "set": _set,
    "repeat": _repeat,
}
