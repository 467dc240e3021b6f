"""The failure line: fixed order, absent facts left out, one size limit."""

from __future__ import annotations

import signal

import pytest

from acp_subagent.seam.activity import ExitStatus
from acp_subagent.seam.diagnostic import (
    MAX_DIAGNOSTIC_BYTES,
    SHOWN_RPC_CODES,
    TRUNCATION_SUFFIX,
    bounded,
    failure_line,
    join_lines,
)


def test_a_line_with_every_field_has_them_in_the_fixed_order() -> None:
    line = failure_line(
        provider="ACP",
        stage="prompt",
        category="unknown",
        stop_reason="unknown",
        exit_status=ExitStatus(code=3),
        rpc_code=-32603,
        reason="malformed-answer",
    )
    assert line == (
        "Subagent failure (provider: ACP; stage: prompt; category: unknown; stop reason: unknown;"
        " exit code: 3; rpc code: -32603; reason: malformed-answer)"
    )


def test_a_field_without_a_fact_is_left_out() -> None:
    line = failure_line(provider="DSH SDK", stage="session-run", category="transport")
    assert line == "Subagent failure (provider: DSH SDK; stage: session-run; category: transport)"


@pytest.mark.parametrize("code", [0, 1, 126, 127, 255])
def test_an_exit_code_is_shown_also_when_it_is_zero(code: int) -> None:
    line = failure_line(provider="ACP", stage="process", category="c", exit_status=ExitStatus(code=code))
    assert line.endswith(f"; category: c; exit code: {code})")


@pytest.mark.parametrize("number", range(1, 65))
def test_a_signal_is_shown_by_name_and_by_number_when_it_has_none(number: int) -> None:
    known = {member.value: member.name for member in signal.Signals}
    line = failure_line(provider="ACP", stage="process", category="c", exit_status=ExitStatus(signal=number))
    assert line.endswith(f"; category: c; signal: {known.get(number, number)})")


@pytest.mark.parametrize("code", sorted(SHOWN_RPC_CODES))
def test_a_code_of_the_closed_list_is_shown(code: int) -> None:
    line = failure_line(provider="ACP", stage="prompt", category="remote-error", rpc_code=code)
    assert line.endswith(f"; rpc code: {code})")


@pytest.mark.parametrize("code", [0, 1, -1, -32001, -32099, 42, 20260101])
def test_any_other_code_is_left_out(code: int) -> None:
    line = failure_line(provider="ACP", stage="prompt", category="remote-error", rpc_code=code)
    assert line.endswith("; category: remote-error)")


def test_lines_are_joined_and_absent_ones_left_out() -> None:
    assert join_lines("one", None, "", "two") == "one\ntwo"
    assert join_lines() == ""
    assert join_lines(None) == ""


@pytest.mark.parametrize("character", ["a", "é", "€", "😀"])
@pytest.mark.parametrize("offset", range(-8, 9))
@pytest.mark.parametrize("lead", range(4))
def test_the_limit_cuts_on_a_character_boundary_and_leaves_the_suffix_whole(
    character: str, offset: int, lead: int
) -> None:
    width = len(character.encode())
    text = "x" * lead + character * ((MAX_DIAGNOSTIC_BYTES - lead + offset) // width)
    cut = join_lines(text)
    if len(text.encode()) <= MAX_DIAGNOSTIC_BYTES:
        assert cut == text
        return
    assert cut.endswith(TRUNCATION_SUFFIX)
    kept = cut.removesuffix(TRUNCATION_SUFFIX)
    assert text.startswith(kept)
    room = MAX_DIAGNOSTIC_BYTES - len(TRUNCATION_SUFFIX.encode())
    assert room - width < len(kept.encode()) <= room


@pytest.mark.parametrize("character", ["é", "€", "😀"])
def test_no_cut_inside_a_character_at_any_offset_of_the_cut(character: str) -> None:
    for lead in range(len(character.encode())):
        cut = bounded("x" * lead + character * MAX_DIAGNOSTIC_BYTES)
        assert "\ufffd" not in cut
        assert len(cut.encode()) <= MAX_DIAGNOSTIC_BYTES
        assert set(cut.removesuffix(TRUNCATION_SUFFIX)) == set("x" * lead + character)


def test_a_cut_text_is_not_cut_again() -> None:
    once = bounded("x" * 5000)
    assert len(once.encode()) == MAX_DIAGNOSTIC_BYTES
    assert bounded(once) == once


def test_a_second_line_that_does_not_fit_is_what_is_cut() -> None:
    first = "a" * 4000
    cut = join_lines(first, "b" * 4000)
    assert cut.startswith(first + "\nbbb")
    assert cut.endswith(TRUNCATION_SUFFIX)
    assert len(cut.encode()) == MAX_DIAGNOSTIC_BYTES


def test_a_lone_surrogate_never_makes_it_fail() -> None:
    assert bounded("a\ud800b") == "a?b"
    assert bounded("\udfff" * 5000).endswith(TRUNCATION_SUFFIX)
