"""Many turns over many children with faults at random; every run has to settle right, and nothing to be left.

`python -m tests.soak --turns 10000 --seed 7`. The seed is printed; what each child does follows from it.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import trio

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    Deadlines,
    Failure,
    Parent,
    SessionEndedError,
    Snapshot,
    SubagentRequest,
    SubagentRun,
    SubagentService,
    SubagentStartError,
    SupportsResume,
    TextChunk,
    open_subagents,
)
from tests.conftest import children
from tests.support.marks import marked

REPOSITORY = Path(__file__).resolve().parents[1]
AT_ONCE = 12
TURNS_PER_CHILD = 25

MARK = "ACP_SOAK"
#: What an agent does that answers a cancel, on a machine that may be busy; and one that never does.
PATIENT = {"cancel_grace_seconds": 30.0, "eof_grace_seconds": 2.0}
HASTY = {"cancel_grace_seconds": 0.5, "eof_grace_seconds": 0.5, "term_grace_seconds": 0.5}

HOLDS: list[dict[str, Any]] = [{"text": "so far"}, {"sleep": 60}]
ASK = {"permission": {"tool_call": {"toolCallId": "c", "title": "t", "kind": "edit"}}}


@dataclass(frozen=True)
class Kind:
    """One kind of turn."""

    weight: int  #: how likely it is
    steps: list[dict[str, Any]]
    stop_reason: str  #: how it ends
    child_lives: bool = True
    host: str = "waits"  #: or `cancels` or `disposes`, once the agent has said something


def deaf(*steps: dict[str, Any], on_cancel: str = "silent") -> Kind:
    """A turn that we cancel, and an agent that does not end it then."""
    first = {"set": {"on_cancel": on_cancel}}
    return Kind(0, [first, *steps, *HOLDS], "aborted", child_lives=False, host="cancels")


def leaves(kind: str) -> list[dict[str, Any]]:
    """Steps of an agent that starts a process which would outlive it."""
    return [{"child": {"kind": kind, "seconds": 600}}]


#: Turns that come one after the other in a child.
MIXED = {
    "answers": Kind(60, [{"text": "yes"}], "completed"),
    "talks": Kind(20, [{"text": {"size": 40, "count": 200}}], "completed"),
    "asks": Kind(15, [ASK, {"text": "done"}], "completed"),
    "refuses": Kind(5, [{"stop": "refusal"}], "refusal"),
    "runs out": Kind(5, [{"stop": "max_tokens"}], "max-tokens"),
    "errs": Kind(5, [{"error": {"code": -32603, "message": "no"}}], "error"),
    "makes noise": Kind(4, [{"raw": "no json\n{]\n"}, {"text": "x"}], "completed"),
    "floods": Kind(
        2,
        [{"text": {"size": 4000, "count": 300}}, {"stderr": {"text": "e" * 99, "repeat": 2000}}],
        "completed",
    ),
    "is cancelled": Kind(8, HOLDS, "aborted", host="cancels"),
    "is disposed": Kind(3, HOLDS, "aborted", child_lives=False, host="disposes"),
    "leaves a daemon": Kind(2, [*leaves("double-fork"), {"text": "x"}], "completed"),
    "leaves an orphan": Kind(2, [*leaves("launcher-exits"), {"text": "x"}], "completed"),
    "leaves a stopped child": Kind(1, [*leaves("stopped"), {"text": "x"}], "completed"),
    "leaves one that holds its stdout": Kind(
        1, [*leaves("holds-stdout"), {"exit": 3}], "error", child_lives=False
    ),
    "says nonsense": Kind(2, [{"stop": {"stopReason": 5}}], "error", child_lives=False),
    "exits": Kind(3, [{"text": "x"}, {"exit": 3}], "error", child_lives=False),
    "is killed": Kind(2, [{"signal": "KILL"}], "error", child_lives=False),
    "hangs up": Kind(1, [{"close_stdout": True}, {"sleep": 60}], "error", child_lives=False),
}

#: Turns in children of their own, whose deadlines and graces are short.
ALONE = {
    "idles": Kind(0, HOLDS, "error"),
    "ignores the cancel": deaf(),
    "goes on when cancelled": deaf(on_cancel="ignore"),
    "floods when cancelled": deaf(on_cancel="flood"),
    "has been flooding": deaf({"text": "x"}, {"text": {"size": 4000, "forever": True}}, on_cancel="ignore"),
    "stops reading": deaf({"stop_reading": True}),
    "ignores all, with children": deaf({"ignore_term": True}, *leaves("setsid"), {"stop_reading": True}),
}
KINDS = {**MIXED, **ALONE}

#: Starts that fail, each with its category.
BAD_STARTS: dict[str, tuple[dict[str, Any], str]] = {
    "leaves at once": ({"start": [{"exit": 7}]}, "process-exit"),
    "wants a login": ({"session_new": {"error": {"code": -32000, "message": "no"}}}, "auth-required"),
    "speaks another version": ({"initialize": {"merge": {"protocolVersion": 9}}}, "protocol"),
    "never answers": ({"session_new": {"no_answer": True}}, "timeout"),
}


@dataclass
class Tally:
    """What came out, and what was wrong with it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    children: int = 0
    wrong: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    tasks_left: int = 0
    processes_left: int = 0

    @property
    def turns(self) -> int:
        """How many turns have settled."""
        return sum(number for name, number in self.outcomes.items() if name in KINDS)

    def note(self, what: str, got: object, *, right: bool) -> None:
        """Count one outcome, and keep it when it is not the right one."""
        self.outcomes[what] += 1
        if not right:
            self.wrong.append(f"{what}: {got!r}")


def plans(seed: int) -> Iterator[list[str]]:
    """What each child does: its turns, or one bad start."""
    chance = random.Random(seed)
    weights = [kind.weight for kind in MIXED.values()]
    by_itself = [*BAD_STARTS, *ALONE]
    chance.shuffle(by_itself)
    while True:
        for name in by_itself:  # each once, before anything comes a second time
            yield [name]
            for _ in range(chance.randint(2, 6)):
                yield chance.choices(list(MIXED), weights, k=chance.randint(1, 2 * TURNS_PER_CHILD))


class Soak:
    """One soak in progress."""

    def __init__(self, subagents: SubagentService, folder: str, tally: Tally, *, mark: str) -> None:
        self._subagents = subagents
        self._mark = mark  # in the environment of whatever is started
        self._folder = folder
        self._tally = tally
        self._numbers = count()

    async def child(self, plan: list[str]) -> None:
        """One child, from its start to its end."""
        self._tally.children += 1
        first = plan[0]
        scenario, category = BAD_STARTS.get(first, ({}, ""))
        if not category:
            scenario = {"turns": [KINDS[name].steps for name in plan]}
        settings, deadlines = PATIENT, Deadlines()
        if first in ALONE:
            settings = HASTY
        if category == "timeout":
            deadlines = Deadlines(startup_seconds=1.5)
        elif first == "idles":
            deadlines = Deadlines(idle_seconds=0.5)
        request = SubagentRequest(prompt="go", parent=Parent(cwd=self._folder), deadlines=deadlines)
        name = f"child-{next(self._numbers)}"
        registration = self._subagents.register(AcpProvider(self._config(name, scenario, settings)))
        try:
            if category:
                await self._bad_start(name, request, first, category)
            else:
                async with await self._subagents.start(name, request) as run:
                    await self._turns(run, plan)
        finally:
            registration.unregister()

    def _config(self, name: str, scenario: dict[str, Any], settings: dict[str, float]) -> AcpConfig:
        return AcpConfig(
            name=name,
            command=sys.executable,
            args=["-m", "fake_acp_server", "--json", json.dumps(scenario)],
            cwd=self._folder,
            env={"PYTHONPATH": str(REPOSITORY), MARK: self._mark},
            exit_observation_seconds=1.0,
            **settings,
        )

    async def _bad_start(self, name: str, request: SubagentRequest, kind: str, category: str) -> None:
        try:
            async with await self._subagents.start(name, request) as run:
                self._tally.note(kind, run, right=False)
        except SubagentStartError as exc:
            self._tally.note(kind, exc, right=exc.failure.category == category)

    async def _turns(self, owner: SubagentRun, plan: list[str]) -> None:
        assert isinstance(owner, SupportsResume)
        run: SubagentRun = owner
        for number, name in enumerate(plan):
            if number:
                run = await owner.resume("go on")
            await self._turn(owner, run, name)
            if not KINDS[name].child_lives:
                try:
                    await owner.resume("go on")
                    self._tally.wrong.append(f"{name}: the session could be used again")
                except SessionEndedError:
                    return

    async def _turn(self, owner: SubagentRun, run: SubagentRun, name: str) -> None:
        kind = KINDS[name]
        if kind.host != "waits":
            async with run.events() as events:
                async for event in events:
                    if isinstance(event, (TextChunk, Snapshot)):
                        break
            if kind.host == "cancels":
                run.cancel()
            else:
                await owner.dispose()
        result = await run.result()
        self._tally.note(name, result, right=result.stop_reason == kind.stop_reason)


async def soak(*, turns: int, seed: int) -> Tally:
    """Do at least so many turns."""
    tally, to_do, mark = Tally(), plans(seed), secrets.token_hex(8)
    tasks_before, children_before = trio.lowlevel.current_statistics().tasks_living, children()
    with tempfile.TemporaryDirectory() as folder:
        async with open_subagents(
            on_failure=tally.failures.append, max_concurrent_runs=AT_ONCE - 2
        ) as subagents:
            in_progress = Soak(subagents, folder, tally, mark=mark)

            async def worker() -> None:
                while tally.turns < turns:
                    await in_progress.child(next(to_do))

            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(worker)
    tally.tasks_left = trio.lowlevel.current_statistics().tasks_living - tasks_before
    tally.processes_left = len((children() - children_before) | set(marked(f"{MARK}={mark}")))
    return tally


def main() -> int:
    """The command: 0 when everything was right."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Turns with faults at random.")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)  # noqa: T201
    began = time.monotonic()

    async def run() -> Tally:
        return await soak(turns=chosen.turns, seed=chosen.seed)

    tally = trio.run(run)
    seconds = time.monotonic() - began
    print(f"{tally.turns} turns, {tally.children} children, {seconds:.0f} s")  # noqa: T201
    for name, number in tally.outcomes.most_common():
        print(f"  {number:6} {name}")  # noqa: T201
    for line in tally.wrong:
        print(f"WRONG {line}")  # noqa: T201
    if tally.tasks_left or tally.processes_left:
        print(f"LEFT {tally.tasks_left} tasks, {tally.processes_left} processes")  # noqa: T201
    return 1 if tally.wrong or tally.tasks_left or tally.processes_left else 0


if __name__ == "__main__":
    sys.exit(main())
