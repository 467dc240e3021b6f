"""The command line. Arguments are read by hand: ``argparse`` costs more than the rest of the start."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from fake_acp_server.scenario import Scenario
    from fake_acp_server.strict import Judge

USAGE = """\
usage: fake-acp-server [--scenario NAME_OR_FILE | --json SCENARIO] [--log FILE] [--strict] [--report FILE]
                       [ARG ...]
       fake-acp-server record FILE -- AGENT [ARG ...]
       fake-acp-server replay [--exact] [--timing] FILE
       fake-acp-server check [--scenario NAME]... [--timeout SECONDS] -- CLIENT [ARG ...]
       fake-acp-server --list | --rules | --reference | --schema | --report-schema | --help | --version

A scriptable ACP v1 agent on stdin and stdout, for testing ACP clients.

  --scenario NAME_OR_FILE  a built-in scenario (see --list) or a TOML or JSON file; default: demo
  --json SCENARIO          the scenario itself, as JSON
  --log FILE               write every frame of both sides to FILE, one JSON object a line
  --strict                 judge what the client sends; exit 1 when it broke a rule of the protocol
  --report FILE            write what was found to FILE, as JSON (implies --strict)
  --list                   name the built-in scenarios, with one line of purpose each
  --rules                  name the rules of strict mode
  --reference              print the reference of scenario files, as Markdown
  --schema                 print the JSON Schema of scenario files
  --report-schema          print the JSON Schema of the report
  --version                print the version
  --help                   print this text

  record                   stand between a client and the real AGENT; write what they say to FILE,
                           secrets masked
  replay                   play the agent's side of FILE; when the client does something else, say where
                           and exit 1 (--exact: also when it says something else; --timing: as slow as
                           it was recorded)
  check                    run CLIENT once for each conformance scenario, in strict mode, and print a
                           table; the agent's command is put at CLIENT's end, or in the place of {agent}
                           or {agent-file}

Further arguments are accepted, and only shown by the step `echo: argv`.
Environment, where no option says otherwise: FAKE_ACP_SCENARIO (name or file), FAKE_ACP_SCENARIO_JSON,
FAKE_ACP_LOG, FAKE_ACP_STRICT (1), FAKE_ACP_REPORT (file).
"""

USAGE_ERROR = 2


class UsageError(Exception):
    """The command line cannot be understood; the text says why."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the fake agent, or answer ``--list`` and the like; ends the process."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments and arguments[0] in ("record", "replay", "check"):
            _run_command(arguments[0], arguments[1:])
        options = read_options(arguments)
        if _answer_and_leave(options):
            sys.stdout.flush()
            return
        run(arguments, options)
    except UsageError as problem:
        _fail(str(problem))
    except KeyboardInterrupt:
        os._exit(130)
    except BrokenPipeError:  # a reader like ``head`` has seen enough
        os._exit(141)


def _run_command(name: str, arguments: list[str]) -> NoReturn:
    from fake_acp_server.commands import COMMANDS, CommandUsageError

    try:
        code = COMMANDS[name](arguments)
    except CommandUsageError as problem:
        _fail(str(problem))
    sys.stdout.flush()
    os._exit(code)


def run(arguments: list[str], options: dict[str, str]) -> None:
    """Be the agent that the options and the environment ask for."""
    from fake_acp_server.scenario import ScenarioError, find

    try:
        scenario = find(options.get("--scenario"), options.get("--json"))
    except ScenarioError as problem:
        _fail(str(problem))
    serve(scenario, arguments, options)


def serve(scenario: Scenario, arguments: list[str], options: dict[str, str]) -> None:
    """Serve the scenario on the standard streams until the client closes our stdin."""
    from fake_acp_server.agent import Agent
    from fake_acp_server.wire import IS_WINDOWS, FrameLog

    if IS_WINDOWS:
        import msvcrt

        for fd in (0, 1, 2):
            msvcrt.setmode(fd, os.O_BINARY)  # type: ignore[attr-defined]  # Windows only
    if scenario.launcher:
        from fake_acp_server.faults import start_launcher

        start_launcher(scenario.launcher)
    log_path = options.get("--log") or os.environ.get("FAKE_ACP_LOG")
    try:
        log = FrameLog(log_path) if log_path else None
        judge = _judge(scenario, options)
    except OSError as problem:
        _fail(f"the log or the report cannot be written: {problem}")
    Agent(scenario, arguments, log, judge).serve()


def _judge(scenario: Scenario, options: dict[str, str]) -> Judge | None:
    report = options.get("--report") or os.environ.get("FAKE_ACP_REPORT")
    if not report and "--strict" not in options and os.environ.get("FAKE_ACP_STRICT", "") in ("", "0"):
        return None
    from fake_acp_server.strict import Judge

    return Judge(scenario.name, report)


_WITH_VALUE = ("--scenario", "--json", "--log", "--report")
_ALONE = (
    "--strict",
    "--list",
    "--rules",
    "--reference",
    "--schema",
    "--report-schema",
    "--help",
    "-h",
    "--version",
)


def read_options(arguments: list[str]) -> dict[str, str]:
    """Option -> value; what is no option of ours is skipped. ``UsageError`` when a value is missing."""
    options: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in _WITH_VALUE:
            options[name] = value if equals else next(rest, "")
            if not options[name]:
                raise UsageError(f"{name} needs a value")
        elif argument in _ALONE:
            options[argument] = ""
    return options


def _answer_and_leave(options: dict[str, str]) -> bool:
    """Print what was asked for instead of serving; whether anything was."""
    if "--help" in options or "-h" in options:
        sys.stdout.write(USAGE)
    elif "--version" in options:
        from fake_acp_server import __version__

        sys.stdout.write(f"fake-acp-server {__version__}\n")
    elif "--list" in options:
        from fake_acp_server import builtin

        _print_table(builtin.purposes())
    elif "--rules" in options:
        from fake_acp_server.rules import RULES

        _print_table({name: f"the client {text}" for name, text in RULES.items()})
    elif "--reference" in options:
        from fake_acp_server.reference import markdown

        sys.stdout.write(markdown())
    elif "--schema" in options:
        from fake_acp_server.models import json_schema

        _print_json(json_schema())
    elif "--report-schema" in options:
        from fake_acp_server.rules import REPORT_SCHEMA

        _print_json(REPORT_SCHEMA)
    else:
        return False
    return True


def _print_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _print_table(rows: dict[str, str]) -> None:
    width = max(map(len, rows))
    sys.stdout.writelines(f"{name:{width}}  {text}\n" for name, text in rows.items())


def _fail(text: str) -> NoReturn:
    sys.stderr.write(f"fake-acp-server: {text}\n")
    sys.stderr.flush()
    os._exit(USAGE_ERROR)
