"""What the real command line says of every fact of the failure table, provoked with the fake agent.

`python -m tests.cli.fact_lines` prints the table: fact, stop reason, and the diagnostic as it stood on
stderr. The tests compare it with what is written down here.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cli.driver import (
    NOTHING_IS_KILLED,
    THE_EXIT_IS_COLLECTED,
    THE_KILL_RAISES,
    CommandLine,
    Ended,
    arguments,
)
from tests.run.rows import ASK, DEAF, PERMISSION_LINE, error, line, question

#: an agent that leaves only when it is killed, and not for ever where nobody kills it
STUBBORN: dict[str, Any] = {
    "start": [{"ignore_term": True}],
    "on_eof": {"ignore": True},
    "on_cancel": "ignore",
    "lifetime_seconds": 8,
    "turns": [[{"sleep": 60}]],
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to meet a fact on the command line."""

    fact: str  #: as the table of the classifier calls it
    scenario: Mapping[str, Any] | list[str]  #: of the fake, or another command
    said: str | None = None  #: the diagnostic
    stop_reason: str = "error"
    options: tuple[str, ...] = ()
    program: str | None = None  #: what is run in place of `python -m acp_subagent`
    interrupts: int = 0  #: how often it gets a Ctrl-C while the turn is on


def turn(*steps: object) -> dict[str, Any]:
    """A scenario with this turn."""
    return {"turns": [list(steps)]}


def teardown(fact: str, said: str, program: str) -> Case:
    """A teardown that fails: interrupted twice, so that the graces are not waited for."""
    line_said = line(f"stage: teardown; category: {said}")
    return Case(
        fact=fact,
        scenario=STUBBORN,
        said=line_said,
        stop_reason="aborted",
        program=program,
        interrupts=2,
    )


CASES = [
    Case(
        fact="we cancelled (abort, cancel, dispose)",
        scenario=turn({"wait_cancel": True}),
        stop_reason="aborted",
        interrupts=1,
    ),
    Case(
        fact="our deadline passed",
        scenario=turn({"wait_cancel": True}),
        options=("--turn-timeout", "0.3"),
        said=line("stage: prompt; category: timeout; reason: turn-deadline"),
    ),
    Case(fact="`end_turn`", scenario=turn(ASK, {"stop": "end_turn"}), stop_reason="completed"),
    Case(
        fact="`max_tokens`",
        scenario=turn(ASK, {"stop": "max_tokens"}),
        said=PERMISSION_LINE,
        stop_reason="max-tokens",
    ),
    Case(
        fact="`refusal`", scenario=turn(ASK, {"stop": "refusal"}), said=PERMISSION_LINE, stop_reason="refusal"
    ),
    Case(
        fact="`cancelled`, not asked for by us (remote)",
        scenario=turn({"stop": "cancelled"}),
        stop_reason="aborted",
    ),
    Case(
        fact="the turn ended with `max_turn_requests`",
        scenario=turn({"stop": "max_turn_requests"}),
        said=line("stage: prompt; category: remote-limit; stop reason: max_turn_requests"),
    ),
    Case(
        fact="the turn ended with any other string (its value is not copied)",
        scenario=turn(ASK, {"stop": "SOMETHING"}),
        said=line("stage: prompt; category: unknown; stop reason: unknown") + "\n" + PERMISSION_LINE,
    ),
    Case(
        fact="no usable working directory, or unusable configuration; nothing was spawned",
        scenario={},
        options=("--cwd", "/no/such/directory"),
        said=line("stage: initialize; category: configuration; reason: cwd-not-found"),
    ),
    Case(
        fact="the command cannot be started (found before the spawn, or by it)",
        scenario=["/no/such/agent"],
        said=line("stage: process; category: process-start; reason: command-not-found"),
    ),
    Case(
        fact="the process ended before the answer",
        scenario={"initialize": {"before_answer": [{"exit": 4}]}},
        said=line("stage: initialize; category: process-exit; exit code: 4"),
    ),
    Case(
        fact="the process ended before the terminal answer to the prompt",
        scenario=turn({"signal": "KILL"}),
        said=line("stage: process; category: process-exit; signal: SIGKILL"),
    ),
    Case(
        fact="the stream ended, or cannot be written, and the process was still there after the observation",
        scenario=turn({"close_stdout": True}, {"sleep": 20}),
        said=line("stage: prompt; category: transport"),
    ),
    Case(
        fact="the agent does not read: more unsent bytes than the limit",
        scenario=turn(
            DEAF[0],
            {"repeat": {"times": 700, "steps": [question("i" * 100_000)]}},
            {"start_reading": True},
            {"sleep": 20},
        ),
        said=line("stage: prompt; category: transport; reason: write-blocked"),
    ),
    Case(
        fact="the agent answered -32000, and no configured login helped",
        scenario={"session_new": {"needs_auth": True}},
        said=line("stage: new-session; category: auth-required; rpc code: -32000"),
    ),
    Case(
        fact="the agent answered with another JSON-RPC error",
        scenario=turn(error(-32603)),
        said=line("stage: prompt; category: remote-error; rpc code: -32603"),
    ),
    Case(
        fact="the agent's protocol version is not ours",
        scenario={"initialize": {"merge": {"protocolVersion": 2}}},
        said=line("stage: initialize; category: protocol; reason: version-mismatch"),
    ),
    Case(
        fact="the noise limit passed before the first message",
        scenario={
            "start": [{"raw": {"text": "starting ...\n", "repeat": 200}}],
            "initialize": {"no_answer": True},
        },
        said=line("stage: initialize; category: protocol; reason: never-spoke-acp"),
    ),
    Case(
        fact="answer malformed (also: no session id, no stop reason, or one that is no string)",
        scenario={"session_new": {"result": {"sessionId": 7}}},
        said=line("stage: new-session; category: protocol; reason: malformed-answer"),
    ),
    Case(
        fact="frame limit passed",
        scenario=turn({"raw": {"text": "x" * 1000, "repeat": 68_000}}, {"sleep": 20}),
        said=line("stage: prompt; category: protocol; reason: frame-too-large"),
    ),
    teardown("processes survived the whole ladder", "survivors", NOTHING_IS_KILLED),
    teardown("teardown failed otherwise, exit observed", "process-exit; signal: SIGKILL", THE_KILL_RAISES),
    teardown("teardown failed otherwise, exit not observed", "unknown", THE_EXIT_IS_COLLECTED),
]

#: facts that no agent, option or signal can provoke on the command line
NOT_HERE = {
    "a requested model, mode or option could not be set and read back": "the command line asks for none",
    "load or resume failed, and a new session was not allowed": "the command line continues no session",
    "an unexpected exception of our own": "it takes a bug",
}


def conduct(case: Case) -> Ended:
    """Run the command line; what it left."""
    with CommandLine(arguments(case.scenario, *case.options), code=case.program) as started:
        for told in ("stage: prompt", "once more")[: case.interrupts]:
            started.read_until(told, "stderr")
            started.signal(signal.SIGINT)
        return started.end()


def said(ended: Ended) -> tuple[str, str | None]:
    """Stop reason and diagnostic, as they stand on stderr."""
    stop_reason = re.search(r"^stop reason: (.+)$", ended.stderr, re.MULTILINE)
    assert stop_reason is not None, ended.stderr
    lines = re.findall(r"^(?:Subagent failure|ACP permission) \(.*\)$", ended.stderr, re.MULTILINE)
    return stop_reason[1], "\n".join(lines) or None


def table() -> Iterator[str]:
    """The lines of the table, each as soon as its run has ended."""
    yield "| fact | stop reason | on stderr |"
    yield "| --- | --- | --- |"
    for case in CASES:
        stop_reason, diagnostic = said(conduct(case))
        shown = "(nothing)" if diagnostic is None else f"`{diagnostic}`".replace("\n", "`<br>`")
        yield f"| {case.fact} | `{stop_reason}` | {shown} |"
    for fact, why in NOT_HERE.items():
        yield f"| {fact} | | not on the command line: {why} |"


if __name__ == "__main__":
    for row in table():
        sys.stdout.write(row + "\n")
