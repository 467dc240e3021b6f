"""When steps run: before anything is read, in a prompt's turn, after a cancel, at the end of the input."""

from __future__ import annotations

from fake_acp_server import protocol
from fake_acp_server.job import CancelledError, Job, StepError
from fake_acp_server.protocol import RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from fake_acp_server.agent import Agent
    from fake_acp_server.sessions import Session


def run_start(agent: Agent) -> None:
    """Run the scenario's ``start`` steps, in the main thread, before the first byte is read."""
    if agent.scenario.life_socket:
        from fake_acp_server import faults

        try:
            faults.hold_life_socket(agent, agent.scenario.life_socket)
        except OSError as problem:
            raise StepError(f"life_socket: {problem}") from None
    if agent.scenario.start:
        from fake_acp_server import steps

        steps.run(Job(agent, "start", None, {}, None), agent.scenario.start)


def start(job: Job) -> None:
    """Start the turn of a prompt in its own thread, or do what the scenario says about a second prompt."""
    session, agent = job.session, job.agent
    assert session
    if session.turn is None:
        session.turn = job
        agent.unsent_turns.add(job)
        agent.in_thread(lambda: _run(job))
        return
    policy = agent.second_prompt
    if policy == "error":
        job.refuse(RpcError(protocol.INVALID_REQUEST, "Invalid request", "a turn is running").as_json())
    elif policy == "end_turn":
        job.answer({"stopReason": "end_turn"})
    elif policy == "ignore":
        job.drop()
    else:
        session.queue.append(job)
        if policy == "cancel_first":
            session.turn.cancel_seen = True
            agent.changed.notify_all()


def cancel(session: Session) -> None:
    """The client cancels what runs in the session, and what waits there."""
    waiting, session.queue = session.queue, []
    for job in waiting:
        job.answer({"stopReason": "cancelled"})
    if session.turn:
        session.turn.cancel_seen = True


def _run(job: Job) -> None:
    from fake_acp_server import steps

    session = job.session
    assert session
    turn = job.agent.scenario.turn(session.turns_started)
    session.turns_started += 1
    try:
        steps.run(job, turn)
        if not job.answered:
            job.check_cancel()
            cancelled = job.cancel_seen and job.agent.on_cancel != "ignore"
            job.answer({"stopReason": "cancelled" if cancelled else "end_turn"})
    except CancelledError:
        _conclude_cancelled(job)


def _conclude_cancelled(job: Job) -> None:
    """End a cancelled turn as ``on_cancel`` says."""
    from fake_acp_server import steps

    policy = job.agent.on_cancel
    job.cancel_handled = True
    if job.request_cancelled:
        job.refuse(RpcError(protocol.CANCELLED, "Request cancelled").as_json())
    elif isinstance(policy, dict):
        steps.run(job, policy.get("steps", []))
        if not job.answered:
            job.answer({"stopReason": "cancelled"})
    elif policy == "error":
        job.refuse(RpcError(protocol.INTERNAL_ERROR, "Internal error", {"details": "AbortError"}).as_json())
    elif policy == "exit":
        job.agent.leave(0)
    elif policy == "flood":
        steps.run(job, [{"text": {"text": "still here ", "forever": True}}])
    elif policy == "silent":
        job.wait(lambda: False, patient=True)
    else:
        job.answer({"stopReason": policy})


def end_of_input(agent: Agent) -> NoReturn:
    """The client closed our stdin: leave, as ``on_eof`` says, or stay as a process that reads nothing."""
    policy = agent.on_eof
    if not policy:
        agent.leave(0)
    with agent.changed:
        agent.input_ended = True
        agent.changed.notify_all()
    if not policy.get("ignore"):
        agent.in_thread(lambda: _leave(agent))
    while True:  # a step may try to read again: there is nothing to be read
        agent.inlet.pause()
        agent.inlet.read()


def _leave(agent: Agent) -> None:
    from fake_acp_server import steps

    policy = agent.on_eof
    job = Job(agent, "eof", None, {}, None)
    if policy.get("wait_turns"):
        job.wait(lambda: not agent.unsent_turns)
    if policy.get("delay_seconds"):
        job.wait(lambda: False, policy["delay_seconds"])
    steps.run(job, policy.get("steps", []))
    if policy.get("marker"):
        steps.run(job, [{"touch_file": policy["marker"]}])
    agent.leave(policy.get("exit_code", 0))
