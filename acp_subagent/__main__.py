"""The entry of the command line: `acp-subagent` and `python -m acp_subagent`.

Owns what must come first: standard streams that exist, signals that never show a traceback, and one sentence
when the extra of the command line is not installed.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command line; the exit code."""
    try:
        _open_missing_streams()
        _heed_signals_from_the_start()
        try:
            from acp_subagent.cli.commands import main as command_line  # noqa: PLC0415  click may be missing
        except ModuleNotFoundError as error:
            if error.name != "click":
                raise
            os.write(2, b"acp-subagent: the command line needs click: pip install 'acp-subagent[cli]'\n")
            return 2
        return command_line(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


def _open_missing_streams() -> None:
    """Open what was closed before us: the number would soon be some other file's, and be written to."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def _heed_signals_from_the_start() -> None:
    """Before and after a run each of these ends us as Ctrl-C does.

    What was ignored stays ignored, but for SIGINT: a shell has it ignored in whatever it starts in the
    background, and that too can be interrupted, at any moment.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
