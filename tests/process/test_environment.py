"""Which variables of the host reach a child."""

from __future__ import annotations

import pytest

from acp_subagent.errors import ConfigurationError
from acp_subagent.process.environment import scrubbed_environment, withheld_names
from acp_subagent.process.procfs import COOKIE

ALWAYS = [
    *("PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TMPDIR"),
    *("HTTP_PROXY", "https_proxy", "no_proxy", "ALL_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"),
]
ORDINARY = [
    "TERM",
    "USER",
    "SHELL",
    "SSH_AUTH_SOCK",
    "XDG_CONFIG_HOME",
    "EDITOR",
    "DSHELL",
    "NPM_HOME",
    "AWS_REGION",
]
SECRETS = [
    *("OPENAI_API_KEY", "github_token", "My_Secret", "PGPASSWORD", "DB_PASSWD", "GPG_PASSPHRASE"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AWS_SECRET_ACCESS_KEY", "TOKENIZER", "GIT_SSL_KEY"),
]
STEERING = [
    *("DSH_HOME", "npm_config_registry", "npm_lifecycle_event"),
    *("NODE_OPTIONS", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"),
]
HOST = {name: f"value of {name}" for name in [*ALWAYS, *ORDINARY, *SECRETS, *STEERING]}


@pytest.mark.parametrize("name", [*ALWAYS, *ORDINARY])
def test_everything_that_is_not_held_back_reaches_the_child(name: str) -> None:
    assert scrubbed_environment(HOST, env={}, pass_env=())[name] == HOST[name]


@pytest.mark.parametrize("name", [*SECRETS, *STEERING])
def test_what_looks_like_a_secret_or_steers_does_not(name: str) -> None:
    assert name not in scrubbed_environment(HOST, env={}, pass_env=())


@pytest.mark.parametrize("name", [*SECRETS, *STEERING])
def test_what_is_named_is_let_through(name: str) -> None:
    assert scrubbed_environment(HOST, env={}, pass_env=[name])[name] == HOST[name]


def test_naming_a_variable_that_the_host_does_not_have_is_no_error() -> None:
    assert "ABSENT_KEY" not in scrubbed_environment(HOST, env={}, pass_env=["ABSENT_KEY"])


def test_explicit_variables_are_merged_over_the_hosts() -> None:
    passed = scrubbed_environment(HOST, env={"API_KEY": "x", "HOME": "/y", "PYTHONPATH": ""}, pass_env=())
    assert (passed["API_KEY"], passed["HOME"], passed["PYTHONPATH"]) == ("x", "/y", "")


def test_an_inherited_launch_cookie_is_not_passed_on_from_here() -> None:
    assert COOKIE not in scrubbed_environment({COOKIE: "/outer.1"}, env={}, pass_env=())


@pytest.mark.parametrize("name", ["", "A=B", "="])
def test_a_name_that_cannot_be_one_is_refused_without_being_quoted(name: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        scrubbed_environment(HOST, env={name: "v"}, pass_env=())
    assert "A=B" not in str(refused.value)


def test_the_names_that_look_like_keys_are_listed_for_a_hint() -> None:
    assert withheld_names(HOST, pass_env=["PGPASSWORD"]) == tuple(sorted(set(SECRETS) - {"PGPASSWORD"}))
