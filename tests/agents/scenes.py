"""What each third-party agent is asked in the tests, in one vocabulary: it answers, it asks, it works on.

Owns what differs between the agents: their command lines, their environment, the prompts that make each of
them do the same three things, and what they say then. What must hold in every case is in the tests.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import trio

from acp_subagent import ToolKind
from tests.agents.lifeline import Lifeline
from tests.agents.model_server import Answer, CallTool, Endless, HttpFailure, ModelServer
from tests.support import agent_packages

#: What an agent is told to write when it is allowed to.
NOTE = "remember the milk"


@dataclass(frozen=True)
class Scene:
    """One agent, ready to be launched in a folder of its own and to be given one prompt."""

    command: list[str]
    prompt: str
    #: What the child needs in its environment.
    env: dict[str, str] = field(default_factory=dict)
    #: What the agent's output is, or ends with, when the turn is over; with a permission, when it was given.
    answer: str = ""
    #: The same when the permission was denied.
    answer_denied: str = ""
    #: The kind of the tool call that asks.
    kind: ToolKind = ToolKind.OTHER
    #: The file that the tool call leaves when it is allowed; None: this agent only pretends.
    trace: Path | None = None
    #: Waits until the turn is in the middle of its work; None: it is when it has said its first words.
    begun: Callable[[], Awaitable[None]] | None = None
    #: True when the work that was begun is over, by the kernel's account.
    over: Callable[[], bool] = lambda: True


class RealAgent(Protocol):
    """A third-party agent. Every scene is a context: what it needs besides the agent ends with it."""

    def answers(self, workspace: Path) -> contextlib.AbstractContextManager[Scene]:
        """The agent answers a prompt."""

    def asks(self, workspace: Path) -> contextlib.AbstractContextManager[Scene]:
        """The agent asks for a permission, then answers."""

    def works_on(self, workspace: Path) -> contextlib.AbstractContextManager[Scene]:
        """The agent does something that would not end by itself while a test waits."""


class PythonSdkAgent:
    """``python_sdk_agent.py``, built on the official Python SDK."""

    @contextlib.contextmanager
    def answers(self, workspace: Path) -> Iterator[Scene]:
        """It repeats the words, one chunk each."""
        yield Scene(agent_packages.python_sdk_agent(), "say good morning", answer="good morning ")

    @contextlib.contextmanager
    def asks(self, workspace: Path) -> Iterator[Scene]:
        """Its permission request has only the id of the tool call that it announced before."""
        yield Scene(
            agent_packages.python_sdk_agent(),
            f"write {NOTE}",
            answer="The note is written.",
            answer_denied="I may not write.",
            kind=ToolKind.EDIT,
            trace=workspace / "note.txt",
        )

    @contextlib.contextmanager
    def works_on(self, workspace: Path) -> Iterator[Scene]:
        """Its command runs in a session of its own and outlives the cancelled turn."""
        with Lifeline(workspace / "lifeline") as line:
            command = agent_packages.python_sdk_agent()
            yield Scene(command, f"run {line.command}", begun=line.holds, over=line.is_cut)


class TypeScriptSdkAgent:
    """The example agent of the official TypeScript SDK: the same turn of some seconds, whatever is asked."""

    answer = "The changes have been applied."
    answer_denied = "I'll skip the configuration update."

    @contextlib.contextmanager
    def answers(self, workspace: Path) -> Iterator[Scene]:
        """Its turn always has a permission request in it; denied, it answers all the same."""
        yield Scene(agent_packages.typescript_sdk_agent(), "Hello", answer=self.answer_denied)

    @contextlib.contextmanager
    def asks(self, workspace: Path) -> Iterator[Scene]:
        """It only pretends to edit a file."""
        yield Scene(
            agent_packages.typescript_sdk_agent(),
            "Improve the configuration",
            answer=self.answer,
            answer_denied=self.answer_denied,
            kind=ToolKind.EDIT,
        )

    @contextlib.contextmanager
    def works_on(self, workspace: Path) -> Iterator[Scene]:
        """Its turn takes seconds, and looks once a second whether it was cancelled."""
        yield Scene(agent_packages.typescript_sdk_agent(), "Improve the configuration")


class FastAgent:
    """fast-agent with its model ``passthrough``, which repeats the prompt or calls the tool that it names."""

    @contextlib.contextmanager
    def answers(self, workspace: Path) -> Iterator[Scene]:
        """It repeats the prompt."""
        yield Scene(self._command(), "good morning", self._env(workspace), answer="good morning")

    @contextlib.contextmanager
    def asks(self, workspace: Path) -> Iterator[Scene]:
        """It asks before it calls an MCP server's tool, for the id of a tool call that it never announced."""
        server = Path(__file__).with_name("note_server.py")
        config = workspace / "fastagent.config.yaml"
        servers = {"notes": {"command": sys.executable, "args": [str(server)]}}
        config.write_text(json.dumps({"mcp": {"servers": servers}}), encoding="utf-8")  # JSON is YAML
        yield Scene(
            [*self._command(), "--config-path", str(config), "--servers", "notes"],
            self._call("notes__note", text=NOTE),
            self._env(workspace),
            answer="The note is written.",
            answer_denied="The user has declined permission to use this tool: notes__note",
            trace=workspace / "note.txt",
        )

    @contextlib.contextmanager
    def works_on(self, workspace: Path) -> Iterator[Scene]:
        """Its shell runs a command, without asking."""
        with Lifeline(workspace / "lifeline") as line:
            yield Scene(
                [*self._command(), "--shell"],
                self._call("execute", command=line.command),
                self._env(workspace),
                begun=line.holds,
                over=line.is_cut,
            )

    def _command(self) -> list[str]:
        return [*agent_packages.fast_agent(), "--model", "passthrough"]

    def _call(self, tool: str, **arguments: str) -> str:
        return f"***CALL_TOOL {tool} {json.dumps(arguments)}"

    def _env(self, workspace: Path) -> dict[str, str]:
        return {"HOME": str(workspace / "home")}


class Dsh:
    """DeepSeek's harness with its ``acp`` profile; its model is a loopback server that follows a script."""

    @contextlib.contextmanager
    def answers(self, workspace: Path) -> Iterator[Scene]:
        """Two turns: the second answer is for a second prompt."""
        script = [Answer(("Good ", "morning.")), Answer(("Good ", "evening."))]
        with ModelServer(script) as model:
            yield replace(self.scene(workspace, model), answer="Good morning.")

    @contextlib.contextmanager
    def asks(self, workspace: Path) -> Iterator[Scene]:
        """It asks when a command wants more than the sandbox gives."""
        command = CallTool(
            "bash",
            {
                "command": f"echo {NOTE} > note.txt",
                "description": "Write a note",
                "sandbox_permissions": "danger-full-access",
                "justification": "The note must be written.",
            },
        )
        with ModelServer([command, Answer(("That is ", "all."))]) as model:
            yield replace(
                self.scene(workspace, model),
                answer="That is all.",
                answer_denied="That is all.",
                trace=workspace / "note.txt",
            )
            _, second = model.requests
            assert second["messages"][-1]["role"] == "tool", "the model was told what became of the call"
            assert model.unscripted == []

    @contextlib.contextmanager
    def works_on(self, workspace: Path) -> Iterator[Scene]:
        """Its shell runs a command; nothing is confined, so nothing is asked."""
        with Lifeline(workspace / "lifeline") as line:
            command = CallTool("bash", {"command": line.command, "description": "Hold the line"})
            with ModelServer([command]) as model:
                scene = self.scene(workspace, model)
                env = {**scene.env, "DSH_PERMISSION_MODE": "danger-full-access"}
                yield replace(scene, env=env, begun=line.holds, over=line.is_cut)

    @contextlib.contextmanager
    def listens(self, workspace: Path) -> Iterator[Scene]:
        """Its model has begun an answer that never goes on."""
        with ModelServer([Endless("Let me think")]) as model:

            async def begun() -> None:
                await wait_for(model.streaming)

            yield replace(self.scene(workspace, model), begun=begun, over=model.sees_hang_up)

    @contextlib.contextmanager
    def is_cut_off(self, workspace: Path) -> Iterator[Scene]:
        """Its model comes to its token limit in the middle of the answer."""
        with ModelServer([Answer(("The first", " half"), finish_reason="length")]) as model:
            yield replace(self.scene(workspace, model), answer="The first half")

    @contextlib.contextmanager
    def is_refused(self, workspace: Path) -> Iterator[Scene]:
        """Its model answers the request with a status that is not worth another try."""
        with ModelServer([HttpFailure(400)]) as model:
            yield self.scene(workspace, model)

    def scene(self, workspace: Path, model: ModelServer) -> Scene:
        """A prompt for an agent whose model is that server."""
        home = workspace / "home"
        env = {
            "HOME": str(home),
            "DSH_HOME": str(home / "dsh"),
            "DSH_TELEMETRY_MODE": "DISABLED",
            "DEEPSEEK_BASE_URL": model.url,
            "DEEPSEEK_API_KEY": "any",
        }
        return Scene([*agent_packages.dsh(), "--profile", "acp"], "Good morning", env)


async def wait_for(event: threading.Event) -> None:
    """Wait for an event of a thread, for as long as the caller's scope allows."""
    await trio.to_thread.run_sync(event.wait, abandon_on_cancel=True)


AGENTS: dict[str, RealAgent] = {
    "python-sdk": PythonSdkAgent(),
    "typescript-sdk": TypeScriptSdkAgent(),
    "fast-agent": FastAgent(),
    "dsh": Dsh(),
}
