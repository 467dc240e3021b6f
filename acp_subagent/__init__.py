"""acp_subagent."""
