"""What every request but the prompt is answered: a default for each method, changed by the scenario."""

from __future__ import annotations

from fake_acp_server import protocol
from fake_acp_server.job import CancelledError, Job, StepError
from fake_acp_server.protocol import METHOD_KEYS, RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fake_acp_server.agent import Agent

#: How long ``session/close`` waits for a running turn to answer ``cancelled``.
CLOSE_WAIT_SECONDS = 5.0

#: Keys of an answer that need a thread, because they take time.
_SLOW_KEYS = ("delay_seconds", "before_answer", "after_answer", "raw")


def start(job: Job) -> None:
    """Answer the request: at once where that takes no time, else beside the main thread."""
    key = METHOD_KEYS[job.method]
    _start(job, key, _next_spec(job, key))


def start_fallback(job: Job, key: str) -> None:
    """Answer what cannot be served as the scenario says under ``unknown_session`` or ``unknown_method``."""
    _start(job, key, _next_spec(job, key))


def _next_spec(job: Job, key: str) -> dict[str, Any]:
    call = job.agent.calls.get(key, 0)
    job.agent.calls[key] = call + 1
    return job.agent.scenario.answer(key, call)


def _start(job: Job, key: str, spec: dict[str, Any]) -> None:
    agent = job.agent
    slow = any(name in spec for name in _SLOW_KEYS) or (
        key == "session_close" and job.session and job.session.turn
    )
    if slow:
        agent.in_thread(lambda: _answer(job, key, spec))
    else:
        _answer(job, key, spec)


def _answer(job: Job, key: str, spec: dict[str, Any]) -> None:
    agent = job.agent
    try:
        result = _default_result(job, key, spec)
        _run(job, spec.get("before_answer"))
        if spec.get("delay_seconds"):
            job.wait(lambda: False, spec["delay_seconds"])
        if key == "session_close":
            _end_turn(job)
        if "raw" in spec:
            _run(job, [{"raw": spec["raw"]}])
            job.drop()
        elif spec.get("no_answer"):
            job.drop()
        elif "error" in spec:
            raise RpcError(
                **{"code": protocol.INTERNAL_ERROR, "message": "Internal error", **job.expand(spec["error"])}
            )
        elif not job.answered:
            _succeed(job, key, job.expand(spec["result"]) if "result" in spec else result)
    except RpcError as error:
        if key == "session_new" and job.session:
            with agent.changed:
                agent.sessions.delete(job.session.id)
        if not job.answered:
            job.refuse(error.as_json())
    except CancelledError:
        job.refuse(RpcError(protocol.CANCELLED, "Request cancelled").as_json())
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        # Values of an inline scenario are not checked before they are used.
        raise StepError(f"answer of {key}: {type(problem).__name__}: {problem}") from None
    _run(job, spec.get("after_answer"))


def _run(job: Job, steps: list[Any] | None) -> None:
    if steps:
        from fake_acp_server.steps import run  # a first answer without steps need not wait for their import

        run(job, steps)


def _succeed(job: Job, key: str, result: Any) -> None:
    """Take over what the answer changes, then send it."""
    agent, session = job.agent, job.session
    with agent.changed:
        if key == "initialize":
            agent.initialized = True
            if isinstance(result, dict) and isinstance(result.get("agentCapabilities", {}), dict):
                agent.capabilities = result.get("agentCapabilities", {})
        elif key == "authenticate":
            agent.authenticated = True
        elif key == "logout":
            agent.authenticated = False
        elif (
            session and key in ("session_new", "session_load", "session_resume") and isinstance(result, dict)
        ):
            modes, options = result.get("modes"), result.get("configOptions")
            session.modes = modes if isinstance(modes, dict) else None
            session.config_options = options if isinstance(options, list) else []
            if key == "session_new" and isinstance(result.get("sessionId"), str):
                agent.sessions.rename(session, result["sessionId"])
        elif session and key == "session_close":
            agent.sessions.close(session.id)
        elif key == "session_delete":
            agent.sessions.delete(job.params["sessionId"])
    job.answer(result)


def _default_result(job: Job, key: str, spec: dict[str, Any]) -> Any:
    """The result where the scenario gives none, ``merge`` already applied. Opens the session it is about."""
    agent = job.agent
    if spec.get("needs_auth") and not agent.authenticated:
        raise RpcError(protocol.AUTH_REQUIRED, "Authentication required")
    if key == "session_list" and "result" in spec:
        return None  # the scenario has its own pages, and knows their cursors
    with agent.changed:
        result = _DEFAULTS[key](agent, job)
    return merged(result, job.expand(spec.get("merge", {})))


def _initialize(agent: Agent, job: Job) -> dict[str, Any]:
    result: dict[str, Any] = {
        "protocolVersion": protocol.PROTOCOL_VERSION,
        "agentCapabilities": agent.scenario.capabilities,
        "authMethods": agent.scenario.auth_methods,
    }
    if agent.scenario.agent_info:
        result["agentInfo"] = agent.scenario.agent_info
    return result


def _authenticate(agent: Agent, job: Job) -> dict[str, Any]:
    for method in agent.scenario.auth_methods:
        if method.get("id") == job.params["methodId"] and method.get("type", "agent") == "agent":
            return {}
    raise RpcError(protocol.INVALID_PARAMS, "Invalid params", "methodId was not offered")


def _session_new(agent: Agent, job: Job) -> dict[str, Any]:
    job.session = agent.sessions.create(job.params["cwd"], agent.names)
    return {"sessionId": job.session.id}


def _session_load(agent: Agent, job: Job) -> dict[str, Any]:
    result = _session_resume(agent, job)
    assert job.session
    for update in job.session.history:
        agent.notify("session/update", {"sessionId": job.session.id, "update": job.expand(update)})
    return result


def _session_resume(agent: Agent, job: Job) -> dict[str, Any]:
    job.session = agent.sessions.bring_back(job.params["sessionId"], job.params["cwd"])
    result: dict[str, Any] = {}
    if job.session.modes:
        result["modes"] = job.session.modes
    if job.session.config_options:
        result["configOptions"] = job.session.config_options
    return result


def _session_list(agent: Agent, job: Job) -> dict[str, Any]:
    if job.params.get("cursor") is not None:
        raise RpcError(protocol.INVALID_PARAMS, "Invalid params", "unknown cursor")
    return {"sessions": agent.sessions.listed(job.params.get("cwd"))}


def _set_mode(agent: Agent, job: Job) -> dict[str, Any]:
    modes = job.session.modes if job.session else None
    if not modes:
        raise RpcError(protocol.METHOD_NOT_FOUND, "Method not found", "no modes were offered")
    offered = modes.get("availableModes")
    if job.params["modeId"] not in [mode.get("id") for mode in offered or [] if isinstance(mode, dict)]:
        raise RpcError(protocol.INVALID_PARAMS, "Invalid params", "modeId was not offered")
    modes["currentModeId"] = job.params["modeId"]
    return {}


def _set_config_option(agent: Agent, job: Job) -> dict[str, Any]:
    session = job.session
    if not session or not session.config_options:
        raise RpcError(protocol.METHOD_NOT_FOUND, "Method not found", "no options were offered")
    if not session.set_option(job.params["configId"], job.params.get("value")):
        raise RpcError(protocol.INVALID_PARAMS, "Invalid params", "configId was not offered")
    return {"configOptions": session.config_options}


def _empty(agent: Agent, job: Job) -> dict[str, Any]:
    return {}


_DEFAULTS = {
    "initialize": _initialize,
    "authenticate": _authenticate,
    "logout": _empty,
    "session_new": _session_new,
    "session_load": _session_load,
    "session_resume": _session_resume,
    "session_list": _session_list,
    "session_close": _empty,
    "session_delete": _empty,
    "session_set_mode": _set_mode,
    "session_set_config_option": _set_config_option,
    "unknown_session": _empty,
    "unknown_method": _empty,
}


def _end_turn(job: Job) -> None:
    """What ``session/close`` does first: cancel the running turn and let it answer."""
    from fake_acp_server import turns

    session, agent = job.session, job.agent
    turn = session.turn if session else None
    if session is None or turn is None:
        return
    with agent.changed:
        turns.cancel(session)
        agent.changed.notify_all()
    job.wait(lambda: turn.sent, CLOSE_WAIT_SECONDS)


def merged(base: Any, change: Any) -> Any:
    """``change`` laid over ``base``: mappings key by key, anything else replaced."""
    if isinstance(base, dict) and isinstance(change, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return change
