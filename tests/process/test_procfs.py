"""Reading the process table, and signalling exactly the process that was read."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from acp_subagent.process.procfs import (
    Identity,
    ProcTable,
    parse_cookie,
    parse_stat,
    signal_group,
    signal_process,
)

TABLE = ProcTable()


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def identity(pid: int) -> Identity:
    facts = TABLE.facts(pid)
    assert facts is not None
    return facts.identity


@pytest.mark.parametrize("name", [b"sh", b"a b", b")", b"x) S 1 (y", b"line\nbreak", b"((()", b""])
def test_a_name_in_stat_may_contain_anything(name: bytes) -> None:
    tail = b" T 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4711 5 6 7\n"
    facts = parse_stat(b"42 (" + name + b")" + tail)
    assert facts == (42, 7, 8, 9, "T", 3, 4711)
    assert facts.stopped


@pytest.mark.parametrize(
    ("environ", "cookie"),
    [
        (b"", b""),
        (b"A=1\0B=2\0", b""),
        (b"ACP_SUBAGENT_LAUNCH=/s.1\0A=1\0", b"/s.1"),
        (b"A=1\0ACP_SUBAGENT_LAUNCH=/s.1/t.2\0B=2\0", b"/s.1/t.2"),
        (b"A=1\0ACP_SUBAGENT_LAUNCH=/s.1", b"/s.1"),
        (b"NOT_ACP_SUBAGENT_LAUNCH=/s.1\0", b""),
        (b"A=ACP_SUBAGENT_LAUNCH=/s.1\0", b""),
    ],
)
def test_the_cookie_is_found_wherever_it_stands(environ: bytes, cookie: bytes) -> None:
    assert parse_cookie(environ) == cookie


def test_what_is_read_of_a_process_is_what_psutil_reads() -> None:
    with sleeper() as process:
        facts, other = TABLE.facts(process.pid), psutil.Process(process.pid)
        assert facts is not None
        assert facts.parent == other.ppid() == os.getpid()
        assert facts.session == facts.group == process.pid
        assert facts.alive
        assert facts.start <= TABLE.now()


def test_a_process_that_has_gone_is_an_ordinary_answer() -> None:
    with sleeper() as process:
        facts = TABLE.facts(process.pid)
        assert facts is not None
    assert TABLE.facts(process.pid) is None
    assert TABLE.cookie(facts) is None
    assert TABLE.children(process.pid) == []
    assert not signal_process(TABLE, facts.identity, signal.SIGTERM)
    assert not signal_group(process.pid, signal.SIGTERM)


def test_a_zombie_is_dead() -> None:
    with sleeper() as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        facts = TABLE.facts(process.pid)
        assert facts is not None
        assert not facts.alive


def test_children_and_sessions_are_listed() -> None:
    with sleeper() as process:
        assert process.pid in (TABLE.children(os.getpid()) or [])
        sessions = TABLE.sessions()
        assert sessions[process.pid] == process.pid
        assert sessions[os.getpid()] == os.getsid(0)


def test_who_ends_before_it_is_asked_for_its_session_is_told_as_in_one_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Left out, it would hide a child that it made after the list."""
    with sleeper() as process:
        gone = process.pid
    listed = [str(os.getpid()), str(gone), "self"]
    monkeypatch.setattr(os, "listdir", lambda path: listed)
    assert TABLE.sessions() == {os.getpid(): os.getsid(0), gone: gone}


def test_who_is_left_behind_while_numbers_are_tried_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a chain of processes, each of which starts the next one and ends."""
    newest = TABLE.newest()
    assert newest is not None
    getsid = os.getsid
    with ExitStack() as stack:
        chain: list[subprocess.Popen[bytes]] = []

        def getsid_of_a_link(pid: int) -> int:
            if pid == chain[0].pid and len(chain) == 1:
                chain.append(stack.enter_context(sleeper()))
                chain[0].kill()
                chain[0].wait()
            return getsid(pid)

        chain.append(stack.enter_context(sleeper()))
        monkeypatch.setattr(os, "getsid", getsid_of_a_link)
        found = TABLE.newer(newest)
        if found is None:
            pytest.skip("more than 256 processes were started on this machine within a millisecond")
        assert chain[0].pid not in found
        assert found[chain[1].pid] == chain[1].pid


def test_the_cookie_of_who_has_just_ended_cannot_be_told() -> None:
    """It was still shown as running: that it had none is not known."""
    with sleeper() as process:
        facts = TABLE.facts(process.pid)
        assert facts is not None
        assert TABLE.cookie(facts) == b""
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert TABLE.cookie(facts) is None
    assert TABLE.cookie(facts) is None


def test_the_cookie_of_who_may_not_be_read_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "refused")

    facts = TABLE.facts(os.getpid())
    assert facts is not None
    monkeypatch.setattr(os, "open", refused)
    assert TABLE.cookie(facts) == b""


def test_the_processes_younger_than_a_number_are_found_without_their_threads() -> None:
    newest = TABLE.newest()
    assert newest is not None
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with sleeper() as process:
            found = TABLE.newer(newest)
            if found is None:
                pytest.skip("more than 256 processes were started on this machine within a millisecond")
            assert found[process.pid] == process.pid
            assert thread.native_id not in found
            assert os.getpid() not in found
    finally:
        release.set()
        thread.join()


def test_numbers_that_are_too_many_or_have_come_round_are_not_tried() -> None:
    newest = TABLE.newest()
    assert newest is not None
    assert TABLE.newer(newest - 100_000) is None
    assert TABLE.newer(newest + 1_000_000) is None


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSYS, errno.EPERM])
def test_what_cannot_be_tried_is_listed_instead(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = TABLE.newest()
    assert newest is not None

    def refused(*_: object) -> int:
        raise OSError(error, "refused")

    with sleeper():
        monkeypatch.setattr(os, "pidfd_open", refused)
        assert TABLE.newer(newest) is None


@pytest.mark.parametrize("descriptors", ["to spare", "used up"])
def test_a_number_with_another_start_time_is_never_signalled(
    descriptors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if descriptors == "used up":
        monkeypatch.setattr(os, "pidfd_open", used_up)
    with sleeper() as process:
        real = identity(process.pid)
        for start in (real.start - 1, real.start + 1, 0):
            assert not signal_process(TABLE, Identity(real.pid, start), signal.SIGKILL)
        assert process.poll() is None
        assert signal_process(TABLE, real, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def used_up(*_: object) -> int:
    raise OSError(errno.EMFILE, "no descriptors")


def test_neither_we_nor_init_are_ever_signalled() -> None:
    assert not signal_process(TABLE, identity(os.getpid()), signal.SIGTERM)
    assert not signal_process(TABLE, identity(1), signal.SIGTERM)
    assert not signal_group(os.getpgrp(), signal.SIGTERM)
    assert not signal_group(0, signal.SIGTERM)
    assert not signal_group(1, signal.SIGTERM)


def test_running_out_of_descriptors_is_not_taken_for_an_empty_table() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        for question in (TABLE.sessions, lambda: TABLE.facts(1), lambda: TABLE.children(os.getpid())):
            with pytest.raises(OSError, match="open files") as raised:
                question()
            assert raised.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_room_says_in_one_sentence_that_windows_is_not_supported() -> None:
    program = "import sys; sys.platform = 'win32'; import acp_subagent.process"
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert outcome.returncode == 1
    last_line = outcome.stderr.splitlines()[-1]
    assert last_line.startswith("ImportError: acp_subagent.process needs a POSIX system")


def test_psutil_and_trio_are_not_needed_to_read_and_signal() -> None:
    program = (
        "import sys; import acp_subagent.process.tree; "
        "sys.exit(bool({'psutil', 'trio', 'pydantic'} & set(sys.modules)))"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, check=False, timeout=30
    )
    assert outcome.returncode == 0
