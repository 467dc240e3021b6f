"""The process room: one child and everything that it started, from the checks before the spawn to the proof
that nothing of it lives any more.

Owns the launch (`launch`, `environment`), the child itself (`host`, `child`), finding and signalling its
descendants (`procfs`, `census`, `tree`), the ladder that ends them (`teardown`) and the watchdog that does so
when the host has died (`reaper`). Knows nothing of what the child speaks: what goes through its pipes belongs
to `wire`.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError(
        "acp_subagent.process needs a POSIX system: Windows has neither process groups nor sessions to end."
    )
