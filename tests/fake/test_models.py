"""The check of scenario files: what it says about mistakes, and that it agrees with what the fake does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import BaseModel

from fake_acp_server import builtin, children, client_steps, faults, models, steps
from fake_acp_server.scenario import ANSWER_KEYS, STEP_KEYS, Scenario, ScenarioError, check, load
from fake_acp_server.step_models import ChildKind, Step
from tests.fake.driver import REPOSITORY, fake_command

TEXT, MAPPING = "Input should be a valid string", "Input should be a mapping"
DEEP = {"turns": [[{"permission": {"on": {"allow": [{"x": 1}]}}}]]}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"turnz": 1}, "turnz: unknown key"),
        ({"turns": []}, "turns: List should have at least 1 item after validation, not 0"),
        ({"turns": [[{"text": {"chunk": 1}}]]}, "turns[0][0].text.chunk: unknown key"),
        ({"turns": [[{"text": 1}]]}, f"turns[0][0].text: {TEXT} or {MAPPING}"),
        ({"turns": [[{"txt": 1}]]}, "turns[0][0].txt: unknown key"),
        ({"turns": [[{"a": 1, "b": 2}]]}, "turns[0][0]: a step is a mapping with exactly one key, its name"),
        ({"session_new": [{"eror": 1}]}, "session_new[0].eror: unknown key"),
        (DEEP, "turns[0][0].permission.on.allow[0].x: unknown key"),
        ({"ids": 7}, "ids: Input should be 'int', 'string' or 'uuid'"),
        (7, f"the scenario: {MAPPING}"),
        ({"on_eof": None}, "the scenario: on_eof may not be null"),
        ({"turns": [[{"permission": None}]]}, "turns[0][0]: permission may not be null"),
        ({"turns": [[{"permission": {"options": None}}]]}, "turns[0][0].permission: options may not be null"),
    ],
)
def test_a_mistake_is_named_with_its_place(data: Any, line: str) -> None:
    assert models.problems(data) == [line]


def test_several_mistakes_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('ids = "roman"\nturns = [[{ sleep = -1 }]]\n')
    with pytest.raises(ScenarioError) as problem:
        load(str(path))
    assert "ids" in str(problem.value)
    assert "turns[0][0].sleep" in str(problem.value)


def test_every_builtin_is_a_valid_file() -> None:
    for name, data in builtin.everything().items():
        assert models.problems(data) == [], name


def test_every_builtin_fits_the_published_schema() -> None:
    validator = jsonschema.Draft202012Validator(models.json_schema())
    for data in builtin.everything().values():
        validator.validate(data)
    assert not validator.is_valid({"turns": [[{"text": "x", "sleep": 1}]]})
    assert not validator.is_valid({"turns": [[{"txt": "x"}]]})
    assert not validator.is_valid({"turns": [[{"permission": None}]]})
    assert validator.is_valid({"turns": [[{"frame": None}, {"stop": None}, {"permission": {"id": None}}]]})


def test_the_published_schema_is_a_schema() -> None:
    done = subprocess.run(fake_command("--schema"), stdout=subprocess.PIPE, cwd=REPOSITORY, check=True)
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


def test_the_models_and_the_quick_check_know_the_same_keys() -> None:
    assert set(Step.model_fields) == set(STEP_KEYS)
    assert set(models.ScenarioFile.model_fields) == set(Scenario.KEYS)
    assert set(models.Answer.model_fields) == ANSWER_KEYS
    for name, field in Step.model_fields.items():
        keys = STEP_KEYS[name]
        shapes = [part for part in (*get_args(field.annotation), field.annotation) if isinstance(part, type)]
        models_of_step = [part for part in shapes if issubclass(part, BaseModel)]
        known = {inner.alias or key for part in models_of_step for key, inner in part.model_fields.items()}
        assert known == (keys or set()), name


def test_every_kind_of_child_can_be_named() -> None:
    assert set(get_args(ChildKind)) == set(children.KINDS)


def test_every_known_step_is_done_somewhere() -> None:
    assert set(STEP_KEYS) == set(steps.STEPS) | set(faults.STEPS) | set(client_steps.STEPS)


def test_the_quick_check_accepts_every_builtin() -> None:
    for data in builtin.everything().values():
        check(data)
