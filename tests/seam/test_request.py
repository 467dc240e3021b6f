"""Requests are checked when they are made, and show nothing of what they carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from acp_subagent import (
    ConfigurationError,
    ContentBlock,
    Deadlines,
    ImageBlock,
    Parent,
    SessionRef,
    SubagentRequest,
    TextBlock,
    UnknownBlock,
)


def test_a_string_is_one_text_block() -> None:
    assert SubagentRequest(prompt="do it").blocks == (TextBlock("do it"),)


def test_blocks_are_taken_as_they_are_and_once() -> None:
    blocks: list[ContentBlock] = [TextBlock("look at"), ImageBlock("aGk=", "image/png")]
    request = SubagentRequest(prompt=(block for block in blocks))
    assert request.blocks == tuple(blocks)
    assert request.blocks == tuple(blocks)


@pytest.mark.parametrize(
    "prompt",
    ["", [], (), [TextBlock("")], None, 5, b"bytes", {"type": "text"}, ["text"], [UnknownBlock({})]],
    ids=repr,
)
def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(ConfigurationError):
        SubagentRequest(prompt=prompt)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1"])
@pytest.mark.parametrize("name", ["startup_seconds", "turn_seconds", "permission_seconds"])
def test_a_deadline_is_a_finite_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Deadlines(**{name: value})


def test_the_deadlines_that_are_set_are_known_by_name() -> None:
    assert Deadlines().given() == ()
    assert Deadlines(idle_seconds=1, turn_seconds=2.5).given() == ("turn_seconds", "idle_seconds")


@pytest.mark.parametrize("depth", [-1, True, 1.0, "1"])
def test_a_parents_depth_is_a_count(depth: Any) -> None:
    with pytest.raises(ConfigurationError):
        Parent(depth=depth)


@pytest.mark.parametrize(
    "fields",
    [{"parent": "p"}, {"deadlines": 5}, {"session": "token"}, {"abort": True}],
    ids=lambda fields: next(iter(fields)),
)
def test_fields_of_another_type_are_refused(fields: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(fields))):
        SubagentRequest(prompt="p", **fields)


def test_a_session_reference_travels_as_json() -> None:
    ref = SessionRef("p", "/srv", "token")
    assert SessionRef.from_json(ref.to_json()) == ref
    for broken in ({}, {"provider": "p", "cwd": "/"}, {"provider": "p", "cwd": "/", "token": 5}):
        with pytest.raises(ConfigurationError):
            SessionRef.from_json(broken)


async def test_no_repr_shows_content() -> None:
    request = SubagentRequest(
        prompt="SECRET",
        label="SECRET",
        parent=Parent(cwd=Path("/SECRET"), session_id="s"),
        session=SessionRef("p", "/SECRET", "SECRET"),
        abort=trio.Event(),
        persona="SECRET",
        output_schema={"SECRET": 1},
        agent_options={"SECRET": 1},
    )
    assert "SECRET" not in repr(request)
