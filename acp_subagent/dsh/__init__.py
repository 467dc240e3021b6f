"""The DSH SDK provider: a DeepSeek Harness runtime, driven over its own JSON-RPC on stdio."""
