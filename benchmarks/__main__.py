"""`python -m benchmarks`: bring what is needed, measure, print, and write `docs/performance.md`.

The page is written only by a full run: all figures, full size, at least five rounds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.figures import Figure, figures
from benchmarks.measure import MeasurementError, Outcome, Runner
from benchmarks.provision import REPOSITORY, ProvisionError, provision
from benchmarks.report import Setting, as_page, as_text, machine, short_of
from tests.support.npm_packages import ProvisionError as NpmProvisionError

LEAST_ROUNDS = 5
QUICK_SCALE, QUICK_ROUNDS = 0.05, 2
PAGE = REPOSITORY / "docs" / "performance.md"


def main(arguments: list[str]) -> int:
    """0 when it was measured, whatever came out; 1 when it could not be; 2 for usage."""
    chosen = parsed(arguments)
    everything = figures(QUICK_SCALE if chosen.quick else 1.0)
    wanted = [figure for figure in everything if not chosen.only or figure.name in chosen.only]
    rounds = chosen.rounds or (QUICK_ROUNDS if chosen.quick else LEAST_ROUNDS)
    try:
        tell("bringing what is needed ...")
        bench = provision()
        before = load()
        outcomes = measured(wanted, Runner(bench.clients, bench.agent.command), rounds)
    except (ProvisionError, NpmProvisionError) as problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        return 1
    setting = Setting(machine(), bench.agent.kind, bench.versions, rounds, f"{before}, {load()}")
    print(f"agent: {setting.agent}; {rounds} rounds; load average {setting.load}\n")
    for line in short_of(outcomes):
        print(f"falls short: {line}")
    complete = len(outcomes) == len(everything) and not chosen.quick and rounds >= LEAST_ROUNDS
    if complete:
        PAGE.write_text(as_page(outcomes, setting), encoding="utf-8")
        print(f"written: {PAGE.relative_to(REPOSITORY)}")
    return 0 if len(outcomes) == len(wanted) else 1


def measured(wanted: list[Figure], runner: Runner, rounds: int) -> list[Outcome]:
    """Every figure that could be measured, printed when it is there; the others are told."""
    outcomes = []
    for figure in wanted:
        began = time.monotonic()
        try:
            outcome = runner.measure(figure, rounds, tell)
        except MeasurementError as problem:
            print(f"benchmarks: {figure.name} could not be measured: {problem}", file=sys.stderr)
        else:
            tell(f"{figure.name}: done in {time.monotonic() - began:.0f} s")
            print(f"{as_text([outcome])}\n", flush=True)
            outcomes.append(outcome)
    return outcomes


def parsed(arguments: list[str]) -> argparse.Namespace:
    names = [figure.name for figure in figures()]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--rounds", type=int, help=f"default {LEAST_ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the work, two rounds, no page")
    return parser.parse_args(arguments)


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def tell(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
