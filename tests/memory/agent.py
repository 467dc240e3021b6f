"""A child that lives in memory: an agent's side of the conversation as a coroutine, without any process.

Everything above the process room is real: the service, the provider, supervision, the wire. So these tests
may run on a virtual clock, at the real limits.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import trio
from trio.testing import memory_stream_pair

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    Failure,
    Parent,
    SessionInfo,
    SessionRef,
    SubagentRequest,
    SubagentService,
    open_subagents,
)
from acp_subagent.acp.provider import AcpProvider as _AcpProvider
from acp_subagent.process.host import ProcessHost
from acp_subagent.process.launch import LaunchSpec
from acp_subagent.seam.activity import ExitStatus, Rung, TeardownReport
from acp_subagent.seam.run import StartContext
from acp_subagent.supervised.run import ResumableRun

Frame = dict[str, Any]

SESSION = "session-1"
#: how soon a request to hurry is noticed by a ladder
_HURRY_CHECK_SECONDS = 0.01


class Agent:
    """The agent's end of one conversation, and the child that supervision sees of it."""

    def __init__(self, on_stderr: Callable[[bytes], None]) -> None:
        ours, self._theirs = memory_stream_pair()
        self.stdin, self.stdout = ours.send_stream, ours.receive_stream
        self.stderr_tail = b""
        self.pid = 1
        self.exited = trio.Event()
        self.exit_status: ExitStatus | None = None
        self.ended_at: float | None = None  #: when the ladder came
        self.hurried = False  #: and whether it was to skip the graces
        self.ladder_seconds = 0.0  #: how long it takes
        self.received: list[Frame] = []
        self.on_stderr = on_stderr
        self._rest = b""
        self._lines: list[bytes] = []

    # -- what supervision asks of a child

    def read_stderr(self) -> None:
        """Nothing waits in a pipe here."""

    async def end_tree(self, *, hurried: Callable[[], bool]) -> TeardownReport:
        self.ended_at = trio.current_time()
        self.stdin.close()
        with trio.move_on_after(self.ladder_seconds):
            while not hurried():  # noqa: ASYNC110  asked now and then, as the ladder does
                await trio.sleep(_HURRY_CHECK_SECONDS)
        self.hurried = hurried()
        if not self.exited.is_set():
            self.exit(0)
        return TeardownReport({Rung.EOF: 0.0}, 1, 0, self.exit_status)

    # -- what the agent does

    def exit(self, code: int) -> None:
        """Leave, as a process does."""
        self.exit_status = ExitStatus(code=code)
        self._theirs.send_stream.close()
        self.exited.set()

    def close_stdout(self) -> None:
        """Say no more, and stay."""
        self._theirs.send_stream.close()

    def close_stdin(self) -> None:
        """Read no more, and stay."""
        self._theirs.receive_stream.close()

    async def receive(self) -> Frame:
        """The next frame; `trio.EndOfChannel` when there is none any more."""
        while not self._lines:
            data = await self._theirs.receive_stream.receive_some(65536)
            if not data:
                raise trio.EndOfChannel
            *self._lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        frame = cast("Frame", json.loads(self._lines.pop(0)))
        self.received.append(frame)
        return frame

    async def expect(self, method: str) -> Frame:
        """The next request or notification of this method; what comes before it is only kept."""
        while True:
            frame = await self.receive()
            if frame.get("method") == method:
                return frame

    async def answer_to(self, request_id: object) -> Any:
        """What the client answered to a request of ours."""
        while True:
            frame = await self.receive()
            if "method" not in frame and frame.get("id") == request_id:
                return frame.get("result", frame.get("error"))

    async def send(self, *frames: Frame) -> None:
        """Send frames, in one piece."""
        lines = [json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n" for frame in frames]
        await self._theirs.send_stream.send_all(b"".join(lines))

    async def raw(self, data: bytes) -> None:
        """Send bytes."""
        await self._theirs.send_stream.send_all(data)

    async def shake_hands(self, **capabilities: Any) -> None:
        """Up to the open session."""
        request = await self.expect("initialize")
        result = {"protocolVersion": 1, "agentCapabilities": capabilities}
        await self.send({"id": request["id"], "result": result})
        request = await self.expect("session/new")
        await self.send({"id": request["id"], "result": {"sessionId": SESSION}})

    async def prompted(self) -> int:
        """The id of the next prompt."""
        return cast("int", (await self.expect("session/prompt"))["id"])

    async def stop(self, prompt: int, reason: str = "end_turn") -> None:
        """End a turn."""
        await self.send({"id": prompt, "result": {"stopReason": reason}})

    async def stay(self) -> None:
        """Read on until the client is gone."""
        try:
            while True:
                await self.receive()
        except trio.EndOfChannel:
            pass


Script = Callable[[Agent], Awaitable[None]]


def update(kind: str, session: str = SESSION, /, **fields: Any) -> Frame:
    """A `session/update`."""
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return {"method": "session/update", "params": params}


def text(said: str, message_id: str | None = None, session: str = SESSION) -> Frame:
    """A chunk of the answer."""
    more = {} if message_id is None else {"messageId": message_id}
    return update("agent_message_chunk", session, content={"type": "text", "text": said}, **more)


OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def permission(request_id: object, call_id: str = "call", session: str = SESSION, **call: Any) -> Frame:
    """A request for permission."""
    params = {
        "sessionId": session,
        "toolCall": {"toolCallId": call_id, "title": "t", **call},
        "options": OPTIONS,
    }
    return {"id": request_id, "method": "session/request_permission", "params": params}


CANCELLED = {"outcome": {"outcome": "cancelled"}}
ALLOWED = {"outcome": {"outcome": "selected", "optionId": "yes"}}
DENIED = {"outcome": {"outcome": "selected", "optionId": "no"}}


class MemoryHost:
    """Starts agents in memory instead of children."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.agents: list[Agent] = []
        self.errors: list[Exception] = []
        self.spawn_seconds = 0.0

    async def spawn(
        self,
        spec: LaunchSpec,
        nursery: trio.Nursery,
        *,
        on_stderr: Callable[[bytes], None],
        on_exit: Callable[[], None],
    ) -> Agent:
        await trio.sleep(self.spawn_seconds)
        agent = Agent(on_stderr)
        self.agents.append(agent)
        nursery.start_soon(self._run, agent)
        nursery.start_soon(self._watch_exit, agent, on_exit)
        return agent

    async def _watch_exit(self, agent: Agent, on_exit: Callable[[], None]) -> None:
        await agent.exited.wait()
        on_exit()

    async def _run(self, agent: Agent) -> None:
        try:
            await self._script(agent)
            await agent.stay()
        except (trio.EndOfChannel, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has gone first
        except Exception as exc:  # noqa: BLE001  of the script: raised again when the service has closed
            self.errors.append(exc)
            agent.exit(70)

    async def aclose(self) -> None:
        """Nothing is held."""


class MemoryProvider(_AcpProvider):
    """The ACP provider over agents in memory."""

    def __init__(self, host: MemoryHost, config: AcpConfig) -> None:
        super().__init__(config)
        self._host = host

    async def start(self, request: SubagentRequest, context: StartContext) -> ResumableRun:
        self._spawn_in_memory(context)
        return await super().start(request, context)

    async def list_sessions(self, parent: Parent, context: StartContext) -> tuple[SessionInfo, ...]:
        self._spawn_in_memory(context)
        return await super().list_sessions(parent, context)

    async def delete_session(self, ref: SessionRef, context: StartContext) -> None:
        self._spawn_in_memory(context)
        await super().delete_session(ref, context)

    def _spawn_in_memory(self, context: StartContext) -> None:
        context.shared.get(ProcessHost, lambda: cast("ProcessHost", self._host))


class Scene:
    """One service with one provider, whose agents play a script."""

    def __init__(self, folder: Path, script: Script, **settings: Any) -> None:
        self.folder = folder
        self.failures: list[Failure] = []
        self.host = MemoryHost(script)
        self.registration: Any = None  #: of the provider, while the service is open
        values = {"name": "memory", "command": "/bin/sh", "cwd": str(folder), **settings}
        self.provider: AcpProvider = MemoryProvider(self.host, AcpConfig(**values))

    @asynccontextmanager
    async def service(self, **arguments: Any) -> AsyncIterator[SubagentService]:
        """An open service; bounded in virtual time."""
        with trio.fail_after(1_000_000):
            async with open_subagents(**{"on_failure": self.failures.append, **arguments}) as subagents:
                self.registration = subagents.register(self.provider)
                yield subagents
        for error in self.host.errors:
            raise error

    def request(self, prompt: str = "do it", **fields: Any) -> SubagentRequest:
        """A request from the scene's folder."""
        return SubagentRequest(prompt=prompt, parent=Parent(cwd=str(self.folder)), **fields)

    @property
    def agent(self) -> Agent:
        """The latest agent."""
        return self.host.agents[-1]
