"""What one run says to its agent, frame by frame: this, and nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acp_subagent.version import VERSION
from tests.memory.agent import SESSION, Agent, Scene, text

NO_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


async def test_a_run_introduces_itself_opens_a_session_and_sends_the_prompt(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def script(agent: Agent) -> None:
        for result in ({"protocolVersion": 1}, {"sessionId": SESSION}, {"stopReason": "end_turn"}):
            heard.append(request := await agent.receive())
            if "stopReason" in result:
                await agent.send(text("Done."))
            await agent.send({"id": request["id"], "result": result})
        await agent.stay()

    scene = Scene(tmp_path, script)
    async with scene.service() as subagents:
        result = await subagents.run("memory", scene.request("do it"))
    assert result.text == "Done."
    ids = [frame.pop("id") for frame in heard]
    assert len(set(ids)) == 3
    client = {"name": "acp_subagent", "version": VERSION}
    assert heard == [
        {
            "jsonrpc": "2.0",
            "method": "initialize",
            "params": {"protocolVersion": 1, "clientCapabilities": NO_CAPABILITIES, "clientInfo": client},
        },
        {
            "jsonrpc": "2.0",
            "method": "session/new",
            "params": {"cwd": str(tmp_path), "mcpServers": []},
        },
        {
            "jsonrpc": "2.0",
            "method": "session/prompt",
            "params": {"sessionId": SESSION, "prompt": [{"type": "text", "text": "do it"}]},
        },
    ]
