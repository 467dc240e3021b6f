"""How a wait for the agent can end: the closed facts that every provider classifies from.

Owns the words; the providers' classifiers own what they mean. Pure.
"""

from __future__ import annotations

from enum import StrEnum


class End(StrEnum):
    """How the wait for one answer of the agent (or the spawn before it) ended."""

    ANSWERED = "answered"  #: a result came; whether it is well formed is the provider's to say
    RPC_ERROR = "rpc-error"  #: a JSON-RPC error came
    MALFORMED = "malformed"  #: an answer came that is not of the form that its method promises
    UNACCEPTABLE = "unacceptable"  #: a well-formed answer that we cannot go on with; `reason` says why
    EXITED = "exited"  #: the process ended before the answer
    STREAM_ENDED = "stream-ended"  #: the stream ended or cannot be written, and the process is still there
    WRITE_BLOCKED = "write-blocked"  #: more unsent bytes than the limit: the agent does not read
    FRAME_TOO_LARGE = "frame-too-large"  #: one line passed the frame limit
    NEVER_SPOKE = "never-spoke"  #: noise limit passed before the first valid frame
    NOT_CONFIGURED = "not-configured"  #: unusable configuration; nothing was spawned; `reason` says what
    NOT_SPAWNED = "not-spawned"  #: the command cannot be started; `reason` says why
    UNANSWERED = "unanswered"  #: nothing came; our own intent ended the wait
    UNEXPECTED = "unexpected"  #: an exception of our own


class Intent(StrEnum):
    """Our own reason to end a start or a turn; it comes before whatever the agent then does."""

    CANCELLED = "cancelled"  #: abort, cancel, dispose, or the caller's scope was cancelled
    DEADLINE = "deadline"  #: one of our deadlines passed


class DeadlineName(StrEnum):
    """Which deadline passed."""

    STARTUP = "startup-deadline"  #: spawn, handshake and session, all together
    TURN = "turn-deadline"  #: one turn from prompt to answer
    IDLE = "idle-deadline"  #: no frame from the agent
    TOOL_IDLE = "tool-idle-deadline"  #: no frame from the agent while a tool call is in progress
