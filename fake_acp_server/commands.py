"""The subcommands ``record``, ``replay`` and ``check``: their arguments, and the call of what does it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class CommandUsageError(Exception):
    """The arguments of a subcommand cannot be understood; the text says why."""


def _record(arguments: list[str]) -> int:
    files, command = _split(arguments)
    if len(files) != 1 or not command:
        raise CommandUsageError("usage: fake-acp-server record FILE -- AGENT [ARG ...]")
    from fake_acp_server.cassette import record

    try:
        return record(files[0], command)
    except OSError as problem:
        raise CommandUsageError(f"record: {problem}") from None


def _replay(arguments: list[str]) -> int:
    files = [argument for argument in arguments if not argument.startswith("--")]
    options = {argument for argument in arguments if argument.startswith("--")}
    if len(files) != 1 or options - {"--exact", "--timing"}:
        raise CommandUsageError("usage: fake-acp-server replay [--exact] [--timing] FILE")
    from fake_acp_server.cassette import replay

    return replay(files[0], "--exact" in options, "--timing" in options)


def _check(arguments: list[str]) -> int:
    from fake_acp_server import builtin, check

    options, client = _split(arguments)
    scenarios: list[str] = []
    timeout_seconds = 60.0
    rest = iter(options)
    for option in rest:
        value = next(rest, "")
        if option == "--scenario" and builtin.find(value):
            scenarios.append(value)
        elif option == "--timeout" and _positive(value):
            timeout_seconds = float(value)
        else:
            client = []
    if not client:
        raise CommandUsageError(
            "usage: fake-acp-server check [--scenario NAME]... [--timeout SECONDS] -- CLIENT [ARG ...]"
        )
    return check.run(client, scenarios or list(check.CONFORMANCE), timeout_seconds)


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after the first ``--``."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


COMMANDS: dict[str, Callable[[list[str]], int]] = {"record": _record, "replay": _replay, "check": _check}
