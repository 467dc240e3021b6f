"""What can be said against a launch before it is tried."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acp_subagent.errors import SpawnError
from acp_subagent.process.launch import (
    SpawnFault,
    WorkingDirectoryFault,
    check_launch,
    resolve_command,
    spawn_error,
    working_directory_fault,
)
from tests.process.stage import launch

CANARY = "canary-4711"


def program(directory: Path, name: str, text: str = "#!/bin/sh\n", mode: int = 0o755) -> str:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def fault_of_command(command: str, search_path: str | None) -> str:
    with pytest.raises(SpawnError) as raised:
        resolve_command(command, search_path=search_path)
    return raised.value.reason


def fault_of_launch(command: str, *args: str, **changes: object) -> str:
    with pytest.raises(SpawnError) as raised:
        check_launch(launch(command, *args, **changes))
    assert CANARY not in f"{raised.value!s}{raised.value!r}{raised.value.args}"
    return raised.value.reason


class TestResolving:
    def test_a_bare_name_is_looked_up_on_the_childs_path(self, tmp_path: Path) -> None:
        first, second = program(tmp_path, "a/tool"), program(tmp_path, "b/tool")
        path = f"{tmp_path}/none:{tmp_path}/a:{tmp_path}/b"
        assert resolve_command("tool", search_path=path) == first
        assert resolve_command("tool", search_path=f"{tmp_path}/b:{tmp_path}/a") == second

    @pytest.mark.parametrize("entry", ["", ".", "bin", "./bin"])
    def test_an_empty_or_relative_entry_of_the_path_is_passed_over(
        self, entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program(tmp_path, "tool")
        program(tmp_path, "bin/tool")
        monkeypatch.chdir(tmp_path)
        assert fault_of_command("tool", f"{entry}:/nowhere") == SpawnFault.COMMAND_NOT_FOUND

    def test_a_child_without_a_path_has_the_systems_own_programs(self) -> None:
        assert resolve_command("sh", search_path=None) in ("/bin/sh", "/usr/bin/sh")
        assert fault_of_command("sh", "") == SpawnFault.COMMAND_NOT_FOUND

    def test_a_file_that_may_not_be_executed_is_passed_over_and_remembered(self, tmp_path: Path) -> None:
        program(tmp_path, "a/tool", mode=0o644)
        assert fault_of_command("tool", f"{tmp_path}/a:/nowhere") == SpawnFault.NOT_EXECUTABLE
        good = program(tmp_path, "b/tool")
        assert resolve_command("tool", search_path=f"{tmp_path}/a:{tmp_path}/b") == good

    def test_a_name_with_a_slash_is_taken_from_the_hosts_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = program(tmp_path, "bin/tool")
        monkeypatch.chdir(tmp_path)
        assert resolve_command("bin/tool", search_path=None) == expected
        assert resolve_command("./bin/tool", search_path=None) == expected
        assert resolve_command(expected, search_path=None) == expected

    def test_symbolic_links_are_kept(self, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to(program(tmp_path, "tool"))
        assert resolve_command(str(link), search_path=None) == str(link)

    def test_dots_behind_a_symbolic_link_mean_what_the_system_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program(tmp_path, "real/tool")
        (tmp_path / "real/deep").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real/deep")
        monkeypatch.chdir(tmp_path)
        assert os.path.samefile(resolve_command("link/../tool", search_path=None), tmp_path / "real/tool")

    @pytest.mark.parametrize("command", ["", " ", "\t"])
    def test_no_command_is_no_command(self, command: str) -> None:
        assert fault_of_command(command, "/bin") == SpawnFault.COMMAND_EMPTY

    def test_the_other_ways_to_name_nothing(self, tmp_path: Path) -> None:
        assert fault_of_command("/no/such/thing", None) == SpawnFault.COMMAND_NOT_FOUND
        assert fault_of_command("a\0b", None) == SpawnFault.NUL_BYTE
        assert fault_of_command(str(tmp_path), None) == SpawnFault.NOT_EXECUTABLE
        assert fault_of_command("x" * 5000, "/bin") == SpawnFault.COMMAND_NOT_FOUND
        assert fault_of_command("/bin/sh/sh", None) == SpawnFault.COMMAND_NOT_FOUND


class TestChecking:
    def test_a_good_launch_passes(self) -> None:
        check_launch(launch("/bin/sh", "-c", "true"))

    @pytest.mark.parametrize(
        ("args", "changes"),
        [
            ((f"{CANARY}\0",), {}),
            ((), {"environment": {f"{CANARY}\0": "x"}}),
            ((), {"environment": {"X": f"{CANARY}\0"}}),
            ((), {"cwd": f"/{CANARY}\0"}),
        ],
    )
    def test_a_nul_byte_is_refused_wherever_it_stands(
        self, args: tuple[str, ...], changes: dict[str, object]
    ) -> None:
        assert fault_of_launch("/bin/sh", *args, **changes) == SpawnFault.NUL_BYTE

    def test_an_argument_longer_than_the_system_takes_is_refused(self) -> None:
        too_long = CANARY + "x" * 131072
        assert fault_of_launch("/bin/sh", too_long) == SpawnFault.ARGUMENTS_TOO_LONG
        variables = {"X": too_long}
        assert fault_of_launch("/bin/sh", environment=variables) == SpawnFault.ARGUMENTS_TOO_LONG

    def test_a_missing_interpreter_is_named_as_what_is_missing(self, tmp_path: Path) -> None:
        script = program(tmp_path, "script", f"#!/no/{CANARY}\n")
        assert fault_of_launch(script) == SpawnFault.INTERPRETER_MISSING

    def test_a_carriage_return_behind_the_interpreter_is_part_of_its_name(self, tmp_path: Path) -> None:
        path = tmp_path / "script"
        path.write_bytes(b"#!/bin/sh\r\n")
        path.chmod(0o755)
        assert fault_of_launch(str(path)) == SpawnFault.INTERPRETER_MISSING

    def test_an_interpreter_that_may_not_be_executed_is_said_to_be_that(self, tmp_path: Path) -> None:
        interpreter = program(tmp_path, "interpreter", mode=0o644)
        script = program(tmp_path, "script", f"#! {interpreter} -x\n")
        assert fault_of_launch(script) == SpawnFault.NOT_EXECUTABLE

    def test_an_interpreter_is_followed_to_its_own_interpreter(self, tmp_path: Path) -> None:
        interpreter = program(tmp_path, "interpreter", "#!/no/such/thing\n")
        script = program(tmp_path, "script", f"#!{interpreter}\n")
        assert fault_of_launch(script) == SpawnFault.INTERPRETER_MISSING

    @pytest.mark.parametrize("line", ["#!/usr/bin/env node-4711", "#!/usr/bin/env -S node-4711 --flag"])
    def test_a_program_that_env_will_not_find_is_a_missing_interpreter(
        self, line: str, tmp_path: Path
    ) -> None:
        script = program(tmp_path, "script", line + "\n")
        assert fault_of_launch(script) == SpawnFault.INTERPRETER_MISSING
        program(tmp_path, "bin/node-4711")
        check_launch(launch(script, environment={"PATH": f"{tmp_path}/bin"}))

    @pytest.mark.parametrize(
        "line", ["#!/usr/bin/env -i X=1 nothing", "#!/usr/bin/env X=1 nothing", "#!", "#! "]
    )
    def test_a_first_line_that_is_not_plain_is_left_to_the_system(self, line: str, tmp_path: Path) -> None:
        check_launch(launch(program(tmp_path, "script", line + "\n")))

    def test_arguments_and_environment_stay_out_of_the_repr(self) -> None:
        assert CANARY not in repr(launch("/bin/sh", CANARY, environment={CANARY: CANARY}))


class TestAfterwards:
    @pytest.mark.parametrize(
        ("number", "word"),
        [
            (errno.EMFILE, SpawnFault.OUT_OF_DESCRIPTORS),
            (errno.ENFILE, SpawnFault.OUT_OF_DESCRIPTORS),
            (errno.E2BIG, SpawnFault.ARGUMENTS_TOO_LONG),
            (errno.ENOENT, SpawnFault.INTERPRETER_MISSING),
            (errno.EACCES, SpawnFault.NOT_EXECUTABLE),
            (errno.ETXTBSY, SpawnFault.NOT_EXECUTABLE),
            (errno.EAGAIN, ""),
            (errno.ENOMEM, ""),
        ],
    )
    def test_what_the_system_says_is_put_in_our_words(self, number: int, word: str) -> None:
        error = spawn_error(OSError(number, CANARY), launch("/bin/sh"))
        assert error.reason == word
        assert CANARY not in f"{error!s}{error!r}"

    def test_a_directory_or_command_that_vanished_meanwhile_is_named(self) -> None:
        missing = OSError(errno.ENOENT, "")
        assert spawn_error(missing, launch("/bin/sh", cwd="/none")).reason == WorkingDirectoryFault.NOT_FOUND
        assert spawn_error(missing, launch("/none")).reason == SpawnFault.COMMAND_NOT_FOUND

    def test_a_text_without_a_shebang_is_told_from_a_foreign_program(self, tmp_path: Path) -> None:
        refused = OSError(errno.ENOEXEC, "")
        text = program(tmp_path, "text", "echo hello\n")
        foreign = program(tmp_path, "foreign", "\x7fELF...")
        assert spawn_error(refused, launch(text)).reason == SpawnFault.NO_SHEBANG
        assert spawn_error(refused, launch(foreign)).reason == SpawnFault.NOT_EXECUTABLE


class TestWorkingDirectory:
    def test_a_directory_is_fine(self, tmp_path: Path) -> None:
        assert working_directory_fault(str(tmp_path)) is None

    @pytest.mark.parametrize(
        ("path", "fault"),
        [
            (None, WorkingDirectoryFault.MISSING),
            ("", WorkingDirectoryFault.MISSING),
            ("relative", WorkingDirectoryFault.RELATIVE),
            ("./x", WorkingDirectoryFault.RELATIVE),
            ("/no/such/directory", WorkingDirectoryFault.NOT_FOUND),
            ("/a\0b", WorkingDirectoryFault.NOT_FOUND),
            ("/\ud800", WorkingDirectoryFault.NOT_FOUND),
            ("/" + "x" * 5000, WorkingDirectoryFault.NOT_FOUND),
            ("/bin/sh", WorkingDirectoryFault.NOT_DIRECTORY),
            ("/bin/sh/x", WorkingDirectoryFault.NOT_FOUND),
        ],
    )
    def test_what_cannot_be_one_is_told_apart(self, path: str | None, fault: WorkingDirectoryFault) -> None:
        assert working_directory_fault(path) is fault

    def test_one_that_this_user_may_not_enter_is_told_apart(self) -> None:
        with tempfile.TemporaryDirectory() as closed, as_an_ordinary_user(closed):
            assert working_directory_fault(closed) is WorkingDirectoryFault.NOT_ENTERABLE
            assert working_directory_fault(f"{closed}/inner") is WorkingDirectoryFault.NOT_ENTERABLE


@contextmanager
def as_an_ordinary_user(closed: str) -> Iterator[None]:
    """Make a directory one that may not be entered; nothing is closed to root, so be somebody else."""
    is_root = os.geteuid() == 0
    os.chmod(closed, 0o600)
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        os.chmod(closed, 0o700)
