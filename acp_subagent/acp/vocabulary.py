"""The closed words of the ACP provider: what a failure is called, and which words of the protocol we act on.

Owns the spelling of each word, once, and one sentence of advice for each reason. Decides nothing. The words
of a failure are ours alone; nothing that an agent says is ever added to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from acp_subagent.supervised.advice import SHARED_ADVICE

#: how the ACP provider is named in a failure line
PROVIDER_LABEL = "ACP"

#: the protocol version that we speak; any other one in the agent's answer is a failure
PROTOCOL_VERSION = 1

#: the agent's JSON-RPC code for "log in first"; the one code that has a category of its own
AUTH_REQUIRED_CODE = -32000

#: what the line shows in place of a stop reason that is not in `StopReason`; the agent's own is not copied
UNKNOWN_STOP_REASON = "unknown"


class Stage(StrEnum):
    """Where a run was when it failed."""

    PROCESS = "process"  #: the command was being started, or its process ended while a turn was on
    INITIALIZE = "initialize"  #: before the spawn, and until the agent answered the handshake
    NEW_SESSION = "new-session"  #: opening the session: new, loaded or resumed, with login and options
    PROMPT = "prompt"  #: the session was open; a turn was running, or about to
    TEARDOWN = "teardown"  #: the process tree was being ended


class Category(StrEnum):
    """What kind of failure it was."""

    CONFIGURATION = "configuration"  #: what was asked for cannot be: working directory, model, mode, option
    PROCESS_START = "process-start"  #: the command cannot be started
    PROCESS_EXIT = "process-exit"  #: the process ended before it had answered
    TRANSPORT = "transport"  #: the pipes broke or are stuck, and the process is still there
    AUTH_REQUIRED = "auth-required"  #: the agent wants a login, and no configured one helped
    SESSION_LOST = "session-lost"  #: the session asked for cannot be had back, and no new one was allowed
    REMOTE_ERROR = "remote-error"  #: the agent answered with a JSON-RPC error
    REMOTE_LIMIT = "remote-limit"  #: the agent stopped at its own limit of model calls in one turn
    PROTOCOL = "protocol"  #: what came is not the protocol, or not the version of it that we speak
    TIMEOUT = "timeout"  #: one of our deadlines passed
    SURVIVORS = "survivors"  #: processes of the tree outlived the whole teardown
    UNKNOWN = "unknown"  #: none of the above: a stop reason we do not know, or a fault of our own


class Reason(StrEnum):
    """What exactly it was, where the category alone does not say."""

    CWD_MISSING = "cwd-missing"  #: neither the provider nor the parent names a working directory
    CWD_RELATIVE = "cwd-relative"  #: the parent's working directory is not an absolute path
    CWD_NOT_FOUND = "cwd-not-found"  #: the working directory does not exist
    CWD_NOT_DIRECTORY = "cwd-not-directory"  #: the working directory is not a directory
    CWD_NOT_ENTERABLE = "cwd-not-enterable"  #: the working directory may not be entered
    COMMAND_EMPTY = "command-empty"  #: the command is an empty string
    COMMAND_NOT_FOUND = "command-not-found"  #: no such command
    NOT_EXECUTABLE = "not-executable"  #: the command is there and may not be executed
    NO_SHEBANG = "no-shebang"  #: the command is neither a binary nor a script that names its interpreter
    INTERPRETER_MISSING = "interpreter-missing"  #: the interpreter that the command names is not there
    ARGUMENTS_TOO_LONG = "arguments-too-long"  #: arguments and environment are more than the system takes
    NUL_BYTE = "nul-byte"  #: a NUL in the command, an argument, a path or the environment
    OUT_OF_DESCRIPTORS = "out-of-descriptors"  #: no file descriptor left for the pipes
    VERSION_MISMATCH = "version-mismatch"  #: the agent speaks another version of the protocol
    NEVER_SPOKE_ACP = "never-spoke-acp"  #: many lines came, and none of them was a message
    FRAME_TOO_LARGE = "frame-too-large"  #: one message was longer than the limit
    MALFORMED_ANSWER = "malformed-answer"  #: an answer was not of the form that its method promises
    STARTUP_DEADLINE = "startup-deadline"  #: spawn, handshake and session took too long together
    TURN_DEADLINE = "turn-deadline"  #: the turn took too long
    IDLE_DEADLINE = "idle-deadline"  #: nothing came from the agent for too long
    TOOL_IDLE_DEADLINE = "tool-idle-deadline"  #: the same while one of its tool calls was in progress
    WRITE_BLOCKED = "write-blocked"  #: the agent has stopped reading what we send
    OPTION_NOT_SET = "option-not-set"  #: a requested model, mode or option could not be set and read back


#: What to do about the reasons that only this protocol has.
_OWN_ADVICE: Mapping[str, str] = {
    Reason.VERSION_MISMATCH: "Use a release of the agent that speaks version 1 of the protocol.",
    Reason.NEVER_SPOKE_ACP: "Check that the command starts the agent's ACP mode; many need an option.",
    Reason.OPTION_NOT_SET: "Ask for a model, mode or option that this agent offers.",
}

#: what to do about each reason: one fixed sentence, shown below the line by the command line
ADVICE: Mapping[str, str] = MappingProxyType(
    {reason: {**SHARED_ADVICE, **_OWN_ADVICE}[reason] for reason in Reason}
)


class StopReason(StrEnum):
    """Why a turn ended, in the words of the protocol."""

    END_TURN = "end_turn"  #: the agent was done
    MAX_TOKENS = "max_tokens"  #: the model's token limit
    MAX_TURN_REQUESTS = "max_turn_requests"  #: too many model calls in one turn
    REFUSAL = "refusal"  #: the agent declined
    CANCELLED = "cancelled"  #: somebody cancelled the turn


class PermissionOptionKind(StrEnum):
    """What one option of a permission request stands for."""

    ALLOW_ONCE = "allow_once"  #: this time
    ALLOW_ALWAYS = "allow_always"  #: this time and unasked from now on
    REJECT_ONCE = "reject_once"  #: not this time
    REJECT_ALWAYS = "reject_always"  #: not this time, nor ever

    @property
    def allows(self) -> bool:
        """True for the two kinds that let the agent go ahead."""
        return self in {PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS}
