"""The stage of the real-child tests: providers over the fake agent, with short graces."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    Failure,
    Parent,
    SubagentRequest,
    SubagentService,
    open_subagents,
)
from acp_subagent.process.procfs import Identity, ProcessTable

REPOSITORY = Path(__file__).resolve().parents[2]

#: No wait of a test is longer than this.
BOUND_SECONDS = 30.0

#: Graces short enough for tests, and long enough for a busy machine.
QUICK: dict[str, Any] = {
    "cancel_grace_seconds": 1.0,
    "eof_grace_seconds": 1.0,
    "term_grace_seconds": 1.0,
    "kill_grace_seconds": 5.0,
    "exit_observation_seconds": 0.5,
}

#: the one function that signals a tree
Kill = Callable[[ProcessTable, int, Iterable[Identity], Iterable[int]], None]


class Stage:
    """Makes what a test needs, and remembers the logs of what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures: list[Failure] = []
        self.logs: list[tuple[Path, bool]] = []

    def config(
        self,
        scenario: dict[str, Any] | str,
        *,
        faulty: bool = False,
        logged: bool = True,
        **settings: Any,
    ) -> dict[str, Any]:
        """The settings of a provider whose agent plays `scenario`.

        `faulty`: its frames are not judged. Not `logged`: none is written down, for children side by side.
        """
        log = self.folder / f"frames-{len(self.logs)}.log"
        if logged:
            self.logs.append((log, faulty))
        written = ["--log", str(log)] if logged else []
        chosen = ["--scenario", scenario] if isinstance(scenario, str) else ["--json", json.dumps(scenario)]
        environment = {"PYTHONPATH": str(REPOSITORY), **settings.pop("env", {})}
        return {
            "name": "fake",
            "command": sys.executable,
            "args": ["-m", "fake_acp_server", *chosen, *written],
            "cwd": str(self.folder),
            "env": environment,
            **QUICK,
            **settings,
        }

    def provider(
        self, scenario: dict[str, Any] | str, *, faulty: bool = False, **settings: Any
    ) -> AcpProvider:
        """A provider whose agent plays `scenario`."""
        return AcpProvider(AcpConfig(**self.config(scenario, faulty=faulty, **settings)))

    @asynccontextmanager
    async def service(
        self,
        scenario: dict[str, Any] | str | None = None,
        *,
        faulty: bool = False,
        service: dict[str, Any] | None = None,
        bound_seconds: float = BOUND_SECONDS,
        **settings: Any,
    ) -> AsyncIterator[SubagentService]:
        """An open service with one provider, `fake`; bounded as a whole."""
        with trio.fail_after(bound_seconds):
            async with open_subagents(on_failure=self.failures.append, **(service or {})) as subagents:
                if scenario is not None:
                    subagents.register(self.provider(scenario, faulty=faulty, **settings))
                yield subagents

    def request(self, prompt: str = "do it", **fields: Any) -> SubagentRequest:
        """A request whose parent works in the test's folder."""
        fields.setdefault("parent", Parent(cwd=str(self.folder)))
        return SubagentRequest(prompt=prompt, **fields)
