"""The closed words of the DSH SDK provider: what a failure is called, and which words of the runtime count.

Owns the spelling of each word, once. Decides nothing. The words of a failure are ours alone; nothing that the
runtime says is ever added to them.
"""

from __future__ import annotations

from enum import StrEnum

from acp_subagent.process.launch import SpawnFault, WorkingDirectoryFault
from acp_subagent.seam.activity import ToolKind
from acp_subagent.supervised.advice import TalkFault
from acp_subagent.supervised.ending import DeadlineName

#: how this provider is named in a failure line
PROVIDER_LABEL = "DSH SDK"


class Stage(StrEnum):
    """Where a run was when it failed."""

    INITIALIZE = "initialize"  #: working directory, spawn, and until the runtime answered the handshake
    SESSION_RUN = "session-run"  #: from the prompt to the end of its activity
    SHUTDOWN = "shutdown"  #: the runtime was being shut down, or its process tree ended


class Category(StrEnum):
    """What kind of failure it was."""

    CONFIGURATION = "configuration"  #: the working directory cannot be used, or the command not be started
    CHILD_ERROR = "child-error"  #: the agent's last turn ended with an error
    CHILD_DISPOSED = "child-disposed"  #: the runtime disposed of the agent while its turn was on
    CHILD_UNKNOWN = "child-unknown"  #: the last turn ended in a way that we do not know
    MISSING_TERMINAL = "missing-terminal"  #: the agent became idle, and no turn of it had ended
    PROTOCOL = "protocol"  #: a JSON-RPC error, or what came is not the protocol
    TRANSPORT = "transport"  #: the pipes are closed or stuck, or the process has ended
    TIMEOUT = "timeout"  #: one of our deadlines passed
    SURVIVORS = "survivors"  #: processes of the tree outlived the whole teardown
    UNKNOWN = "unknown"  #: none of the above: a fault of our own, or a teardown that failed otherwise


#: every word that can say more than a category, spelled where the fact behind it is found
REASONS: tuple[str, ...] = (
    *WorkingDirectoryFault,
    *SpawnFault,
    *TalkFault,
    DeadlineName.STARTUP,
    DeadlineName.TURN,
)


class TurnEndKind(StrEnum):
    """How a turn of the agent ended, in the runtime's words."""

    COMPLETED = "completed"  #: it is done
    MAX_TOKENS = "max-tokens"  #: the model's token limit
    ABORTED = "aborted"  #: somebody cancelled it; its cause says who
    BLOCKED = "blocked"  #: it was not let go on
    ERROR = "error"  #: a model call or the runtime failed
    INTERRUPTED = "interrupted"  #: put in by the repair of a stored session, in place of an end that was lost


#: the cause of an aborted turn whose agent was disposed of
DISPOSED_CAUSE = "disposed"


class EventKind(StrEnum):
    """The events of a session that we act on; every other one is handed on as it came."""

    INBOX = "agent/inbox/spliced"  #: messages were put into the agent's inbox, or taken out
    TURN_END = "turn/end"  #: a turn ended, and how
    MESSAGE = "assistant/message"  #: a whole message of the agent
    CHUNK = "assistant/chunk"  #: a piece of a message, as it is made; not all releases send them
    ATTEMPT = "assistant/attempt"  #: a model call that brought no message, with what it had said
    RETRY = "llm/retry-started"  #: a failed model call is made once more
    TOOL_CALL = "tool/call"  #: a tool is called
    TOOL_RESULT = "tool/result"  #: what came of it
    MODEL = "request/context"  #: which model is asked, and how large its context is


#: What the runtime's own tools do; each other tool is `other`.
TOOL_KINDS: dict[str, ToolKind] = {
    "bash": ToolKind.EXECUTE,
    "read": ToolKind.READ,
    "read_image": ToolKind.READ,
    "write": ToolKind.EDIT,
    "edit": ToolKind.EDIT,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
}


class Status(StrEnum):
    """Whether an agent as a whole is at work."""

    RUNNING = "running"  #: it is
    IDLE = "idle"  #: it has nothing more to do
