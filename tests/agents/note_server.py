"""A tool for agents that have none of their own: an MCP server on stdin and stdout with one tool, ``note``.

The tool writes its argument to ``note.txt`` in the folder where the server was started. It needs the standard
library only, so that any interpreter can run it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NOTE_TOOL = {
    "name": "note",
    "description": "Write a note.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request; raises ``KeyError`` for a method that is not served."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [NOTE_TOOL]}
        case "tools/call":
            Path("note.txt").write_text(params["arguments"]["text"], encoding="utf-8")
            return {"content": [{"type": "text", "text": "The note is written."}]}
    raise KeyError(method)


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        response = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            response["result"] = answer(request["method"], request.get("params") or {})
        except KeyError:
            response["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
