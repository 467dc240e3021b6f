"""Whether a provider can honour a request: the check that comes before anything else. Pure."""

from __future__ import annotations

from acp_subagent.errors import ConfigurationError, UnsupportedCapabilityError
from acp_subagent.seam.request import SubagentCapabilities, SubagentRequest

#: Optional request fields, and the capability without which each is refused.
_CAPABILITY_OF_FIELD = {
    "session": "sessions",
    "allow_new_session": "sessions",
    "output_schema": "output_schema",
    "max_depth": "depth_limit",
    "tool_filter": "tool_filter",
    "persona": "persona",
    "agent_options": "agent_options",
}


def check_capabilities(request: SubagentRequest, capabilities: SubagentCapabilities) -> None:
    """Refuse a request that the provider could only ignore in part.

    Raises `UnsupportedCapabilityError` with the name of the first capability that is missing, or
    `ConfigurationError` for a `max_depth` or a schema that no provider could honour.
    """
    for name, capability in _CAPABILITY_OF_FIELD.items():
        value = getattr(request, name)
        if value is not None and value is not False and not getattr(capabilities, capability):
            raise UnsupportedCapabilityError(capability)
    for name in request.deadlines.given():
        if name not in capabilities.deadlines:
            raise UnsupportedCapabilityError(f"deadlines.{name}")
    depth = request.max_depth
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 0):
        raise ConfigurationError("max_depth must be an integer of at least 0.")
    if request.output_schema is not None and request.output_schema.get("type") != "object":
        raise ConfigurationError("output_schema must have an object at its root.")
