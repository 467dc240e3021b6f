"""The configuration of a provider: defaults, limits, and refusals that repeat no value."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from acp_subagent import AcpConfig, AcpProvider, ConfigurationError

#: The limits as they are promised.
DEFAULTS: dict[str, Any] = {
    "startup_timeout_seconds": 120,
    "turn_timeout_seconds": None,
    "idle_timeout_seconds": 900,
    "tool_idle_timeout_seconds": 3600,
    "permission_timeout_seconds": 600,
    "cancel_grace_seconds": 5,
    "settle_grace_seconds": 0.05,
    "close_grace_seconds": 1,
    "eof_grace_seconds": 10,
    "term_grace_seconds": 3,
    "kill_grace_seconds": 2,
    "exit_observation_seconds": 3,
    "max_frame_bytes": 64 * 2**20,
    "max_noise_lines": 100,
    "max_output_bytes": 16 * 2**20,
    "max_early_updates": 1000,
    "max_open_requests": 256,
    "max_unsent_bytes": 64 * 2**20,
    "event_buffer_events": 4096,
    "subscriber_stall_seconds": 30,
    "stderr_tail_bytes": 64 * 2**10,
}
MAY_BE_NONE = {name for name in DEFAULTS if name.endswith("_timeout_seconds")}


def config(**values: Any) -> AcpConfig:
    return AcpConfig(**{"name": "a", "command": "agent", **values})


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_limit_has_its_default(name: str) -> None:
    assert getattr(config(), name) == DEFAULTS[name]


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), "SECRET"])
def test_a_limit_is_finite_and_above_zero(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        config(**{name: value})
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", DEFAULTS)
def test_only_the_timeouts_may_be_left_to_the_caller(name: str) -> None:
    if name in MAY_BE_NONE:
        assert getattr(config(**{name: None}), name) is None
    else:
        with pytest.raises(ConfigurationError, match=name):
            config(**{name: None})


def test_an_unknown_field_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(SECRET="SECRET")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"name": ""}, {"name": 5}, {"args": "SECRET"}, {"env": {"A": 5}}, {"permission": "SECRET"}]
)
def test_values_of_another_kind_are_refused_without_being_repeated(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(**values)
    assert "SECRET" not in str(caught.value)


def test_the_directory_is_made_absolute_once_and_symlinks_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    made = config(cwd="link")
    monkeypatch.chdir("/")
    assert made.cwd == os.path.join(tmp_path, "link")
    AcpProvider(made)


def test_a_configuration_is_frozen_and_shows_no_secret() -> None:
    made = config(args=["SECRET"], env={"A": "SECRET"}, cwd="/SECRET", command="/SECRET")
    assert "SECRET" not in repr(made)
    assert "SECRET" not in repr(made.model_copy())
    with pytest.raises(Exception, match="frozen"):
        made.name = "b"
