"""The tool that lets a parent's model delegate a task to one provider's subagents.

Owns a call from its arguments to the answer. What a model gets wrong is answered with an error result, what
the host gets wrong is raised. The wording is `definition`'s and `outcome`'s; the subagent itself is the
service's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import trio

from acp_subagent.delegate.arguments import Refusal, read_arguments
from acp_subagent.delegate.definition import (
    JOB_KILL,
    JOB_OUTPUT,
    ToolDefinition,
    check_name,
    subagent_definition,
    subagent_schema,
)
from acp_subagent.delegate.execution import carry_out
from acp_subagent.delegate.jobs import JobTable
from acp_subagent.delegate.outcome import ToolResult, outcome_of_error, tool_result
from acp_subagent.errors import SubagentAbortedError, UnknownProviderError
from acp_subagent.seam.capabilities import check_capabilities
from acp_subagent.seam.request import Deadlines, Parent, SubagentRequest
from acp_subagent.seam.run import SubagentProvider
from acp_subagent.seam.service import SubagentService

#: For `max_depth`: how deep delegation goes is the provider's own affair; nothing is asked of it.
PROVIDER_MANAGED: Final = "provider-managed"

TOO_MANY_JOBS = (
    "Too many background jobs are running. "
    f"Wait until one has ended, end one with {JOB_KILL}, or call without run_in_background."
)


class ModelTool(Protocol):
    """Something that a model can call; what a parent's agent loop needs to know of each tool."""

    @property
    def name(self) -> str:
        """The name that the model calls it by."""

    @property
    def available(self) -> bool:
        """Whether it is to be offered to the model now."""

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told about it; only while it is `available`."""

    async def call(self, arguments: object, parent: Parent, *, abort: trio.Event | None = None) -> ToolResult:
        """Answer one call of the model; never raises for what the model got wrong."""


class SubagentTool:
    """Delegates to the provider that is registered under one name, while it is registered.

    `jobs` makes background jobs possible. `purpose` is one sentence of the host for the model, on what this
    subagent is good for. The other options go with every request.

    Raises `UnknownProviderError` when no such provider is registered, `UnsupportedCapabilityError` when it
    cannot honour an option (`max_depth` needs `depth_limit`, unless it is `provider-managed`), and
    `ConfigurationError` for an impossible name or option.
    """

    def __init__(
        self,
        service: SubagentService,
        provider: str,
        name: str = "subagent",
        jobs: JobTable | None = None,
        *,
        purpose: str = "",
        max_depth: int | Literal["provider-managed"] = PROVIDER_MANAGED,
        deadlines: Deadlines | None = None,
        tool_filter: object = None,
        persona: object = None,
        agent_options: Mapping[str, object] | None = None,
    ) -> None:
        check_name(name)
        self._service = service
        self._provider_name = provider
        self._name = name
        self._jobs = jobs
        self._purpose = purpose
        self._options: dict[str, Any] = {
            "max_depth": None if max_depth == PROVIDER_MANAGED else max_depth,
            "deadlines": deadlines or Deadlines(),
            "tool_filter": tool_filter,
            "persona": persona,
            "agent_options": agent_options,
        }
        check_capabilities(SubagentRequest(prompt="-", **self._options), self._provider.capabilities)

    def __repr__(self) -> str:
        return f"<SubagentTool {self._name} {'available' if self.available else 'not available'}>"

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self._name

    @property
    def available(self) -> bool:
        """Whether its provider is registered; offer it to the model only then."""
        return any(one.name == self._provider_name for one in self._service.providers())

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told about it, by what the provider's subagents know when they begin.

        Raises `UnknownProviderError` when it is not `available`.
        """
        return subagent_definition(
            self._name,
            purpose=self._purpose,
            inherits_parent_context=self._provider.inherits_parent_context,
            background=self._jobs is not None,
        )

    async def call(self, arguments: object, parent: Parent, *, abort: trio.Event | None = None) -> ToolResult:
        """Delegate one task; `arguments` are what the model wrote, an object or its JSON text.

        Waits for the subagent's answer, or returns with the id of a background job. Setting `abort` ends the
        subagent, and the call with an error result that has the partial output; when it is set already,
        nothing is started. It does not reach a background job. When the caller's scope is cancelled the
        subagent is ended and `Cancelled` goes on.

        Raises `ConfigurationError` and `ServiceClosedError` for what is the host's mistake, and what a
        provider raises against its contract; nothing is left of the subagent then either.
        """
        await trio.lowlevel.checkpoint()
        if abort is not None and abort.is_set():
            return tool_result(outcome_of_error(SubagentAbortedError()))
        schema = subagent_schema(inherits_parent_context=False, background=self._jobs is not None)
        given = read_arguments(arguments, schema)
        if isinstance(given, Refusal):
            return ToolResult(text=given.sentence, is_error=True)
        background = given.get("run_in_background", False)
        request = SubagentRequest(
            prompt=given["prompt"],
            label=given["description"],
            parent=parent,
            abort=None if background else abort,
            **self._options,
        )
        if background:
            return self._start_job(request)
        return tool_result(await carry_out(self._service, self._provider_name, request))

    def _start_job(self, request: SubagentRequest) -> ToolResult:
        assert self._jobs is not None
        if not self.available:
            return tool_result(outcome_of_error(_not_registered()))
        if self._jobs.full:
            return ToolResult(text=TOO_MANY_JOBS, is_error=True)
        id = self._jobs.start(self._service, self._provider_name, request)
        text = f"Started the background job {id}. Read it with {JOB_OUTPUT}, end it with {JOB_KILL}."
        return ToolResult(text=text, job_id=id)

    @property
    def _provider(self) -> SubagentProvider:
        for provider in self._service.providers():
            if provider.name == self._provider_name:
                return provider
        raise _not_registered()


def _not_registered() -> UnknownProviderError:
    return UnknownProviderError("No provider is registered under this name.")
