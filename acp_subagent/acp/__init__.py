"""The ACP provider."""
