"""The two process tables say the same."""

from __future__ import annotations

import os

from acp_subagent.process.table import PsutilTable, process_table


def test_the_tables_of_psutil_and_of_proc_agree() -> None:
    ours, theirs = process_table(), PsutilTable()
    mine, other = ours.facts(os.getpid()), theirs.facts(os.getpid())
    assert mine is not None
    assert other is not None
    assert (mine.pid, mine.parent, mine.group, mine.session) == (
        other.pid,
        other.parent,
        other.group,
        other.session,
    )
    assert other.alive
    assert theirs.now() <= other.start + 100 * 100_000
    assert set(theirs.sessions().values()) & set(ours.sessions().values())
    assert theirs.cookie(other) == ours.cookie(mine)
    assert theirs.facts(2**22 + 1) is None
