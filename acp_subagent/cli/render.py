"""What the command line says in text: where messages of the answer part, and the notes beside it. Pure.

Owns every word that goes to stderr. A note is made of our closed words and of numbers; nothing that an agent
says is ever in one, except in `failure_lines`, which are shown only to whoever asked for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from acp_subagent.acp.vocabulary import Category
from acp_subagent.cli.json_result import failure_detail
from acp_subagent.cli.terminal import one_line, without_controls
from acp_subagent.seam.activity import PermissionDecision, TeardownReport, ToolKind
from acp_subagent.seam.content import AudioBlock, ImageBlock, ResourceBlock, ResourceLinkBlock, TextBlock
from acp_subagent.seam.events import (
    ContentChunk,
    Event,
    PermissionDecided,
    PermissionRequested,
    StageChanged,
    TextChunk,
)
from acp_subagent.seam.result import Failure, SubagentResult, SubagentStopReason

#: how long a piece of local detail may be on stderr
MAX_DETAIL_CHARACTERS = 20_000

BUNDLED_AGENT = "no agent command was given after --: the bundled fake agent answers"
INTERRUPTED = "interrupted: ending the run (once more to kill at once)"
KILLING = "interrupted again: killing the agent's processes"
ENDING_THE_TREE = "ending the agent's processes"
NO_TERMINAL = "no terminal to ask on: denied (--permission allow or reject decides without asking)"
STDOUT_BROKEN = "standard output cannot be written any more: ending the run"

#: what a block of the answer that cannot be streamed as text is called
_NOT_TEXT: Mapping[type, str] = {
    ImageBlock: "an image",
    AudioBlock: "audio",
    ResourceBlock: "a resource",
    ResourceLinkBlock: "a link",
}


class Messages:
    """Where in the streamed text one message of the agent ends and the next begins."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._ids_seen = False
        self._begun = False
        self._characters = 0

    def begins(self, chunk: TextChunk) -> bool:
        """Whether this chunk, the next one, begins another message; then it belongs on a line of its own."""
        unnamed_apart = chunk.message_id is None and self._ids_seen
        begins = self._begun and (unnamed_apart or chunk.message_id != self._message_id)
        self._begun = True
        self._message_id = chunk.message_id
        self._ids_seen = self._ids_seen or chunk.message_id is not None
        self._characters += len(chunk.text)
        return begins

    def missing(self, result: SubagentResult) -> str:
        """The text that came in no chunk, because whoever reads the answer was too slow for it.

        Where the result dropped text itself, nothing can be said about what is missing.
        """
        if result.counters.output_dropped_bytes:
            return ""
        blocks = [block for message in result.messages for block in message]
        return "".join(block.text for block in blocks if isinstance(block, TextBlock))[self._characters :]


def note_on(event: Event, *, announce_requests: bool, announce_teardown: bool) -> str | None:
    """What to note when this happens; None for what needs no words."""
    match event:
        case PermissionRequested() if announce_requests:
            return asked(event.kind)
        case PermissionDecided():
            return f"permission {event.record.decision} (policy: {event.record.policy})"
        case StageChanged("teardown"):
            return ENDING_THE_TREE if announce_teardown else None
        case StageChanged():
            return f"stage: {event.stage}"
        case ContentChunk(thought=False):
            kind = _NOT_TEXT.get(type(event.block), "of an unknown kind")
            return f"part of the answer is not text: {kind} (--format json has it)"
    return None


def asked(kind: ToolKind) -> str:
    """The note that the agent asks for a permission."""
    return f"permission asked: {kind}"


def question(kind: ToolKind, title: str) -> str:
    """What is asked on the terminal, and only there: the title is the agent's own text."""
    return f"The agent asks for permission ({kind}): {one_line(title)}\nAllow it?"


def closing_lines(result: SubagentResult, *, seconds: float, withheld: Iterable[str]) -> Iterator[str]:
    """How the run ended: stop reason, time, what the teardown found, what was denied, why it failed.

    `withheld` are names of the caller's own variables that the agent did not get and that look like keys.
    """
    yield f"stop reason: {_closed(result.stop_reason)}"
    yield f"duration: {seconds:.2f} s"
    if result.teardown is not None:
        yield _teardown_line(result.teardown)
    denied = [item for item in result.permissions if item.decision is PermissionDecision.DENIED]
    if denied:
        were = "permission request was" if len(denied) == 1 else "permission requests were"
        policy = denied[-1].policy
        yield f"{len(denied)} {were} denied (policy: {policy}); --permission allow or ask changes that"
    if result.diagnostic:
        yield result.diagnostic
    failure = result.failure
    if failure is not None and failure.advice is not None:
        yield failure.advice
    names = sorted(map(one_line, withheld))
    if failure is not None and failure.category in {Category.AUTH_REQUIRED, Category.TIMEOUT} and names:
        yield f"variables held back from the agent, since they look like keys: {', '.join(names)}"
        yield "--pass-env NAME lets one through"


def failure_lines(failure: Failure) -> Iterator[str]:
    """The local detail of a failure, a line for each piece: the agent's own words, free of what steers."""
    yield "local detail of the failure (may show anything that the agent wrote or was told):"
    for name, value in failure_detail(failure).items():
        if value in (None, "", []):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        # Of stderr the end says most, of everything else the beginning.
        ends = name == "stderr_tail"
        text = text[-MAX_DETAIL_CHARACTERS:] if ends else text[:MAX_DETAIL_CHARACTERS]
        text = without_controls(text).strip("\n")
        yield f"  {name}: " + text.replace("\n", "\n    ")


def _closed(stop_reason: str) -> str:
    known = stop_reason in set(SubagentStopReason)
    return str(stop_reason) if known else "unknown"


def _teardown_line(report: TeardownReport) -> str:
    rungs = ", ".join(f"{rung} {seconds:.2f} s" for rung, seconds in report.rungs.items())
    found = f"teardown: processes found: {report.processes_found}, survivors: {report.survivors}"
    return f"{found} ({rungs})" if rungs else found
