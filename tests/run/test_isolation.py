"""Runs that go on at the same time share nothing of what is said about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import trio

from acp_subagent import Failure, SubagentRunError, SubagentService, open_subagents
from tests.run.rows import START_ROWS, Row, line
from tests.run.stage import Stage
from tests.run.turn_rows import TURN_ROWS

RUNS = 100


@dataclass
class Ended:
    """What was said about one run."""

    text: str | None
    failure: Failure | None


def ways_to_fail() -> list[Row]:
    """A hundred: every row that needs no deadline (a busy machine meets those by itself), and more exits."""
    rows = [
        row
        for row in (*START_ROWS, *TURN_ROWS)
        if (row.expected or "").startswith("Subagent failure")
        and not any(name.endswith("timeout_seconds") for name in row.settings)
    ]
    for code in range(2, 2 + RUNS - len(rows)):
        expected = line(f"stage: process; category: process-exit; exit code: {code}")
        rows.append(Row(f"exit {code}", {"turns": [[{"exit": code}]]}, expected))
    return rows


def marked(scenario: dict[str, Any], mark: str) -> dict[str, Any]:
    """The scenario of an agent that leaves its mark on stderr and among the noise."""
    start = [{"stderr": f"stderr of {mark}."}, {"raw": f"noise of {mark}.\n"}]
    return {**scenario, "start": [*start, *scenario.get("start", [])]}


async def conduct(subagents: SubagentService, name: str, stage: Stage) -> Ended:
    try:
        result = await subagents.run(name, stage.request())
    except SubagentRunError as error:
        return Ended(str(error), error.failure)
    return Ended(result.diagnostic, result.failure)


async def test_a_hundred_runs_at_once_that_fail_each_in_its_own_way_have_each_its_own_line(
    stage: Stage,
) -> None:
    rows, ended, told = ways_to_fail(), dict[str, Ended](), list[Failure]()
    assert len(rows) == RUNS

    async def run_one(name: str) -> None:
        ended[name] = await conduct(subagents, name, stage)

    with trio.fail_after(100):
        async with open_subagents(on_failure=told.append) as subagents, trio.open_nursery() as nursery:
            for number, row in enumerate(rows):
                scenario, settings = marked(row.scenario, f"run-{number}"), dict(row.settings)
                # Patient where it is not the fact itself that waits: a hundred starts take their time.
                settings.setdefault("exit_observation_seconds", 5.0)
                subagents.register(stage.provider(scenario, faulty=True, name=f"run-{number}", **settings))
                nursery.start_soon(run_one, f"run-{number}")
    for number, row in enumerate(rows):
        outcome = ended[f"run-{number}"]
        assert outcome.text == row.expected, row.name
        assert outcome.failure is not None
        others = {f" of run-{other}." for other in range(RUNS)} - {f" of run-{number}."}
        detail = outcome.failure.stderr_tail + json.dumps(outcome.failure.noise)
        assert f"stderr of run-{number}." in outcome.failure.stderr_tail
        assert not [other for other in others if other in detail]
    assert sorted(map(id, told)) == sorted(id(outcome.failure) for outcome in ended.values())
