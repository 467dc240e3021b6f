"""The classifier over the full product of stages, ways to end and intents of ours."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from acp_subagent.dsh.classify import ROWS, classify, classify_teardown, row_of
from acp_subagent.dsh.vocabulary import REASONS, Category, Stage, TurnEndKind
from acp_subagent.seam.activity import ExitStatus, TeardownReport
from acp_subagent.seam.diagnostic import SHOWN_RPC_CODES
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.advice import SHARED_ADVICE
from acp_subagent.supervised.ending import End
from tests.acp.test_classify import KILLED, report
from tests.dsh.every_ending import CELLS, INTENTS, WAYS

JUDGED = [(cell, classify(cell.facts)) for cell in CELLS]


def test_the_product_covers_every_way_a_wait_can_end() -> None:
    assert {way.facts["end"] for way in WAYS} == set(End)
    assert len({cell.name for cell in CELLS}) == len(CELLS) == (len(Stage) + 1) * len(WAYS) * len(INTENTS)
    kinds = {way.facts["turn_end"].kind for way in WAYS if way.facts.get("turn_end")}
    assert set(TurnEndKind) <= kinds


@pytest.mark.parametrize("stage", Stage)
def test_every_cell_says_exactly_what_is_expected(stage: Stage) -> None:
    for cell, verdict in JUDGED:
        if cell.facts.stage is stage:
            assert (verdict.stop_reason, verdict.diagnostic) == (cell.stop_reason, cell.diagnostic), cell.name


def test_every_verdict_agrees_with_its_own_line() -> None:
    for cell, verdict in JUDGED:
        assert (verdict.diagnostic is None) == (verdict.category is None), cell.name
        if verdict.diagnostic is None:
            assert verdict.reason is None, cell.name
            continue
        head = f"(provider: DSH SDK; stage: {verdict.stage}; category: {verdict.category}"
        assert head in verdict.diagnostic, cell.name
        assert ("; reason: " in verdict.diagnostic) == (verdict.reason is not None), cell.name


def test_a_diagnostic_is_made_of_closed_words_integers_and_signal_names() -> None:
    line = re.compile(
        rf"Subagent failure \(provider: DSH SDK; stage: ({'|'.join(Stage)}); category: ({'|'.join(Category)})"
        r"(; exit code: \d{1,3})?(; signal: (SIG[A-Z0-9]+|\d\d))?"
        rf"(; rpc code: ({'|'.join(map(str, SHOWN_RPC_CODES))}))?(; reason: ({'|'.join(REASONS)}))?\)"
    )
    for cell, verdict in JUDGED:
        assert verdict.diagnostic is None or line.fullmatch(verdict.diagnostic), verdict.diagnostic
        assert "CANARY" not in repr(verdict)
        assert "CANARY" not in repr(replace(cell.facts, reason=None)), cell.name


def test_every_row_of_the_table_is_reached() -> None:
    reached = {row_of(cell.facts).fact for cell in CELLS}
    assert {row.fact for row in ROWS} == reached
    assert len({row.fact for row in ROWS}) == len(ROWS)


def test_every_word_is_produced_by_the_product() -> None:
    verdicts = [verdict for _, verdict in JUDGED]
    assert {verdict.stage for verdict in verdicts} == set(Stage)
    assert {verdict.category for verdict in verdicts} == {*Category, None}
    assert {verdict.stop_reason for verdict in verdicts} == set(SubagentStopReason)
    assert {verdict.reason for verdict in verdicts} == {*REASONS, None}


def test_every_reason_has_one_sentence_of_advice() -> None:
    assert set(REASONS) <= set(SHARED_ADVICE)
    for sentence in SHARED_ADVICE.values():
        assert re.fullmatch(r"[A-Z][^\n]*[.]", sentence)


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        (report(KILLED), None),
        (report(ExitStatus(code=0)), None),
        (report(None, 2), "survivors"),
        (report(KILLED, 1), "survivors; signal: SIGKILL"),
        (report(KILLED, failed=True), "unknown; signal: SIGKILL"),
        (report(None), "unknown"),
        (report(None, failed=True), "unknown"),
    ],
)
def test_a_teardown_is_silent_only_when_the_tree_is_gone_and_its_end_was_seen(
    found: TeardownReport, fields: str | None
) -> None:
    verdict = classify_teardown(found)
    if fields is None:
        assert verdict is None
        return
    assert verdict is not None
    assert verdict.diagnostic == f"Subagent failure (provider: DSH SDK; stage: shutdown; category: {fields})"
