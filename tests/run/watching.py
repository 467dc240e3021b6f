"""Watching a run from its start to its end for secrets that get where they do not belong."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    Parent,
    SubagentError,
    SubagentProvider,
    SubagentRequest,
    SubagentResult,
    open_subagents,
)
from tests.run.canaries import leaks, reachable, secret, texts_of_exception, texts_of_objects, texts_of_record
from tests.run.stage import Stage


class Watch:
    """Collects whatever can be shown, and finds the secrets in it."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.folder = folder
        self.caplog = caplog
        self.cwd = folder / secret("cwd")
        self.cwd.mkdir()
        self.command = folder / secret("command-path")
        self.command.symlink_to(sys.executable)
        self.found: dict[str, set[str]] = {}
        self.looked_at: set[type] = set()

    def request(self, **fields: Any) -> SubagentRequest:
        parent = Parent(cwd=str(self.cwd), session_id=secret("parent-session"))
        return SubagentRequest(prompt=secret("prompt"), parent=parent, label=secret("label"), **fields)

    def look(self, where: str, *roots: object) -> None:
        """Look at everything that can be reached; what is found is told at the end."""
        self.looked_at |= {type(thing) for thing in reachable(*roots)}
        for text in texts_of_objects(*roots):
            self.note(where, text)

    def note(self, where: str, text: str) -> None:
        if found := leaks(text):
            self.found.setdefault(f"{where}: {text[:300]}", set()).update(found)

    def finish(self) -> None:
        """Nothing was found, in the log records neither."""
        records = self.caplog.get_records("call")  # `records` holds those of the phase that is going on
        assert records, "nothing was logged: then this shows nothing"
        for record in records:
            for text in texts_of_record(record):
                self.note("log", text)
        assert self.found == {}


class AcpWatch(Watch):
    """Watches runs over the fake agent."""

    def __init__(self, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__(stage.folder, caplog)
        self.stage = stage

    def provider(self, scenario: dict[str, Any], **settings: Any) -> AcpProvider:
        script = self.stage.folder / "scenario.json"  # too long for an argument
        script.write_text(json.dumps(scenario))
        config = self.stage.config(str(script), faulty=True, **settings)
        config["args"] = [*config["args"], secret("argv")]
        config["env"] = {**config["env"], "SOME_VARIABLE": secret("env")}
        config.setdefault("wire_log", str(self.folder / secret("wire-log")))
        return AcpProvider(AcpConfig(**{**config, "command": str(self.command), "cwd": str(self.cwd)}))


@contextmanager
def watching(
    watch: Watch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """Everything is logged meanwhile; nothing that was logged, printed or looked at holds a secret."""
    with caplog.at_level(logging.DEBUG):
        yield
        watch.finish()
    printed = capfd.readouterr()
    assert leaks(printed.out + printed.err) == set()


async def conduct(
    watch: Watch, provider: SubagentProvider, *, reaper: bool = True, **fields: Any
) -> SubagentResult | SubagentError:
    """One run to its end; everything that can be reached meanwhile and afterwards is looked at."""
    request, seen = watch.request(**fields), list[object]()  # events, failures, lifecycle, the run
    outcome: SubagentResult | SubagentError
    with trio.fail_after(30):
        async with open_subagents(on_failure=seen.append, reaper=reaper) as subagents:
            subagents.register(provider)
            subagents.observe(seen.append)
            try:
                async with await subagents.start(provider.name, request) as run:
                    seen.append(run)
                    subscription = run.events(stderr=True)
                    watch.look("ready", run, subscription)
                    async for event in subscription:
                        seen.append(event)
                    outcome = await run.result()
                    watch.look("settled", run, subscription)
            except SubagentError as error:
                outcome = error
            watch.look("ended", subagents, provider, request, outcome, seen)
    if isinstance(outcome, BaseException):
        for text in texts_of_exception(outcome):
            watch.note("exception", text)
    return outcome


def first_line(outcome: SubagentResult | SubagentError) -> str | None:
    text = outcome.diagnostic if isinstance(outcome, SubagentResult) else str(outcome)
    return None if text is None else text.splitlines()[0]
