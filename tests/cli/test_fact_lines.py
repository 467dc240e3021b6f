"""Every fact of the failure table, as the real command line tells it."""

from __future__ import annotations

import pytest

from acp_subagent.acp.failure_table import ROWS
from tests.cli.fact_lines import CASES, NOT_HERE, Case, conduct, said


def test_no_fact_is_left_out() -> None:
    assert [case.fact for case in CASES] == [row.fact for row in ROWS if row.fact not in NOT_HERE]
    assert set(NOT_HERE) <= {row.fact for row in ROWS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fact)
def test_the_command_line_tells_the_fact_by_its_line(case: Case) -> None:
    assert said(conduct(case)) == (case.stop_reason, case.said)
