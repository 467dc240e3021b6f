"""The exported definitions of the tools, read by the types of the official SDKs of the three APIs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from acp_subagent.delegate.definition import (
    job_kill_definition,
    job_output_definition,
    subagent_definition,
)
from tests.agents.launch import PROVISION_TIMEOUT_SECONDS
from tests.support import agent_packages

pytestmark = [pytest.mark.agents, pytest.mark.timeout(PROVISION_TIMEOUT_SECONDS)]

DEFINITIONS = [
    subagent_definition("subagent", purpose="", inherits_parent_context=False, background=True),
    job_output_definition(),
    job_kill_definition(),
]

#: Reads `[form, definition]` pairs, writes each one as the SDK understood it: what it does not know is lost.
READER = """
import json, sys
from anthropic.types import ToolParam
from mcp.types import Tool
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import TypeAdapter

FORMS = {"openai": ChatCompletionFunctionToolParam, "anthropic": ToolParam, "mcp": Tool}
readers = {form: TypeAdapter(kind) for form, kind in FORMS.items()}
understood = [
    (form, readers[form].dump_python(readers[form].validate_python(sent), mode="json", exclude_unset=True))
    for form, sent in json.load(sys.stdin)
]
json.dump(understood, sys.stdout)
"""


def test_each_form_is_what_the_official_sdk_reads() -> None:
    exports = [
        [form, export]
        for tool in DEFINITIONS
        for form, export in (
            ("openai", tool.to_openai()),
            ("anthropic", tool.to_anthropic()),
            ("mcp", tool.to_mcp()),
        )
    ]
    # All three SDKs are in the environment of this agent.
    python = Path(agent_packages.fast_agent()[0]).with_name("python")
    read = subprocess.run(
        [python, "-c", READER],
        input=json.dumps(exports),
        capture_output=True,
        text=True,
        check=True,
        timeout=PROVISION_TIMEOUT_SECONDS,
    )
    assert json.loads(read.stdout) == exports
