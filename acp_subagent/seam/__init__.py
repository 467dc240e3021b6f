"""The seam: what a subagent is, whoever runs it."""
