"""The wire: bytes to JSON-RPC and back."""
