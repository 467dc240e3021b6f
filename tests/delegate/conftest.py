"""The stages of the real-child tests, and the way they let a teardown fail, are theirs to share."""

from __future__ import annotations

from tests.dsh.conftest import dsh_stage
from tests.run.conftest import acp_schema, clock, nobody_is_killed, replace_kill, stage

__all__ = ["acp_schema", "clock", "dsh_stage", "nobody_is_killed", "replace_kill", "stage"]
