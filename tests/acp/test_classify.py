"""The classifier over the full product of stages, ways to end, intents of ours and permission decisions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import cache

import pytest

from acp_subagent.acp.classify import Verdict, classify, classify_teardown, permission_line
from acp_subagent.acp.failure_table import ROWS, Facts, row_of
from acp_subagent.acp.permissions import PermissionPolicy
from acp_subagent.acp.vocabulary import ADVICE, Category, Reason, Stage
from acp_subagent.process.launch import SpawnFault, WorkingDirectoryFault
from acp_subagent.seam.activity import (
    ExitStatus,
    PermissionDecision,
    PermissionRecord,
    Rung,
    TeardownReport,
    ToolKind,
)
from acp_subagent.seam.diagnostic import SHOWN_RPC_CODES
from acp_subagent.seam.result import SubagentStopReason
from acp_subagent.supervised.ending import DeadlineName, End, Intent
from tests.acp.every_ending import CELLS, DECISIONS, INTENTS, WAYS, Cell


@cache
def judged() -> list[tuple[Cell, Verdict]]:
    return [(cell, classify(cell.facts)) for cell in CELLS]


def produced(take: Callable[[Verdict], object]) -> set[object]:
    return {take(verdict) for _, verdict in judged()}


def test_the_product_covers_every_way_a_wait_can_end() -> None:
    assert {way.facts["end"] for way in WAYS} == set(End)
    assert all(set(way.said) == set(Stage) - {Stage.TEARDOWN} for way in WAYS)
    assert len({cell.name for cell in CELLS}) == len(CELLS) == 6 * len(WAYS) * len(INTENTS) * len(DECISIONS)


@pytest.mark.parametrize("stage", Stage)
def test_every_cell_says_exactly_what_is_expected(stage: Stage) -> None:
    for cell, verdict in judged():
        if cell.facts.stage is stage:
            assert (verdict.stop_reason, verdict.diagnostic) == (cell.stop_reason, cell.diagnostic), cell.name


def test_every_verdict_agrees_with_its_own_line() -> None:
    for cell, verdict in judged():
        line = verdict.diagnostic or ""
        if verdict.category is None:
            assert "Subagent failure" not in line, cell.name
            assert verdict.reason is None, cell.name
            continue
        assert verdict.stop_reason is SubagentStopReason.ERROR, cell.name
        assert f"(provider: ACP; stage: {verdict.stage}; category: {verdict.category}" in line, cell.name
        assert ("; reason: " in line) == (verdict.reason is not None), cell.name
        assert verdict.reason is None or f"; reason: {verdict.reason})" in line, cell.name


def test_a_diagnostic_is_made_of_closed_words_integers_and_signal_names() -> None:
    words = "|".join(re.escape(word) for word in sorted(Reason))
    line = (
        rf"Subagent failure \(provider: ACP; stage: ({'|'.join(Stage)}); category: ({'|'.join(Category)})"
        r"(; stop reason: (max_turn_requests|unknown))?(; exit code: \d{1,3})?"
        r"(; signal: (SIG[A-Z0-9]+|\d\d))?"
        rf"(; rpc code: ({'|'.join(map(str, SHOWN_RPC_CODES))}))?(; reason: ({words}))?\)"
    )
    permission = (
        rf"ACP permission \(policy: ({'|'.join(PermissionPolicy)}); request: ({'|'.join(ToolKind)});"
        r" decision: (allowed|denied)\)"
    )
    whole = re.compile(rf"{line}(\n{permission})?|{permission}")
    for cell, verdict in judged():
        assert verdict.diagnostic is None or whole.fullmatch(verdict.diagnostic), verdict.diagnostic
        assert "CANARY" not in repr(verdict)
        assert "CANARY" not in repr(replace(cell.facts, reason=None)), cell.name


def test_every_row_of_the_table_is_reached() -> None:
    reached = {row_of(cell.facts).fact for cell in CELLS}
    assert {row.fact for row in ROWS} == reached
    assert len({row.fact for row in ROWS}) == len(ROWS)


def test_every_word_is_produced_by_the_product() -> None:
    assert produced(lambda verdict: verdict.stage) == set(Stage)
    assert produced(lambda verdict: verdict.category) == {*Category, None}
    assert produced(lambda verdict: verdict.stop_reason) == set(SubagentStopReason)
    assert produced(lambda verdict: verdict.reason) == {*Reason, None}


@pytest.mark.parametrize("words", [SpawnFault, WorkingDirectoryFault, DeadlineName])
def test_a_reason_that_another_room_names_is_spelled_the_same_here(words: type[StrEnum]) -> None:
    assert set(words) <= set(Reason)


def test_every_reason_has_one_sentence_of_advice() -> None:
    assert set(ADVICE) == set(Reason)
    for sentence in ADVICE.values():
        assert re.fullmatch(r"[A-Z][^\n]*[.]", sentence)


def test_a_deadline_without_a_name_is_still_a_timeout() -> None:
    verdict = classify(Facts(stage=Stage.PROMPT, end=End.UNANSWERED, intent=Intent.DEADLINE))
    assert verdict.diagnostic == "Subagent failure (provider: ACP; stage: prompt; category: timeout)"


def report(exit_status: ExitStatus | None, survivors: int = 0, *, failed: bool = False) -> TeardownReport:
    return TeardownReport(
        rungs={Rung.EOF: 0.1},
        processes_found=1,
        survivors=survivors,
        exit_status=exit_status,
        failed=failed,
    )


KILLED = ExitStatus(signal=9)


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        (report(KILLED), None),
        (report(ExitStatus(code=0)), None),
        (report(None, 2), "survivors"),
        (report(KILLED, 1), "survivors; signal: SIGKILL"),
        (report(ExitStatus(code=143), 1, failed=True), "survivors; exit code: 143"),
        (report(KILLED, failed=True), "process-exit; signal: SIGKILL"),
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
    assert verdict.stage is Stage.TEARDOWN
    assert verdict.diagnostic == f"Subagent failure (provider: ACP; stage: teardown; category: {fields})"


@pytest.mark.parametrize("policy", PermissionPolicy)
@pytest.mark.parametrize("kind", ToolKind)
def test_the_permission_line_names_policy_kind_and_decision(policy: PermissionPolicy, kind: ToolKind) -> None:
    record = PermissionRecord(kind, str(policy), PermissionDecision.DENIED, "CANARY")
    assert permission_line(record) == (
        f"ACP permission (policy: {policy}; request: {kind}; decision: denied)"
    )


def test_a_policy_that_is_none_of_our_words_gets_no_line() -> None:
    record = PermissionRecord(ToolKind.EDIT, "CANARY", PermissionDecision.DENIED, "c")
    assert permission_line(record) is None
