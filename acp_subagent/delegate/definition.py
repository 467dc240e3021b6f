"""What a model is told about the tools: names, descriptions, and the schema of their arguments.

Owns the wording and the three forms in which model APIs take a definition. A schema here is the only rule
that arguments are checked by (`arguments`). Pure.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from acp_subagent.errors import ConfigurationError

JOB_OUTPUT = "job_output"
JOB_KILL = "job_kill"

#: what every one of the model APIs takes for a tool's name
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool as a model is to see it. Each export is a new object, free to be changed."""

    name: str
    description: str = field(repr=False)
    schema: dict[str, Any] = field(repr=False)  #: JSON Schema of the arguments

    def to_openai(self) -> dict[str, Any]:
        """As a member of `tools` in OpenAI's chat completions, and in every API made after it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": deepcopy(self.schema),
        }
        return {"type": "function", "function": function}

    def to_anthropic(self) -> dict[str, Any]:
        """As a member of `tools` in Anthropic's messages."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": deepcopy(self.schema),
        }

    def to_mcp(self) -> dict[str, Any]:
        """As a member of `tools` in the result of MCP's `tools/list`."""
        return {"name": self.name, "description": self.description, "inputSchema": deepcopy(self.schema)}


def check_name(name: str) -> None:
    """Raise `ConfigurationError` unless every model API takes `name` for a tool."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError("A tool's name has 1 to 64 letters, digits, underscores and hyphens.")


# -- the subagent tool

_WHAT = (
    "Delegate a task to a subagent: an agent of its own, with its own tools, that works until it is done "
    "and then returns its final answer. Calls made together run at the same time."
)
_FRESH = (
    "The subagent has not seen this conversation and cannot ask back. Write a prompt that stands alone: "
    "the goal, the paths and facts it needs, what it may change, and what to report."
)
_FORKED = (
    "The subagent starts from this conversation: it sees every finished turn, but not the present one, and "
    "cannot ask back. Do not repeat what was said; state the task and what to report."
)
_ON_ERROR = "If it fails, the result says why; partial output in it is not an answer."
_BACKGROUND = (
    "With run_in_background the call returns the id of a job at once; "
    f"read the job with {JOB_OUTPUT} and end it with {JOB_KILL}."
)
_LABEL = "The task in 3 to 5 words, as a label for people; the subagent does not see it."
_FRESH_PROMPT = "The whole task, complete in itself."
_FORKED_PROMPT = "The task; refer freely to the finished turns of this conversation."
_IN_BACKGROUND = "true: do not wait, return the id of a background job. Default: false."


def subagent_definition(
    name: str, *, purpose: str, inherits_parent_context: bool, background: bool
) -> ToolDefinition:
    """The definition of a subagent tool; `purpose` is the host's own sentence about this subagent, or ''."""
    context = _FORKED if inherits_parent_context else _FRESH
    parts = [_WHAT, purpose, context, _ON_ERROR, _BACKGROUND if background else ""]
    description = " ".join(part for part in parts if part)
    schema = subagent_schema(inherits_parent_context=inherits_parent_context, background=background)
    return ToolDefinition(name, description, schema)


def subagent_schema(*, inherits_parent_context: bool, background: bool) -> dict[str, Any]:
    """The schema of a subagent tool's arguments."""
    prompt = _FORKED_PROMPT if inherits_parent_context else _FRESH_PROMPT
    properties = {
        "description": {"type": "string", "minLength": 1, "description": _LABEL},
        "prompt": {"type": "string", "minLength": 1, "description": prompt},
    }
    if background:
        properties["run_in_background"] = {"type": "boolean", "description": _IN_BACKGROUND}
    return _object(properties, required=("description", "prompt"))


# -- the job tools

_JOB_ID = {"type": "string", "minLength": 1, "description": "The id that the start of the job returned."}


def job_output_definition() -> ToolDefinition:
    """The definition of `job_output`."""
    description = (
        "Read a background job: its status (running, completed, failed or killed), and the text so far or, "
        "when it has ended, its answer or the reason why there is none. Returns at once."
    )
    return ToolDefinition(JOB_OUTPUT, description, job_schema())


def job_kill_definition() -> ToolDefinition:
    """The definition of `job_kill`."""
    description = (
        "End a background job and its subagent, and wait until both have ended. "
        "Harmless when the job has ended already."
    )
    return ToolDefinition(JOB_KILL, description, job_schema())


def job_schema() -> dict[str, Any]:
    """The schema of the arguments of both job tools."""
    return _object({"job_id": dict(_JOB_ID)}, required=("job_id",))


def _object(properties: dict[str, dict[str, Any]], *, required: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
