"""An ACP agent built on the official Python SDK: an independent implementation for the library to meet.

It runs in an environment where PyPI's ``agent-client-protocol`` is installed and imports nothing of this
repository. The first word of the prompt says what the turn does:

``say WORDS``    streams the words, one chunk each, as one message
``write TEXT``   asks for a permission, then writes ``note.txt`` in the session's folder, or does without
``run COMMAND``  starts the command in a session of its own and waits for it; a cancelled turn leaves it
                 running (many agents do), so that whoever started this agent has something to find
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp import (
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    text_block,
    update_tool_call,
)
from acp.helpers import tool_content
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    AgentMessageChunk,
    DeniedOutcome,
    Implementation,
    PermissionOption,
    ToolCallLocation,
    ToolCallUpdate,
)


@dataclass
class Session:
    """One conversation: where it works, and the turn that runs in it."""

    cwd: Path
    turn: asyncio.Task[str] | None = None
    message_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))


class WordAgent(Agent):
    """Does what the first word of the prompt says."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.client: Client

    def on_connect(self, conn: Client) -> None:
        """Keep the client: updates and permission requests go to it."""
        self.client = conn

    async def initialize(self, protocol_version: int, **rest: Any) -> InitializeResponse:
        """Speak the version that was offered, and offer nothing beyond the baseline."""
        return InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="word-agent", version="1"),
        )

    async def new_session(self, cwd: str, **rest: Any) -> NewSessionResponse:
        """Open a conversation that works in ``cwd``."""
        session_id = f"words-{len(self.sessions) + 1}"
        self.sessions[session_id] = Session(Path(cwd))
        return NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **rest: Any) -> PromptResponse:
        """Run one turn; a turn that was cancelled says so."""
        session = self.sessions[session_id]
        verb, _, words = "".join(block.text for block in prompt).partition(" ")
        turns = {"say": self.say, "write": self.write, "run": self.run}
        session.turn = asyncio.create_task(turns[verb](session_id, words))
        try:
            return PromptResponse(stop_reason=await session.turn)
        except asyncio.CancelledError:
            return PromptResponse(stop_reason="cancelled")
        finally:
            session.turn = None

    async def cancel(self, session_id: str, **rest: Any) -> None:
        """End the turn that runs, if one does."""
        turn = self.sessions[session_id].turn
        if turn is not None:
            turn.cancel()

    async def say(self, session_id: str, words: str) -> str:
        """Stream the words, each with the space that follows it."""
        await self.send_message(session_id, *(f"{word} " for word in words.split()))
        return "end_turn"

    async def write(self, session_id: str, words: str) -> str:
        """Ask, then write or do without; a request answered with ``cancelled`` ends the turn so."""
        path = self.sessions[session_id].cwd / "note.txt"
        call = start_tool_call(
            "write-1",
            "Write a note",
            kind="edit",
            status="pending",
            locations=[ToolCallLocation(path=str(path))],
            raw_input={"text": words},
        )
        await self.client.session_update(session_id, call)
        answer = await self.client.request_permission(
            session_id,
            ToolCallUpdate(tool_call_id="write-1"),
            [
                PermissionOption(option_id="go", name="Write it", kind="allow_once"),
                PermissionOption(option_id="stop", name="Leave it", kind="reject_once"),
            ],
        )
        if isinstance(answer.outcome, DeniedOutcome):
            return "cancelled"
        if answer.outcome.option_id == "go":
            path.write_text(words, encoding="utf-8")
            content = [tool_content(text_block("written"))]
            done = update_tool_call("write-1", status="completed", content=content)
            await self.client.session_update(session_id, done)
            await self.send_message(session_id, "The note is written.")
        else:
            await self.client.session_update(session_id, update_tool_call("write-1", status="failed"))
            await self.send_message(session_id, "I may not write.")
        return "end_turn"

    async def run(self, session_id: str, command: str) -> str:
        """Start the command in a session of its own and wait for its end."""
        call = start_tool_call("run-1", "Run a command", kind="execute", status="in_progress")
        await self.client.session_update(session_id, call)
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            cwd=self.sessions[session_id].cwd,
            start_new_session=True,
        )
        await process.wait()
        await self.client.session_update(session_id, update_tool_call("run-1", status="completed"))
        await self.send_message(session_id, "The command has ended.")
        return "end_turn"

    async def send_message(self, session_id: str, *pieces: str) -> None:
        """Stream one message in pieces."""
        message_id = f"m{next(self.sessions[session_id].message_ids)}"
        for piece in pieces:
            chunk = AgentMessageChunk(
                session_update="agent_message_chunk", content=text_block(piece), message_id=message_id
            )
            await self.client.session_update(session_id, chunk)


if __name__ == "__main__":
    asyncio.run(run_agent(WordAgent()))
