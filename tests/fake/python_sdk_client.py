"""A client built on the official Python SDK, run by an interpreter that has it: ``python_sdk_client.py AGENT
[ARG ...]``.

It goes through the scenario ``tour``: prompt, permission, files, terminal, cancel, load. It prints the stop
reasons.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

# By name: the checkers of this repository run where the SDK is not installed.
acp: Any = importlib.import_module("acp")
schema: Any = importlib.import_module("acp.schema")


class Client:
    """Serves whatever the agent asks for, with made-up answers."""

    def __init__(self) -> None:
        self.said = asyncio.Event()

    def on_connect(self, connection: Any) -> None:
        """Part of the SDK's interface; nothing to do."""

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """Note that the agent says something."""
        if isinstance(update, schema.AgentMessageChunk):
            self.said.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> Any:
        """Allow once."""
        (chosen,) = [option.option_id for option in options if option.kind == "allow_once"]
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, **asked: Any) -> Any:
        """A file with one word."""
        return schema.ReadTextFileResponse(content="notes")

    async def write_text_file(self, **asked: Any) -> Any:
        """Accept the text and forget it."""
        return schema.WriteTextFileResponse()

    async def create_terminal(self, **asked: Any) -> Any:
        """A terminal that runs nothing."""
        return schema.CreateTerminalResponse(terminal_id="t-1")

    async def wait_for_terminal_exit(self, **asked: Any) -> Any:
        """It has ended well."""
        return schema.WaitForTerminalExitResponse(exit_code=0)

    async def terminal_output(self, **asked: Any) -> Any:
        """What it would have printed."""
        return schema.TerminalOutputResponse(output="hello", truncated=False)

    async def release_terminal(self, **asked: Any) -> Any:
        """Nothing to free."""
        return schema.ReleaseTerminalResponse()


async def main(agent: list[str]) -> None:
    """The whole conversation."""
    client = Client()
    async with acp.spawn_agent_process(client, *agent) as (connection, process):
        files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        capabilities = schema.ClientCapabilities(fs=files, terminal=True)
        await connection.initialize(protocol_version=1, client_capabilities=capabilities)
        session = await connection.new_session(cwd="/srv", mcp_servers=[])
        prompt = {"prompt": [acp.text_block("the tour")], "session_id": session.session_id}
        reasons = [(await connection.prompt(**prompt)).stop_reason]
        client.said.clear()
        turn = asyncio.create_task(connection.prompt(**prompt))
        await client.said.wait()
        await connection.cancel(session_id=session.session_id)
        reasons.append((await turn).stop_reason)
        await connection.load_session(cwd="/srv", mcp_servers=[], session_id=session.session_id)
        process.stdin.close()
        await process.wait()
    sys.stdout.write(" ".join(reasons) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
