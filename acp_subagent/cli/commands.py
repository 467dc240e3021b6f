"""The arguments of the command line, read with click.

Owns the options, their help, and that a mistake in them is one line on stderr and exit code 2. Nothing of the
library is imported before a run really begins: `--help` and `--version` answer at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Any

import click

from acp_subagent.version import VERSION

USAGE_ERROR = 2
INTERRUPTED = 130


class _Commands(click.Group):
    """The commands; a word that is none of them may be a prompt, and is not repeated."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; raises `click.UsageError` without repeating it."""
        if args[0] not in self.commands:
            raise click.UsageError(f"No such command; there is {', '.join(self.commands)}", ctx)
        return super().resolve_command(ctx, args)


class _RunCommand(click.Command):
    """A command whose arguments end at the first `--`: what follows is the agent's command, as it stands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set aside what follows the first `--`, the agent's command, before click looks at it."""
        command: tuple[str, ...] = ()
        if "--" in args:
            at = args.index("--")
            args, command = args[:at], tuple(args[at + 1 :])
            if not command:
                raise click.UsageError("there is no command after --", ctx)
        ctx.obj = command
        rest = super().parse_args(ctx, args)
        if ctx.args:
            raise click.UsageError("unexpected extra argument; the agent's command comes after --", ctx)
        return rest


# What was given for an option is never repeated: it may be a secret that went to the wrong place.


def _name_and_value(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> list[tuple[str, str]]:
    pairs = [value.partition("=") for value in values]
    if any(not name or not equals for name, equals, _ in pairs):
        raise click.BadParameter("it takes NAME=VALUE")
    return [(name, value) for name, _, value in pairs]


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"acp-subagent {VERSION}")
        ctx.exit()


def _seconds(_ctx: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    with suppress(ValueError):
        seconds = float(value)
        if 0 < seconds < inf:
            return seconds
    raise click.BadParameter("it takes a number of seconds above 0")


def _one_of(*words: str) -> dict[str, Any]:
    """The settings of an option that takes one of these words."""

    def check(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
        if value not in words:
            raise click.BadParameter(f"it takes one of {', '.join(words)}")
        return value

    return {"metavar": f"[{'|'.join(words)}]", "default": words[0], "show_default": True, "callback": check}


@click.group(
    name="acp-subagent",
    cls=_Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Give a task to an agent that speaks the Agent Client Protocol (ACP)."""


@cli.command(name="run", cls=_RunCommand, context_settings={"allow_extra_args": True})
@click.argument("prompt", metavar="PROMPT [-- COMMAND [ARG ...]]")
@click.option("--cwd", metavar="DIRECTORY", help="Working directory of the agent; default: this one.")
@click.option(
    "--env",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_name_and_value,
    help="Set a variable for the agent; repeatable.",
)
@click.option(
    "--pass-env",
    metavar="NAME",
    multiple=True,
    help="Let a variable through that is held back because its name looks like a key; repeatable.",
)
@click.option(
    "--permission",
    **_one_of("reject", "allow", "ask"),
    help="Who decides when the agent asks for permission; `ask` asks on the terminal.",
)
@click.option(
    "--startup-timeout",
    callback=_seconds,
    metavar="SECONDS",
    help="For the agent to get ready; default: 120.",
)
@click.option(
    "--turn-timeout", callback=_seconds, metavar="SECONDS", help="For the answer; default: no limit."
)
@click.option(
    "--format",
    "output_format",
    **_one_of("text", "json"),
    help="The answer as it streams, or one JSON object at the end.",
)
@click.option(
    "--show-failure",
    is_flag=True,
    help="When the run fails, show its local detail too: the agent's own error, the end of its stderr, what "
    "it wrote that was no message. It may reveal prompts, paths and keys; keep it out of shared logs.",
)
@click.pass_context
def run(
    ctx: click.Context,
    *,
    prompt: str,
    cwd: str | None,
    env: list[tuple[str, str]],
    pass_env: tuple[str, ...],
    permission: str,
    startup_timeout: float | None,
    turn_timeout: float | None,
    output_format: str,
    show_failure: bool,
) -> int:
    """Give PROMPT to the agent that COMMAND starts and show its answer.

    A PROMPT of - is read from standard input; so goes in one that begins with a dash. Without a COMMAND the
    bundled fake agent answers. The answer goes to standard output, everything else to standard error.

    \b
    Exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 deadline,
    4 session lost, 5 refused, 6 login needed, 7 token or turn limit,
    8 processes survived, 130 interrupted. The first Ctrl-C, SIGTERM or SIGHUP
    ends the run in order and keeps what was answered, a second one at once.
    """
    from acp_subagent.cli import run as conductor  # noqa: PLC0415  the library is loaded only for a run

    task = conductor.Task(
        prompt=None if prompt == "-" else prompt,
        command=ctx.obj,
        cwd=cwd,
        env=tuple(env),
        pass_env=pass_env,
        permission=permission,
        startup_timeout_seconds=startup_timeout,
        turn_timeout_seconds=turn_timeout,
        json=output_format == "json",
        show_failure=show_failure,
    )
    return int(conductor.run(task))


def _problem(error: click.ClickException) -> str:
    """What is wrong with the arguments; never one of them: it may be a prompt, or a secret of the agent's."""
    if isinstance(error, click.NoSuchOption):
        meant = f"; did you mean {', '.join(sorted(error.possibilities))}?" if error.possibilities else ""
        return f"No such option{meant}"
    return error.format_message()


def main(arguments: Sequence[str]) -> int:
    """Answer one command line; the exit code. Raises nothing for a wrong one."""
    try:
        return int(cli.main(list(arguments), prog_name="acp-subagent", standalone_mode=False) or 0)
    except click.ClickException as error:
        where = "acp-subagent run" if "run" in arguments[:1] else "acp-subagent"
        problem = " ".join(_problem(error).split())
        click.echo(f"acp-subagent: {problem} (see {where} --help)", err=True)
        return USAGE_ERROR
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
