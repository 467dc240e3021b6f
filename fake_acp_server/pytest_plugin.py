"""A pytest fixture that starts nothing itself: it gives the command of a fake agent for your client to start.

It owns the files through which the fake tells what happened, and waits for what a test waits for. It works
the same in plain, asyncio and trio tests: waiting is a plain call, or, awaited, ``wait_async``. Loading this
file imports pytest and nothing else; it is an entry point, so installing the distribution is enough.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

#: How often a wait looks again, and how long it waits unless told.
POLL_SECONDS = 0.01
TIMEOUT_SECONDS = 10.0


class FakeAgent:
    """One fake agent that a client under test is going to start.

    ``argv`` is the whole command. ``environment`` says the same for clients that take a command without
    arguments: start ``command`` with these variables.
    """

    def __init__(self, scenario: str | dict[str, Any], folder: Path) -> None:
        import json
        import os
        import sys

        self._log = folder / "frames.jsonl"
        self._report = folder / "report.json"
        chosen = ["--scenario", scenario] if isinstance(scenario, str) else ["--json", json.dumps(scenario)]
        files = ["--log", str(self._log), "--report", str(self._report)]
        #: The command without arguments.
        self.command: list[str] = [sys.executable, os.path.dirname(os.path.abspath(__file__))]
        #: The whole command.
        self.argv: list[str] = [*self.command, *chosen, *files]
        name = "FAKE_ACP_SCENARIO" if isinstance(scenario, str) else "FAKE_ACP_SCENARIO_JSON"
        #: Variables that say what the arguments say.
        self.environment: dict[str, str] = {
            name: chosen[1],
            "FAKE_ACP_LOG": str(self._log),
            "FAKE_ACP_REPORT": str(self._report),
        }

    def frames(self, sender: str | None = None) -> list[Any]:
        """The frames that were exchanged so far, of both sides or only of ``"client"`` or ``"agent"``."""
        return [
            entry["frame"]
            for entry in self._entries()
            if "frame" in entry and (sender is None or entry["from"] == sender)
        ]

    def methods(self, sender: str = "client") -> list[str]:
        """The methods that one side called so far, in order."""
        return [
            frame["method"] for frame in self.frames(sender) if isinstance(frame, dict) and "method" in frame
        ]

    def violations(self) -> list[dict[str, Any]]:
        """What the client did against the protocol so far (see ``fake-acp-server --rules``)."""
        return list(self.report()["violations"]) if self._report.exists() else []

    def report(self) -> dict[str, Any]:
        """The report of strict mode; its ``complete`` is true when the agent has ended in good order."""
        import json

        report: dict[str, Any] = json.loads(self._report.read_text(encoding="utf-8"))
        return report

    def ready(self) -> bool:
        """Whether a session is open: the agent has answered ``session/new``, load or resume."""
        # Lists, for either side may be the one that a test makes write nonsense.
        setups = ("session/new", "session/load", "session/resume")
        called = [frame for frame in self.frames("client") if isinstance(frame, dict)]
        asked = [frame.get("id") for frame in called if frame.get("method") in setups]
        said = [frame for frame in self.frames("agent") if isinstance(frame, dict)]
        return any("result" in frame and frame.get("id") in asked for frame in said)

    def wait(self, until: Callable[[], bool] | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Wait until a session is open, or until a condition of yours holds; ``TimeoutError`` when it does
        not.
        """
        import time

        deadline = time.monotonic() + timeout_seconds
        while not (until or self.ready)():
            if time.monotonic() > deadline:
                raise TimeoutError("the fake agent did not get there in time")
            time.sleep(POLL_SECONDS)

    async def wait_async(
        self, until: Callable[[], bool] | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        """``wait`` for a trio or asyncio test: other tasks run meanwhile."""
        import time

        sleep = _sleep_of_the_running_loop()
        deadline = time.monotonic() + timeout_seconds
        while not (until or self.ready)():
            if time.monotonic() > deadline:
                raise TimeoutError("the fake agent did not get there in time")
            await sleep(POLL_SECONDS)

    def _entries(self) -> list[dict[str, Any]]:
        import json

        if not self._log.exists():
            return []
        text = self._log.read_text(encoding="utf-8")
        # The last line may be half written.
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _sleep_of_the_running_loop() -> Any:
    """trio's or asyncio's ``sleep``, whichever runs; neither is imported for this by a test of the other."""
    import sys

    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return trio.sleep
    import asyncio

    return asyncio.sleep


@pytest.fixture
def fake_acp_agent(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., FakeAgent]:
    """Makes fake agents: call it with the name of a scenario, or with a scenario as a mapping."""

    def make(scenario: str | dict[str, Any] = "demo") -> FakeAgent:
        return FakeAgent(scenario, tmp_path_factory.mktemp("fake-acp-agent"))

    return make
