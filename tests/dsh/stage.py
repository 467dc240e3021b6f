"""The stage of the tests with real children: providers over the scripted runtime, with short graces."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from acp_subagent import (
    DshConfig,
    DshProvider,
    Failure,
    Parent,
    SubagentRequest,
    SubagentService,
    open_subagents,
)
from tests.run.stage import BOUND_SECONDS, QUICK

RUNTIME = Path(__file__).with_name("fake_runtime.py")

#: The graces of the other stage, but for the one that this provider has no use for.
GRACES = {name: value for name, value in QUICK.items() if name != "cancel_grace_seconds"}


class DshStage:
    """Makes what a test needs, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures: list[Failure] = []

    @property
    def log(self) -> Path:
        """Where the runtimes write down what came to them."""
        return self.folder / "frames.log"

    def config(self, script: dict[str, Any], **settings: Any) -> dict[str, Any]:
        """The settings of a provider whose runtime plays `script`."""
        return {
            "name": "fake",
            "command": sys.executable,
            "args": ["-I", str(RUNTIME), json.dumps({"log": str(self.log), **script})],
            "cwd": str(self.folder),
            **GRACES,
            **settings,
        }

    def provider(self, script: dict[str, Any], **settings: Any) -> DshProvider:
        """A provider whose runtime plays `script`."""
        return DshProvider(DshConfig(**self.config(script, **settings)))

    @asynccontextmanager
    async def service(
        self, script: dict[str, Any] | None = None, *, service: dict[str, Any] | None = None, **settings: Any
    ) -> AsyncIterator[SubagentService]:
        """An open service, with one provider, `fake`, if there is a script; bounded as a whole."""
        with trio.fail_after(BOUND_SECONDS):
            async with open_subagents(on_failure=self.failures.append, **(service or {})) as subagents:
                if script is not None:
                    subagents.register(self.provider(script, **settings))
                yield subagents

    def request(self, prompt: str = "do it", **fields: Any) -> SubagentRequest:
        """A request whose parent works in the test's folder."""
        fields.setdefault("parent", Parent(cwd=str(self.folder)))
        return SubagentRequest(prompt=prompt, **fields)

    def entries(self) -> list[dict[str, Any]]:
        """What the runtimes wrote down; also while one of them is writing."""
        whole = self.log.read_text().rpartition("\n")[0] if self.log.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def received(self) -> list[dict[str, Any]]:
        """The frames that came to the runtimes, in order."""
        return [entry["received"] for entry in self.entries() if "received" in entry]
