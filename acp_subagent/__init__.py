"""Launch coding agents as supervised child processes and get one result back.

What an embedding program imports is here, loaded on first use, and nothing else is public.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_subagent.acp.config import AcpConfig as AcpConfig
    from acp_subagent.acp.permissions import (
        PermissionAnswer as PermissionAnswer,
        PermissionHandler as PermissionHandler,
        PermissionOption as PermissionOption,
        PermissionPolicy as PermissionPolicy,
        PermissionRequest as PermissionRequest,
    )
    from acp_subagent.acp.provider import AcpProvider as AcpProvider
    from acp_subagent.delegate.definition import ToolDefinition as ToolDefinition
    from acp_subagent.delegate.job_tools import (
        JobKillTool as JobKillTool,
        JobOutputTool as JobOutputTool,
    )
    from acp_subagent.delegate.jobs import (
        Job as Job,
        JobNotice as JobNotice,
        JobOutput as JobOutput,
        JobTable as JobTable,
        open_job_table as open_job_table,
    )
    from acp_subagent.delegate.outcome import (
        JobStatus as JobStatus,
        ToolResult as ToolResult,
    )
    from acp_subagent.delegate.tool import (
        ModelTool as ModelTool,
        SubagentTool as SubagentTool,
    )
    from acp_subagent.dsh.config import DshConfig as DshConfig
    from acp_subagent.dsh.provider import DshProvider as DshProvider
    from acp_subagent.errors import (
        ConfigurationError as ConfigurationError,
        DuplicateProviderError as DuplicateProviderError,
        ServiceClosedError as ServiceClosedError,
        SessionEndedError as SessionEndedError,
        SubagentAbortedError as SubagentAbortedError,
        SubagentError as SubagentError,
        SubagentRunError as SubagentRunError,
        SubagentStartError as SubagentStartError,
        SubagentTeardownError as SubagentTeardownError,
        SubagentUsageError as SubagentUsageError,
        TurnInProgressError as TurnInProgressError,
        UnknownProviderError as UnknownProviderError,
        UnsupportedCapabilityError as UnsupportedCapabilityError,
    )
    from acp_subagent.seam.activity import (
        Cost as Cost,
        ExitStatus as ExitStatus,
        PermissionDecision as PermissionDecision,
        PermissionRecord as PermissionRecord,
        PlanEntry as PlanEntry,
        Rung as Rung,
        TeardownReport as TeardownReport,
        ToolCall as ToolCall,
        ToolKind as ToolKind,
        ToolStatus as ToolStatus,
        Usage as Usage,
    )
    from acp_subagent.seam.content import (
        AudioBlock as AudioBlock,
        ContentBlock as ContentBlock,
        ImageBlock as ImageBlock,
        ResourceBlock as ResourceBlock,
        ResourceLinkBlock as ResourceLinkBlock,
        TextBlock as TextBlock,
        UnknownBlock as UnknownBlock,
    )
    from acp_subagent.seam.events import (
        CommandsChanged as CommandsChanged,
        ContentChunk as ContentChunk,
        Event as Event,
        EventsLagged as EventsLagged,
        ModeChanged as ModeChanged,
        OptionsChanged as OptionsChanged,
        PermissionDecided as PermissionDecided,
        PermissionRequested as PermissionRequested,
        PlanChanged as PlanChanged,
        SessionInfoChanged as SessionInfoChanged,
        Snapshot as Snapshot,
        StageChanged as StageChanged,
        StderrLine as StderrLine,
        TextChunk as TextChunk,
        ThoughtChunk as ThoughtChunk,
        ToolCallChanged as ToolCallChanged,
        UnknownUpdate as UnknownUpdate,
        UsageChanged as UsageChanged,
        UserChunk as UserChunk,
    )
    from acp_subagent.seam.feed import Subscription as Subscription
    from acp_subagent.seam.lifecycle import (
        RunEnded as RunEnded,
        RunStarted as RunStarted,
    )
    from acp_subagent.seam.request import (
        Deadlines as Deadlines,
        Parent as Parent,
        SessionInfo as SessionInfo,
        SessionRef as SessionRef,
        SubagentCapabilities as SubagentCapabilities,
        SubagentRequest as SubagentRequest,
    )
    from acp_subagent.seam.result import (
        Counters as Counters,
        Failure as Failure,
        RpcFault as RpcFault,
        SubagentResult as SubagentResult,
        SubagentStopReason as SubagentStopReason,
        Timings as Timings,
    )
    from acp_subagent.seam.run import (
        StartContext as StartContext,
        SubagentProvider as SubagentProvider,
        SubagentRun as SubagentRun,
        SupportsResume as SupportsResume,
        SupportsStoredSessions as SupportsStoredSessions,
    )
    from acp_subagent.seam.service import (
        Registration as Registration,
        SubagentService as SubagentService,
        open_subagents as open_subagents,
    )

#: Which module each public name comes from.
_HOMES = {
    "acp.config": ("AcpConfig",),
    "acp.permissions": (
        "PermissionAnswer",
        "PermissionHandler",
        "PermissionOption",
        "PermissionPolicy",
        "PermissionRequest",
    ),
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
