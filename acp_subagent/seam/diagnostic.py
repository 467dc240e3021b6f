"""The failure line: its fields, their order, and the one size limit of every diagnostic.

Owns the form of the text that may be shown to a model or a user. It is made of closed words, integers and
signal names, all handed in by a provider's classifier: this file never sees what a child said. The 4096-byte
limit is enforced here, once, for every provider (`join_lines`). What the words mean is the provider's.
"""

from __future__ import annotations

from acp_subagent.seam.activity import ExitStatus

#: no diagnostic is longer than this many bytes of UTF-8, the suffix of a cut one included
MAX_DIAGNOSTIC_BYTES = 4096

#: what a diagnostic ends with when it had to be cut
TRUNCATION_SUFFIX = "\n[diagnostic truncated]"

#: The JSON-RPC codes that may be shown. A code is a number that the agent chooses freely, so that any other
#: one could carry something of its own; it stays in the host's local detail.
SHOWN_RPC_CODES = frozenset({-32700, -32600, -32601, -32602, -32603, -32000, -32002, -32800})


def failure_line(
    *,
    provider: str,
    stage: str,
    category: str,
    stop_reason: str | None = None,
    exit_status: ExitStatus | None = None,
    rpc_code: int | None = None,
    reason: str | None = None,
) -> str:
    """Say in one line what failed. Every word is one of the provider's closed words, never the child's.

    The order of the fields is fixed; one without a fact is left out, and so is an `rpc_code` that is not in
    `SHOWN_RPC_CODES`.
    """
    fields: list[tuple[str, object]] = [
        ("provider", provider),
        ("stage", stage),
        ("category", category),
        ("stop reason", stop_reason),
        ("exit code", exit_status.code if exit_status else None),
        ("signal", exit_status.signal_name if exit_status else None),
        ("rpc code", rpc_code if rpc_code in SHOWN_RPC_CODES else None),
        ("reason", reason),
    ]
    shown = "; ".join(f"{name}: {value}" for name, value in fields if value is not None)
    return f"Subagent failure ({shown})"


def join_lines(*lines: str | None) -> str:
    """Join the lines of one diagnostic within the limit; absent lines are left out, and no line gives ''."""
    return bounded("\n".join(line for line in lines if line))


def bounded(text: str) -> str:
    """Cut `text` so that it has at most `MAX_DIAGNOSTIC_BYTES` bytes of UTF-8.

    The cut is on a character boundary, and the suffix that says so is always whole. A lone surrogate, which
    has no UTF-8 form, becomes a question mark.
    """
    data = text.encode("utf-8", errors="replace")
    if len(data) <= MAX_DIAGNOSTIC_BYTES:
        return data.decode("utf-8")
    room = MAX_DIAGNOSTIC_BYTES - len(TRUNCATION_SUFFIX.encode("utf-8"))
    # Only the last character can be incomplete here, and it is what `ignore` drops.
    return data[:room].decode("utf-8", errors="ignore") + TRUNCATION_SUFFIX
