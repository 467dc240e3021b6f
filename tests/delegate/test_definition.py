"""What a model is told of the tools, and how its arguments are checked."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from acp_subagent import ConfigurationError
from acp_subagent.delegate.arguments import NO_BACKGROUND, NO_OBJECT, Refusal, read_arguments
from acp_subagent.delegate.definition import (
    check_name,
    job_kill_definition,
    job_output_definition,
    job_schema,
    subagent_definition,
    subagent_schema,
)

PLAIN = subagent_schema(inherits_parent_context=False, background=False)
WITH_JOBS = subagent_schema(inherits_parent_context=False, background=True)
GOOD = {"description": "d", "prompt": "p"}


def a_definition(**changes: Any) -> Any:
    settings = {"purpose": "", "inherits_parent_context": False, "background": False, **changes}
    return subagent_definition("subagent", **settings)


def test_a_fresh_childs_prompt_is_to_stand_alone_and_a_forked_ones_is_not() -> None:
    fresh, forked = a_definition(), a_definition(inherits_parent_context=True)
    assert "has not seen this conversation" in fresh.description
    assert "stands alone" in fresh.description
    assert "complete in itself" in fresh.schema["properties"]["prompt"]["description"]
    assert "sees every finished turn" in forked.description
    assert "stands alone" not in forked.description
    assert "finished turns" in forked.schema["properties"]["prompt"]["description"]


def test_the_background_is_offered_only_with_jobs() -> None:
    assert list(a_definition().schema["properties"]) == ["description", "prompt"]
    assert "background" not in a_definition().description
    with_jobs = a_definition(background=True)
    assert list(with_jobs.schema["properties"]) == ["description", "prompt", "run_in_background"]
    assert "job_output" in with_jobs.description
    assert "job_kill" in with_jobs.description


def test_the_hosts_own_sentence_is_part_of_the_description() -> None:
    assert " It knows the billing code. " in a_definition(purpose="It knows the billing code.").description


def test_the_three_forms() -> None:
    tool = a_definition()
    schema = {
        "type": "object",
        "properties": tool.schema["properties"],
        "required": ["description", "prompt"],
        "additionalProperties": False,
    }
    said = {"name": "subagent", "description": tool.description}
    assert tool.to_openai() == {"type": "function", "function": {**said, "parameters": schema}}
    assert tool.to_anthropic() == {**said, "input_schema": schema}
    assert tool.to_mcp() == {**said, "inputSchema": schema}


def test_an_export_can_be_changed_without_harm() -> None:
    tool = a_definition()
    tool.to_mcp()["inputSchema"]["properties"].clear()
    assert tool.schema["properties"]
    job_output_definition().to_mcp()["inputSchema"]["properties"]["job_id"].clear()
    assert job_kill_definition().schema["properties"]["job_id"]["type"] == "string"


@pytest.mark.parametrize("schema", [PLAIN, WITH_JOBS, job_schema()])
def test_the_schemas_are_schemas(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_job_tools_take_an_id() -> None:
    assert [tool().name for tool in (job_output_definition, job_kill_definition)] == [
        "job_output",
        "job_kill",
    ]
    assert job_output_definition().schema["required"] == ["job_id"]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "ü", "a\n"])
def test_a_name_that_some_model_api_refuses_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        check_name(name)


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (None, NO_OBJECT),
        ([], NO_OBJECT),
        ("not json", NO_OBJECT),
        ("[]", NO_OBJECT),
        (b"\xff", NO_OBJECT),
        ("[" * 100_000, NO_OBJECT),
        ({}, "The argument description is missing."),
        ({"description": "d"}, "The argument prompt is missing."),
        ({**GOOD, "CANARY": 1}, "There is an unknown argument; known are: description, prompt."),
        ({**GOOD, "prompt": ""}, "The argument prompt must not be empty."),
        ({**GOOD, "prompt": " \n"}, "The argument prompt must not be empty."),
        ({**GOOD, "prompt": ["CANARY"]}, "The argument prompt must be a string."),
        ({**GOOD, "description": None}, "The argument description must be a string."),
        ({**GOOD, "run_in_background": True}, NO_BACKGROUND),
        ({**GOOD, "run_in_background": False}, NO_BACKGROUND),
    ],
)
def test_wrong_arguments_are_refused_in_a_fixed_sentence(arguments: object, sentence: str) -> None:
    assert read_arguments(arguments, PLAIN) == Refusal(sentence)


@pytest.mark.parametrize("value", [1, "true", None])
def test_run_in_the_background_is_true_or_false_and_nothing_else(value: object) -> None:
    refusal = Refusal("The argument run_in_background must be true or false.")
    assert read_arguments({**GOOD, "run_in_background": value}, WITH_JOBS) == refusal


def test_json_text_is_read_as_the_object_that_it_is() -> None:
    assert read_arguments(json.dumps(GOOD), PLAIN) == GOOD
    assert read_arguments(json.dumps(GOOD).encode(), PLAIN) == GOOD


def test_half_a_character_in_a_prompt_is_replaced() -> None:
    read = read_arguments('{"description": "d", "prompt": "\\ud83d and \\ude00, \\ud83d\\ude00"}', PLAIN)
    assert read == {"description": "d", "prompt": "\ufffd and \ufffd, \U0001f600"}


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.text(), max_size=1)
)
_OBJECTS = st.dictionaries(
    st.sampled_from(["description", "prompt", "run_in_background", "other"]), _VALUES, max_size=4
)


@given(arguments=st.one_of(_VALUES, _OBJECTS), schema=st.sampled_from([PLAIN, WITH_JOBS]))
def test_what_is_taken_is_valid_by_the_schema_and_what_is_refused_is_blank_or_invalid(
    arguments: object, schema: dict[str, Any]
) -> None:
    valid = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    read = read_arguments(arguments, schema)
    if isinstance(read, dict):
        assert valid
        assert read == arguments
    elif valid:
        assert read.sentence.endswith("must not be empty.")
