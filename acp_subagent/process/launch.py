"""What to launch, and everything that can be said against it before (and after) it was tried.

Owns the launch specification, the rule by which a command is found, and the closed words for why a child
cannot be started. The system's own error is the same for a missing command, directory and interpreter, so
these are looked for beforehand, and once more when the spawn has failed all the same. Nothing is started in
here.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from acp_subagent.errors import SpawnError

#: a script whose interpreter is a script whose interpreter ...: the kernel gives up as well
_MOST_INTERPRETERS = 4
#: as much of the first line as the kernel reads
_SHEBANG_BYTES = 256
#: the longest single argument or variable that Linux takes: 32 pages, the final NUL included
_LONGEST_STRING_BYTES = 32 * 4096 - 1
#: where a program is looked for when the child has no PATH at all
_DEFAULT_SEARCH_PATH = "/bin:/usr/bin"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.ETXTBSY)


class SpawnFault(StrEnum):
    """Why a command cannot be started."""

    COMMAND_EMPTY = "command-empty"  #: no command was given
    COMMAND_NOT_FOUND = "command-not-found"  #: no such file, or nothing of that name on the child's PATH
    NOT_EXECUTABLE = "not-executable"  #: it is there, and may not or cannot be executed
    NO_SHEBANG = "no-shebang"  #: a text file that does not say which interpreter runs it
    INTERPRETER_MISSING = "interpreter-missing"  #: it says which, and that one is not there
    ARGUMENTS_TOO_LONG = "arguments-too-long"  #: arguments and environment are more than the system takes
    NUL_BYTE = "nul-byte"  #: an argument or a variable contains a NUL byte
    OUT_OF_DESCRIPTORS = "out-of-descriptors"  #: the host has no file descriptor left


class WorkingDirectoryFault(StrEnum):
    """Why a working directory cannot be used."""

    MISSING = "cwd-missing"  #: none was given
    RELATIVE = "cwd-relative"  #: it is not absolute
    NOT_FOUND = "cwd-not-found"  #: there is nothing of that name
    NOT_DIRECTORY = "cwd-not-directory"  #: it is something else
    NOT_ENTERABLE = "cwd-not-enterable"  #: this user may not enter it


@dataclass(slots=True, kw_only=True)
class LaunchSpec:
    """One launch, completely resolved. Its `repr` shows no path, argument or environment."""

    command: str = field(repr=False)  #: absolute path of what is executed (see `resolve_command`)
    args: tuple[str, ...] = field(repr=False)  #: its arguments, without the command itself
    cwd: str = field(repr=False)  #: absolute working directory of the child
    environment: Mapping[str, str] = field(repr=False)  #: the whole environment, but for the launch cookie
    eof_grace_seconds: float  #: how long the tree may take to end after its stdin was closed
    term_grace_seconds: float  #: how long it may take after SIGTERM
    kill_grace_seconds: float  #: how long the kill and the reap may take
    exit_observation_seconds: float  #: how long to wait for the exit after a stream has ended
    stderr_tail_bytes: int  #: how much of the end of its stderr is kept


def working_directory_fault(path: str | None) -> WorkingDirectoryFault | None:
    """What is wrong with a working directory; None when it can be used now. Never raises."""
    if not path:
        return WorkingDirectoryFault.MISSING
    if not os.path.isabs(path):
        return WorkingDirectoryFault.RELATIVE
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return WorkingDirectoryFault.NOT_ENTERABLE
    except (OSError, ValueError):
        # ValueError: a NUL byte in it, or characters that cannot be in a file name.
        return WorkingDirectoryFault.NOT_FOUND
    if not stat.S_ISDIR(mode):
        return WorkingDirectoryFault.NOT_DIRECTORY
    if not _may_execute(path):
        return WorkingDirectoryFault.NOT_ENTERABLE
    return None


def resolve_command(command: str, *, search_path: str | None) -> str:
    """The absolute path of a command.

    With a slash in it, it is taken relative to the host's working directory. Else it is looked up in the
    absolute entries of `search_path` (the child's PATH; None = it has none): an empty or relative entry would
    run a file of the repository that the child works in. Symbolic links are kept.
    Raises `SpawnError` with a `SpawnFault`.
    """
    if not command.strip():
        raise SpawnError(SpawnFault.COMMAND_EMPTY)
    if "\0" in command:
        raise SpawnError(SpawnFault.NUL_BYTE)
    if "/" in command:
        path = _from_host_directory(command)
        fault = _file_fault(path)
        if fault is not None:
            raise SpawnError(fault)
        return path
    fault = SpawnFault.COMMAND_NOT_FOUND
    for entry in (_DEFAULT_SEARCH_PATH if search_path is None else search_path).split(":"):
        if os.path.isabs(entry) and "\0" not in entry:
            path = os.path.join(entry, command)
            found = _file_fault(path)
            if found is None:
                return path
            if found is SpawnFault.NOT_EXECUTABLE:
                # Something better may come later on the path; if not, this says more than "not found".
                fault = found
    raise SpawnError(fault)


def check_launch(spec: LaunchSpec) -> None:
    """Everything that can be known before the spawn. Raises `SpawnError` with the reason word."""
    fault = _strings_fault(spec) or _file_fault(spec.command) or _interpreter_fault(spec)
    if fault is not None:
        raise SpawnError(fault)


def spawn_error(error: OSError, spec: LaunchSpec) -> SpawnError:
    """The reason for which the system refused a spawn that had passed `check_launch`.

    The reason is empty when there is no word for it (no process, thread or memory left).
    """
    return SpawnError(_fault_of(error.errno, spec), cause=error)


def _fault_of(number: int | None, spec: LaunchSpec) -> str:
    if number in (errno.EMFILE, errno.ENFILE):
        return SpawnFault.OUT_OF_DESCRIPTORS
    if number == errno.E2BIG:
        return SpawnFault.ARGUMENTS_TOO_LONG
    if number == errno.ENOEXEC:
        is_program = _first_bytes(spec.command).startswith(b"\x7fELF")
        return SpawnFault.NOT_EXECUTABLE if is_program else SpawnFault.NO_SHEBANG
    if number in _NOT_THERE or number in _NOT_ALLOWED:
        # The directory or the file may have gone since they were checked; if both are fine, it is what the
        # file needs.
        late = working_directory_fault(spec.cwd) or _file_fault(spec.command) or _interpreter_fault(spec)
        return late or (SpawnFault.INTERPRETER_MISSING if number in _NOT_THERE else SpawnFault.NOT_EXECUTABLE)
    return ""


def _from_host_directory(command: str) -> str:
    if os.path.isabs(command):
        return command
    try:
        path = os.path.join(os.getcwd(), command)
    except OSError:
        raise SpawnError(SpawnFault.COMMAND_NOT_FOUND) from None
    # Taking ".." away by its spelling would be wrong behind a symbolic link.
    return path if ".." in path.split("/") else os.path.normpath(path)


def _file_fault(path: str) -> SpawnFault | None:
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return SpawnFault.NOT_EXECUTABLE
    except (OSError, ValueError):
        return SpawnFault.COMMAND_NOT_FOUND
    if not stat.S_ISREG(mode) or not _may_execute(path):
        return SpawnFault.NOT_EXECUTABLE
    return None


def _may_execute(path: str) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(path, os.X_OK, effective_ids=effective)


def _strings_fault(spec: LaunchSpec) -> SpawnFault | None:
    variables = (f"{name}={value}" for name, value in spec.environment.items())
    for text in (spec.command, spec.cwd, *spec.args, *variables):
        if "\0" in text:
            return SpawnFault.NUL_BYTE
        if len(text) * 4 > _LONGEST_STRING_BYTES and sys.platform == "linux":
            if len(text.encode(errors="surrogatepass")) > _LONGEST_STRING_BYTES:
                return SpawnFault.ARGUMENTS_TOO_LONG
    return None


def _interpreter_fault(spec: LaunchSpec) -> SpawnFault | None:
    """What is wrong with the interpreter that a script names in its first line."""
    path = spec.command
    for _ in range(_MOST_INTERPRETERS):
        words = _shebang(path)
        if not words:
            return None
        # The kernel takes a relative one from the child's directory.
        interpreter = os.path.join(spec.cwd, os.fsdecode(words[0]))
        fault = _file_fault(interpreter)
        if fault is not None:
            return SpawnFault.INTERPRETER_MISSING if fault is SpawnFault.COMMAND_NOT_FOUND else fault
        name = _looked_up_by_env(words)
        if name is not None:
            try:
                interpreter = resolve_command(name, search_path=spec.environment.get("PATH"))
            except SpawnError:
                return SpawnFault.INTERPRETER_MISSING
        path = interpreter
    return None


def _shebang(path: str) -> list[bytes]:
    """The words of a script's first line: the interpreter and its arguments; none for anything else."""
    first = _first_bytes(path)
    if not first.startswith(b"#!"):
        return []
    # Split as the kernel does: a carriage return is part of the interpreter's name.
    return [word for word in re.split(rb"[ \t]", first[2:].split(b"\n")[0]) if word]


def _first_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_SHEBANG_BYTES)
    except OSError:
        # A program need not be readable to be executed.
        return b""


def _looked_up_by_env(words: list[bytes]) -> str | None:
    """The program in `#!/usr/bin/env program`, which env looks up on the PATH; None for other first lines."""
    if os.path.basename(words[0]) != b"env":
        return None
    rest = [word for word in words[1:] if word != b"-S"]
    if not rest or rest[0].startswith(b"-") or b"=" in rest[0]:
        return None
    return os.fsdecode(rest[0])
