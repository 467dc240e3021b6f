"""Steps that use what a client offers: files, terminals, elicitation. Each is a short word for one or more
requests.

Nothing here looks at what the client advertised: an agent that asks without being invited is a case to test.
"""

from __future__ import annotations

from fake_acp_server import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fake_acp_server.job import Job


def _ask(job: Job, method: str, params: dict[str, Any], save: str) -> str:
    """Ask for the job's session, leaving out what is None; the branch that the answer takes."""
    present = {key: item for key, item in params.items() if item is not None}
    request = {"method": method, "params": {"sessionId": "${session_id}", **present}, "save": save}
    return steps.ask(job, request)


def _branch(job: Job, spec: dict[str, Any], name: str) -> None:
    steps.run(job, spec.get("on", {}).get(name, []))


def _read_file(job: Job, value: Any) -> None:
    """``fs/read_text_file``; the text is ``${file.content}`` afterwards."""
    spec = value if isinstance(value, dict) else {"path": value}
    params = {"path": spec["path"], "line": spec.get("line"), "limit": spec.get("limit")}
    _branch(job, spec, _ask(job, "fs/read_text_file", params, spec.get("save", "file")))


def _write_file(job: Job, value: Any) -> None:
    """``fs/write_text_file``."""
    params = {"path": value["path"], "content": value.get("text", "")}
    _branch(job, value, _ask(job, "fs/write_text_file", params, "written"))


def _terminal(job: Job, value: Any) -> None:
    """A whole terminal: create, (kill,) wait, output, release; ``${terminal.output}``, ``${exit.exitCode}``
    after. ``${exit.exitCode}``.
    """
    spec = value if isinstance(value, dict) else {"command": value}
    wanted = {key: spec.get(key) for key in ("command", "args", "cwd", "env")}
    branch = _ask(
        job, "terminal/create", {**wanted, "outputByteLimit": spec.get("output_byte_limit")}, "created"
    )
    if branch == "result":
        there = {"terminalId": "${created.terminalId}"}
        if spec.get("kill"):
            _ask(job, "terminal/kill", there, "killed")
        _ask(job, "terminal/wait_for_exit", there, "exit")
        _ask(job, "terminal/output", there, spec.get("save", "terminal"))
        _ask(job, "terminal/release", there, "released")
    _branch(job, spec, branch)


def _elicit(job: Job, value: Any) -> None:
    """``elicitation/create``: a form with ``schema``, or a ``url``; ``${elicited.action}`` afterwards.

    Branches: the action (``accept``, ``decline``, ``cancel``), or ``error``.
    """
    params: dict[str, Any] = {"message": value.get("message", "A question")}
    if "url" in value:
        params |= {"mode": "url", "url": value["url"]}
        params["elicitationId"] = value.get("elicitation_id", "elicitation-1")
    else:
        params |= {
            "mode": "form",
            "requestedSchema": value.get("schema", {"type": "object", "properties": {}}),
        }
    saved = value.get("save", "elicited")
    branch = _ask(job, "elicitation/create", params, saved)
    if branch == "result" and isinstance(job.saved[saved], dict):
        branch = str(job.saved[saved].get("action"))
    _branch(job, value, branch)


STEPS: dict[str, Callable[[Job, Any], None]] = {
    "read_file": _read_file,
    "write_file": _write_file,
    "terminal": _terminal,
    "elicit": _elicit,
}
