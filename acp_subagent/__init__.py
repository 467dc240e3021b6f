"""Launch coding agents as supervised child processes and get one result back.

What an embedding program imports is here, loaded on first use, and nothing else is public.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_subagent.acp.client import (
        PermissionHandler as PermissionHandler,
    )
    from acp_subagent.acp.client import (
        PermissionRequest as PermissionRequest,
    )
    from acp_subagent.acp.config import AcpConfig as AcpConfig
    from acp_subagent.acp.permissions import (
        PermissionAnswer as PermissionAnswer,
    )
    from acp_subagent.acp.permissions import (
        PermissionOption as PermissionOption,
    )
    from acp_subagent.acp.permissions import (
        PermissionPolicy as PermissionPolicy,
    )
    from acp_subagent.acp.provider import AcpProvider as AcpProvider
    from acp_subagent.delegate.definition import ToolDefinition as ToolDefinition
    from acp_subagent.delegate.job_tools import (
        JobKillTool as JobKillTool,
    )
    from acp_subagent.delegate.job_tools import (
        JobOutputTool as JobOutputTool,
    )
    from acp_subagent.delegate.jobs import (
        Job as Job,
    )
    from acp_subagent.delegate.jobs import (
        JobNotice as JobNotice,
    )
    from acp_subagent.delegate.jobs import (
        JobOutput as JobOutput,
    )
    from acp_subagent.delegate.jobs import (
        JobTable as JobTable,
    )
    from acp_subagent.delegate.jobs import (
        open_job_table as open_job_table,
    )
    from acp_subagent.delegate.outcome import (
        JobStatus as JobStatus,
    )
    from acp_subagent.delegate.outcome import (
        ToolResult as ToolResult,
    )
    from acp_subagent.delegate.tool import (
        ModelTool as ModelTool,
    )
    from acp_subagent.delegate.tool import (
        SubagentTool as SubagentTool,
    )
    from acp_subagent.dsh.config import DshConfig as DshConfig
    from acp_subagent.dsh.provider import DshProvider as DshProvider
    from acp_subagent.errors import (
        ConfigurationError as ConfigurationError,
    )
    from acp_subagent.errors import (
        DuplicateProviderError as DuplicateProviderError,
    )
    from acp_subagent.errors import (
        ServiceClosedError as ServiceClosedError,
    )
    from acp_subagent.errors import (
        SessionEndedError as SessionEndedError,
    )
    from acp_subagent.errors import (
        SubagentAbortedError as SubagentAbortedError,
    )
    from acp_subagent.errors import (
        SubagentError as SubagentError,
    )
    from acp_subagent.errors import (
        SubagentRunError as SubagentRunError,
    )
    from acp_subagent.errors import (
        SubagentStartError as SubagentStartError,
    )
    from acp_subagent.errors import (
        SubagentTeardownError as SubagentTeardownError,
    )
    from acp_subagent.errors import (
        SubagentUsageError as SubagentUsageError,
    )
    from acp_subagent.errors import (
        TurnInProgressError as TurnInProgressError,
    )
    from acp_subagent.errors import (
        UnknownProviderError as UnknownProviderError,
    )
    from acp_subagent.errors import (
        UnsupportedCapabilityError as UnsupportedCapabilityError,
    )
    from acp_subagent.seam.activity import (
        Cost as Cost,
    )
    from acp_subagent.seam.activity import (
        ExitStatus as ExitStatus,
    )
    from acp_subagent.seam.activity import (
        PermissionDecision as PermissionDecision,
    )
    from acp_subagent.seam.activity import (
        PermissionRecord as PermissionRecord,
    )
    from acp_subagent.seam.activity import (
        PlanEntry as PlanEntry,
    )
    from acp_subagent.seam.activity import (
        Rung as Rung,
    )
    from acp_subagent.seam.activity import (
        TeardownReport as TeardownReport,
    )
    from acp_subagent.seam.activity import (
        ToolCall as ToolCall,
    )
    from acp_subagent.seam.activity import (
        ToolKind as ToolKind,
    )
    from acp_subagent.seam.activity import (
        ToolStatus as ToolStatus,
    )
    from acp_subagent.seam.activity import (
        Usage as Usage,
    )
    from acp_subagent.seam.content import (
        AudioBlock as AudioBlock,
    )
    from acp_subagent.seam.content import (
        ContentBlock as ContentBlock,
    )
    from acp_subagent.seam.content import (
        ImageBlock as ImageBlock,
    )
    from acp_subagent.seam.content import (
        ResourceBlock as ResourceBlock,
    )
    from acp_subagent.seam.content import (
        ResourceLinkBlock as ResourceLinkBlock,
    )
    from acp_subagent.seam.content import (
        TextBlock as TextBlock,
    )
    from acp_subagent.seam.content import (
        UnknownBlock as UnknownBlock,
    )
    from acp_subagent.seam.events import (
        CommandsChanged as CommandsChanged,
    )
    from acp_subagent.seam.events import (
        ContentChunk as ContentChunk,
    )
    from acp_subagent.seam.events import (
        Event as Event,
    )
    from acp_subagent.seam.events import (
        EventsLagged as EventsLagged,
    )
    from acp_subagent.seam.events import (
        ModeChanged as ModeChanged,
    )
    from acp_subagent.seam.events import (
        OptionsChanged as OptionsChanged,
    )
    from acp_subagent.seam.events import (
        PermissionDecided as PermissionDecided,
    )
    from acp_subagent.seam.events import (
        PermissionRequested as PermissionRequested,
    )
    from acp_subagent.seam.events import (
        PlanChanged as PlanChanged,
    )
    from acp_subagent.seam.events import (
        SessionInfoChanged as SessionInfoChanged,
    )
    from acp_subagent.seam.events import (
        Snapshot as Snapshot,
    )
    from acp_subagent.seam.events import (
        StageChanged as StageChanged,
    )
    from acp_subagent.seam.events import (
        StderrLine as StderrLine,
    )
    from acp_subagent.seam.events import (
        TextChunk as TextChunk,
    )
    from acp_subagent.seam.events import (
        ThoughtChunk as ThoughtChunk,
    )
    from acp_subagent.seam.events import (
        ToolCallChanged as ToolCallChanged,
    )
    from acp_subagent.seam.events import (
        UnknownUpdate as UnknownUpdate,
    )
    from acp_subagent.seam.events import (
        UsageChanged as UsageChanged,
    )
    from acp_subagent.seam.events import (
        UserChunk as UserChunk,
    )
    from acp_subagent.seam.feed import Subscription as Subscription
    from acp_subagent.seam.lifecycle import (
        RunEnded as RunEnded,
    )
    from acp_subagent.seam.lifecycle import (
        RunStarted as RunStarted,
    )
    from acp_subagent.seam.request import (
        Deadlines as Deadlines,
    )
    from acp_subagent.seam.request import (
        Parent as Parent,
    )
    from acp_subagent.seam.request import (
        SessionInfo as SessionInfo,
    )
    from acp_subagent.seam.request import (
        SessionRef as SessionRef,
    )
    from acp_subagent.seam.request import (
        SubagentCapabilities as SubagentCapabilities,
    )
    from acp_subagent.seam.request import (
        SubagentRequest as SubagentRequest,
    )
    from acp_subagent.seam.result import (
        Counters as Counters,
    )
    from acp_subagent.seam.result import (
        Failure as Failure,
    )
    from acp_subagent.seam.result import (
        RpcFault as RpcFault,
    )
    from acp_subagent.seam.result import (
        SubagentResult as SubagentResult,
    )
    from acp_subagent.seam.result import (
        SubagentStopReason as SubagentStopReason,
    )
    from acp_subagent.seam.result import (
        Timings as Timings,
    )
    from acp_subagent.seam.run import (
        StartContext as StartContext,
    )
    from acp_subagent.seam.run import (
        SubagentProvider as SubagentProvider,
    )
    from acp_subagent.seam.run import (
        SubagentRun as SubagentRun,
    )
    from acp_subagent.seam.run import (
        SupportsResume as SupportsResume,
    )
    from acp_subagent.seam.run import (
        SupportsStoredSessions as SupportsStoredSessions,
    )
    from acp_subagent.seam.service import (
        Registration as Registration,
    )
    from acp_subagent.seam.service import (
        SubagentService as SubagentService,
    )
    from acp_subagent.seam.service import (
        open_subagents as open_subagents,
    )

#: Which module each public name comes from.
_HOMES = {
    "acp.client": ("PermissionHandler", "PermissionRequest"),
    "acp.config": ("AcpConfig",),
    "acp.permissions": ("PermissionAnswer", "PermissionOption", "PermissionPolicy"),
    "acp.provider": ("AcpProvider",),
    "delegate.definition": ("ToolDefinition",),
    "delegate.job_tools": ("JobKillTool", "JobOutputTool"),
    "delegate.jobs": ("Job", "JobNotice", "JobOutput", "JobTable", "open_job_table"),
    "delegate.outcome": ("JobStatus", "ToolResult"),
    "delegate.tool": ("ModelTool", "SubagentTool"),
    "dsh.config": ("DshConfig",),
    "dsh.provider": ("DshProvider",),
    "errors": (
        "ConfigurationError",
        "DuplicateProviderError",
        "ServiceClosedError",
        "SessionEndedError",
        "SubagentAbortedError",
        "SubagentError",
        "SubagentRunError",
        "SubagentStartError",
        "SubagentTeardownError",
        "SubagentUsageError",
        "TurnInProgressError",
        "UnknownProviderError",
        "UnsupportedCapabilityError",
    ),
    "seam.activity": (
        "Cost",
        "ExitStatus",
        "PermissionDecision",
        "PermissionRecord",
        "PlanEntry",
        "Rung",
        "TeardownReport",
        "ToolCall",
        "ToolKind",
        "ToolStatus",
        "Usage",
    ),
    "seam.content": (
        "AudioBlock",
        "ContentBlock",
        "ImageBlock",
        "ResourceBlock",
        "ResourceLinkBlock",
        "TextBlock",
        "UnknownBlock",
    ),
    "seam.events": (
        "CommandsChanged",
        "ContentChunk",
        "Event",
        "EventsLagged",
        "ModeChanged",
        "OptionsChanged",
        "PermissionDecided",
        "PermissionRequested",
        "PlanChanged",
        "SessionInfoChanged",
        "Snapshot",
        "StageChanged",
        "StderrLine",
        "TextChunk",
        "ThoughtChunk",
        "ToolCallChanged",
        "UnknownUpdate",
        "UsageChanged",
        "UserChunk",
    ),
    "seam.feed": ("Subscription",),
    "seam.lifecycle": ("RunEnded", "RunStarted"),
    "seam.request": (
        "Deadlines",
        "Parent",
        "SessionInfo",
        "SessionRef",
        "SubagentCapabilities",
        "SubagentRequest",
    ),
    "seam.result": ("Counters", "Failure", "RpcFault", "SubagentResult", "SubagentStopReason", "Timings"),
    "seam.run": (
        "StartContext",
        "SubagentProvider",
        "SubagentRun",
        "SupportsResume",
        "SupportsStoredSessions",
    ),
    "seam.service": ("Registration", "SubagentService", "open_subagents"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  one table instead of two lists of the same names


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
