"""What to do about a reason, one fixed sentence each; and the reasons that a conversation itself can bring.

Owns the sentences for every reason that can come up whatever a child speaks. A provider with reasons of its
own adds theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from acp_subagent.process.launch import SpawnFault, WorkingDirectoryFault
from acp_subagent.supervised.ending import DeadlineName


class TalkFault(StrEnum):
    """What is wrong with how a child talks."""

    FRAME_TOO_LARGE = "frame-too-large"  #: one message was longer than the limit
    MALFORMED_ANSWER = "malformed-answer"  #: an answer was not of the form that its method promises
    WRITE_BLOCKED = "write-blocked"  #: it has stopped reading what we send


#: by the word of the reason; shown below the line by the command line
SHARED_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        WorkingDirectoryFault.MISSING: "Give the provider or the parent a working directory.",
        WorkingDirectoryFault.RELATIVE: "Give the parent's working directory as an absolute path.",
        WorkingDirectoryFault.NOT_FOUND: "Check the working directory's spelling, or create it first.",
        WorkingDirectoryFault.NOT_DIRECTORY: "Give a directory as the working directory, not a file.",
        WorkingDirectoryFault.NOT_ENTERABLE: "Allow this user to read and enter the working directory.",
        SpawnFault.COMMAND_EMPTY: "Name the agent's command.",
        SpawnFault.COMMAND_NOT_FOUND: (
            "Install the agent, or give its full path; only the child's PATH counts."
        ),
        SpawnFault.NOT_EXECUTABLE: "Give a program made for this machine that this user may execute.",
        SpawnFault.NO_SHEBANG: "Start the script with a #! line, or run it through its interpreter.",
        SpawnFault.INTERPRETER_MISSING: (
            "Install the interpreter that the script's #! line names, or correct it."
        ),
        SpawnFault.ARGUMENTS_TOO_LONG: "Pass fewer or shorter arguments and environment variables.",
        SpawnFault.NUL_BYTE: "Remove the NUL character from the command, its arguments and its environment.",
        SpawnFault.OUT_OF_DESCRIPTORS: (
            "Raise the limit of open files (ulimit -n), or run fewer agents at once."
        ),
        TalkFault.FRAME_TOO_LARGE: "Raise max_frame_bytes if messages of that size are expected.",
        TalkFault.MALFORMED_ANSWER: "Update the agent: it broke the protocol.",
        TalkFault.WRITE_BLOCKED: "Start the agent again: it had stopped reading its input.",
        DeadlineName.STARTUP: "Raise startup_timeout_seconds, or see whether the agent waits for a login.",
        DeadlineName.TURN: "Raise turn_timeout_seconds, or give the agent a smaller task.",
        DeadlineName.IDLE: "Raise idle_timeout_seconds if the agent may be silent for that long.",
        DeadlineName.TOOL_IDLE: "Raise tool_idle_timeout_seconds if one tool call may take that long.",
    }
)
