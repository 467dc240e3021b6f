"""That `make bench` works, at sizes at which its numbers mean nothing: nobody looks at them here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import OURS, RAW, Figure, figures
from benchmarks.measure import MeasurementError, Outcome, Runner
from benchmarks.provision import HERE, REPOSITORY, Agent, made_agent, python_clients
from benchmarks.report import Setting, as_page, as_text, short_of

TINY = 0.001
#: one figure for each kind of work; the others differ from these in numbers only
NAMES = [
    "updates",
    "subscriber",
    "permission",
    "run",
    "crowd",
    "children",
    "start",
    "start-cli",
    "million",
    "slow-reader",
    "turn-thousand",
]
PROGRAMS = {
    **python_clients(sys.executable),
    "bare-python": (sys.executable, "-c", ""),
    "command-line": (sys.executable, "-m", "acp_subagent", "run"),
}
IN_PYTHON = Agent((sys.executable, "-I", "-S", str(HERE / "agent.py")), "Python")


@pytest.fixture(autouse=True)
def checkout_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients find this checkout, installed or not."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


def figure_of_our_own(name: str) -> Figure:
    """A tiny figure without those whose packages are not installed where the tests run."""
    figure = next(figure for figure in figures(TINY) if figure.name == name)
    able = tuple(one for one in figure.contenders if one.label in {RAW, OURS})
    return Figure(
        name=figure.name,
        title=figure.title,
        contenders=able,
        number=figure.number,
        unit=figure.unit,
        verdict=figure.verdict,
        goal=figure.goal,
        pinned=figure.pinned,
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_work_can_be_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure.STARTS_PER_ROUND", 1)
    figure = figure_of_our_own(name)
    outcome = Runner(PROGRAMS, made_agent(sys.executable).command).measure(figure, rounds=1)
    assert set(outcome.numbers) == {one.label for one in figure.contenders}
    assert all(len(numbers) == 1 for numbers in outcome.numbers.values())


@pytest.mark.parametrize("name", ["updates", "permission", "run"])
def test_the_agent_in_python_does_the_same_for_machines_without_a_compiler(name: str) -> None:
    outcome = Runner(PROGRAMS, IN_PYTHON.command).measure(figure_of_our_own(name), rounds=1)
    assert outcome.numbers[OURS]


def test_the_agent_is_the_one_in_c_where_there_is_a_compiler() -> None:
    has_one = any(map(shutil.which, ("cc", "gcc", "clang")))
    assert made_agent(sys.executable).kind.startswith("C," if has_one else "Python,")


@pytest.mark.parametrize("agent", [IN_PYTHON, made_agent(sys.executable)], ids=lambda agent: agent.kind[:6])
def test_every_update_of_an_agent_has_a_text_and_a_size_of_its_own(agent: Agent) -> None:
    prompt = b'{"jsonrpc":"2.0", "id": "p", "method": "session/prompt", "params": {}}\n'
    said = subprocess.run(
        [*agent.command, "chunks", "1000", "180"], input=prompt, capture_output=True, timeout=30, check=True
    ).stdout
    *updates, answer = said.splitlines(keepends=True)
    assert {len(line) for line in updates} == {180}
    assert len({json.loads(line)["params"]["update"]["content"]["text"] for line in updates}) == 1000
    assert json.loads(answer) == {"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "end_turn"}}


def test_a_client_that_fails_is_told_and_gives_no_number(tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text("raise SystemExit('no such luck')")
    programs = {name: (sys.executable, str(program)) for name in ("raw", "ours")}
    with pytest.raises(MeasurementError, match="no such luck"):
        Runner(programs, ("agent",)).measure(figure_of_our_own("updates"), rounds=1)


def test_the_page_says_what_falls_short_and_with_which_agent_it_was_measured() -> None:
    reached, missed = figure_of_our_own("updates"), figure_of_our_own("permission")
    outcomes = [
        Outcome(reached, {RAW: [1e6, 1.1e6, 0.9e6], OURS: [6e5, 6e5, 6e5]}),
        Outcome(missed, {RAW: [8e-6], OURS: [32e-6]}),
    ]
    assert short_of(outcomes) == ["permission: 4x, to reach <= 3x"]
    page = as_page(outcomes, Setting("a machine", "an agent", {"trio": "1"}, 5, "0.1, 0.2"))
    assert "600,000 /s ±0 % = 60 %" in page
    assert "- permission: 4x, to reach <= 3x" in page
    assert "agent: an agent" in page
    assert "32 us" in as_text(outcomes)
