"""The two process tables say the same."""

from __future__ import annotations

import os
import subprocess

import psutil
import pytest

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


def test_both_tables_cannot_tell_the_cookie_of_who_has_just_ended() -> None:
    ended = subprocess.Popen(["/bin/true"])
    tables = process_table(), PsutilTable()
    facts = [table.facts(ended.pid) for table in tables]
    ended.wait()
    alive = [row._replace(state="S") for row in facts if row is not None]
    assert [table.cookie(row) for table, row in zip(tables, alive, strict=True)] == [None, None]


def test_both_tables_tell_who_has_ended_before_it_was_asked_for_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    monkeypatch.setattr(os, "listdir", lambda path: [str(ended.pid)])
    assert process_table().sessions() == {ended.pid: ended.pid}
    monkeypatch.setattr(psutil, "pids", lambda: [ended.pid])
    assert PsutilTable().sessions() == {ended.pid: ended.pid}
