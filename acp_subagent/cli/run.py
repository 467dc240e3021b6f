"""`run`: conduct one run, from the prompt to the exit code.

Owns the order of things, the signals, and where each kind of output goes. The service owns the only nursery:
what must go on beside the run is one system task that shows the events, and it lets no exception out. Signals
are told to the loop from their handlers.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import trio

from acp_subagent.acp.config import AcpConfig
from acp_subagent.acp.permissions import PermissionAnswer, PermissionPolicy, PermissionRequest
from acp_subagent.acp.provider import AcpProvider
from acp_subagent.cli import json_result, render
from acp_subagent.cli.exit_codes import ExitCode, exit_code
from acp_subagent.cli.outcome import Outcome, as_result
from acp_subagent.cli.streams import Streams
from acp_subagent.cli.terminal import Terminal
from acp_subagent.errors import (
    ConfigurationError,
    SubagentAbortedError,
    SubagentStartError,
    SubagentTeardownError,
    SubagentUsageError,
)
from acp_subagent.process.environment import withheld_names
from acp_subagent.seam.events import TextChunk
from acp_subagent.seam.feed import Subscription
from acp_subagent.seam.request import Parent, SubagentRequest
from acp_subagent.seam.run import SubagentRun
from acp_subagent.seam.service import SubagentService, open_subagents

#: the name under which the agent of the command line is registered
AGENT = "agent"

#: set to 1, an unexpected exception shows where it was raised, and the library its log
DEBUG_VARIABLE = "ACP_SUBAGENT_DEBUG"

_READ_BYTES = 65536


@dataclass(frozen=True, kw_only=True, repr=False)
class Task:
    """What the command line asks for."""

    prompt: str | None  #: None: read it from stdin
    command: tuple[str, ...] = ()  #: the agent and its arguments; empty: the bundled fake agent
    cwd: str | None = None  #: None: our own
    env: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    permission: str = PermissionPolicy.REJECT.value
    startup_timeout_seconds: float | None = None  #: None: the provider's default
    turn_timeout_seconds: float | None = None  #: None: no limit
    json: bool = False  #: one JSON object instead of the streamed text
    show_failure: bool = False


def run(task: Task) -> ExitCode:
    """Conduct the run and say how it went; never raises for anything that the agent or the caller did."""
    debug = os.environ.get(DEBUG_VARIABLE) == "1"
    if debug:
        logging.basicConfig(level=logging.DEBUG)
    else:
        # What the library logs would go to stderr otherwise, past us.
        logging.getLogger("acp_subagent").addHandler(logging.NullHandler())
    streams = Streams(encoding=getattr(sys.stdout, "encoding", None) or "utf-8")
    conduct = _Conduct(task, streams)
    outcome: Outcome | Exception
    with _signals_to(conduct.on_signal):
        try:
            outcome = trio.run(conduct.run)
            conduct.say(outcome)
        except SubagentUsageError as error:
            streams.note(f"acp-subagent: {error}")
            outcome = error
        except Exception as error:  # noqa: BLE001  the last resort: its text may hold a secret, its type not
            hint = "" if debug else f" ({DEBUG_VARIABLE}=1 shows where)"
            streams.note(f"acp-subagent: unexpected {type(error).__name__}{hint}")
            if debug:
                streams.note("".join(traceback.format_tb(error.__traceback__)))  # the lines of code alone
            outcome = error
    code = exit_code(outcome, interrupted=conduct.interrupted)
    if conduct.signal_waits:
        streams.hurry()
    try:
        streams.close()
    except KeyboardInterrupt:  # nobody reads our output, and somebody does not want to wait for it
        return code if code is ExitCode.SURVIVORS else ExitCode.INTERRUPTED
    if code is ExitCode.COMPLETED and not streams.answer_written:
        return ExitCode.INTERRUPTED if conduct.interrupted else ExitCode.FAILED
    return code


class _Conduct:
    """One run and everything that goes on beside it."""

    def __init__(self, task: Task, streams: Streams) -> None:
        self._task = task
        self._streams = streams
        self._messages = render.Messages()
        self._terminal: Terminal | None = None
        self._fault: Exception | None = None  # of one of the tasks beside the run
        self._abort = trio.Event()
        self._reading_stdin = trio.CancelScope()
        self._followed: trio.Event | None = None
        self._subagents: SubagentService | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._signals = self._signals_heeded = 0
        self._seconds = 0.0
        streams.on_stdout_broken = self._on_stdout_broken

    @property
    def interrupted(self) -> bool:
        """Whether a signal asked us to end."""
        return self._signals > 0

    @property
    def signal_waits(self) -> bool:
        """Whether a signal came that has not been heeded, because the loop had ended already."""
        return self._signals > self._signals_heeded

    async def run(self) -> Outcome:
        """The run; what it came to. Raises `SubagentUsageError` for what cannot be asked."""
        began = trio.current_time()
        self._token = trio.lowlevel.current_trio_token()
        try:
            async with open_subagents() as subagents:
                self._subagents = subagents
                self._heed_signals()  # those that came before there was a loop to tell
                return await self._delegate(subagents)
        finally:
            self._seconds = trio.current_time() - began
            if self._terminal is not None:
                self._terminal.close()

    async def _delegate(self, subagents: SubagentService) -> Outcome:
        subagents.register(AcpProvider(self._configuration()))
        outcome: Outcome
        try:
            request = SubagentRequest(prompt=await self._prompt(), parent=self._parent(), abort=self._abort)
            outcome = await subagents.run(AGENT, request, on_ready=self._on_ready)
        except (SubagentStartError, SubagentTeardownError, SubagentAbortedError) as error:
            outcome = error
        if self._followed is not None:
            await self._followed.wait()
        if self._fault is not None:
            raise self._fault
        return outcome

    # -- what the run is given

    def _configuration(self) -> AcpConfig:
        task = self._task
        command, env = task.command, dict(task.env)
        if not command:
            command, bundled_env = _bundled_agent()
            env = {**bundled_env, **env}
            self._streams.note(render.BUNDLED_AGENT)
        settings: dict[str, object] = {
            "startup_timeout_seconds": task.startup_timeout_seconds,
            "turn_timeout_seconds": task.turn_timeout_seconds,
        }
        if task.permission == PermissionPolicy.ASK:
            self._terminal = Terminal.open()
            settings["permission_handler"] = self._ask
        return AcpConfig(
            name=AGENT,
            command=command[0],
            args=command[1:],
            env=env,
            pass_env=task.pass_env,
            permission=PermissionPolicy(task.permission),
            **{name: value for name, value in settings.items() if value is not None},
        )

    def _parent(self) -> Parent:
        """The working directory as the parent's, so that an unusable one is a failed start like any other."""
        try:
            return Parent(cwd=os.path.abspath(self._task.cwd or "."))
        except FileNotFoundError:  # our own has been removed
            return Parent()

    async def _prompt(self) -> str:
        if self._task.prompt is not None:
            # Bytes that are no text came in as surrogates, which cannot be sent.
            return os.fsencode(self._task.prompt).decode("utf-8", errors="replace")
        with self._reading_stdin:
            data = await trio.to_thread.run_sync(_read_stdin, abandon_on_cancel=True)
            return data.decode("utf-8", errors="replace")
        raise SubagentAbortedError

    # -- what goes on beside it

    def on_signal(self) -> None:
        """Called between any two instructions of the main thread: only tell the loop."""
        self._signals += 1
        self._tell_loop(self._heed_signals)

    def _tell_loop(self, what: Callable[[], None]) -> None:
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(what)

    def _heed_signals(self) -> None:
        """The first signal ends the run in order, every other one at once."""
        while self._signals_heeded < self._signals:
            self._signals_heeded += 1
            if self._signals_heeded == 1:
                self._streams.note(render.INTERRUPTED)
                self._abort.set()
                self._reading_stdin.cancel()
            elif self._subagents is not None:
                self._streams.note(render.KILLING)
                self._subagents.hurry()
                self._streams.hurry()

    def _on_stdout_broken(self) -> None:
        """Called in the thread that writes: nobody reads the answer any more."""
        self._tell_loop(self._abort.set)
        self._streams.note(render.STDOUT_BROKEN)

    def _on_ready(self, ready: SubagentRun) -> None:
        self._followed = trio.Event()
        trio.lowlevel.spawn_system_task(self._follow, ready.events(), self._followed)

    async def _follow(self, events: Subscription, followed: trio.Event) -> None:
        """Show what happens, as it happens."""
        try:
            async for event in events:
                if type(event) is TextChunk:
                    if not self._task.json:
                        self._streams.answer(event.text, on_new_line=self._messages.begins(event))
                        if self._streams.full:
                            await trio.to_thread.run_sync(self._streams.wait_for_room, abandon_on_cancel=True)
                    continue
                note = render.note_on(
                    event,
                    announce_requests=self._task.permission != PermissionPolicy.ASK,
                    announce_teardown=self._streams.stderr_is_terminal,
                )
                if note is not None:
                    self._streams.note(note)
        except Exception as error:  # noqa: BLE001  raised again where the run is awaited
            self._fault = error
            self._abort.set()
        finally:
            followed.set()

    async def _ask(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the person at the terminal; without one the answer is no."""
        kind = request.call.kind
        self._streams.note(render.asked(kind))
        if self._terminal is None:
            self._streams.note(render.NO_TERMINAL)
            return PermissionAnswer.DENY
        if self._streams.stdout_is_terminal or self._streams.stderr_is_terminal:
            await trio.to_thread.run_sync(self._streams.wait_until_written, abandon_on_cancel=True)
        allowed = await self._terminal.confirm(render.question(kind, request.call.title))
        return PermissionAnswer.ALLOW if allowed else PermissionAnswer.DENY

    # -- what is said when it is over

    def say(self, outcome: Outcome) -> None:
        """The rest of the answer (or the JSON object), then how the run ended."""
        result = as_result(outcome)
        if self._task.json:
            self._streams.answer(json_result.to_text(result, show_failure=self._task.show_failure) + "\n")
        else:
            self._streams.answer(self._messages.missing(result))
            self._streams.answer("", on_new_line=True)
        names = withheld_names(os.environ, pass_env=(*self._task.pass_env, *dict(self._task.env)))
        for line in render.closing_lines(result, seconds=self._seconds, withheld=names):
            self._streams.note(line)
        if self._task.show_failure and not self._task.json and result.failure is not None:
            for line in render.failure_lines(result.failure):
                self._streams.note(line)


@contextmanager
def _signals_to(callback: Callable[[], None]) -> Iterator[None]:
    """Each SIGINT, SIGTERM and SIGHUP calls `callback`. A hang-up ignored before us (nohup) stays ignored."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def handler(_number: int, _frame: FrameType | None) -> None:
        callback()

    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _bundled_agent() -> tuple[tuple[str, ...], dict[str, str]]:
    """The command of the bundled fake agent and what it needs, so that it is found from any directory."""
    found = find_spec("fake_acp_server")
    if found is None or found.origin is None:
        raise ConfigurationError("The bundled fake agent is not installed; give an agent's command after --.")
    # -P: a file in the working directory must not stand in for a module of the standard library.
    return (sys.executable, "-P", "-m", "fake_acp_server"), {"PYTHONPATH": str(Path(found.origin).parents[1])}


def _read_stdin() -> bytes:
    """Everything from stdin, past Python's own buffer: its lock would be held when we leave early."""
    parts = []
    while part := os.read(0, _READ_BYTES):
        parts.append(part)
    return b"".join(parts)
