"""What gets onto a cassette: no secret that has a telling name or shape, or that our environment holds."""

from __future__ import annotations

import base64
import json
import time
from typing import Any
from urllib.parse import quote

import pytest

from fake_acp_server.masking import MASK, Masker

#: A secret of the environment, and one that only its place gives away.
KNOWN = "hunter2/hunter+2"
CANARY = "canary4711"

MASKER = Masker({"MY_SECRET": KNOWN, "SHORT_KEY": "a", "HOME": "/root-folder"})


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"API_KEY": "abc"}, {"API_KEY": MASK}),
        ({"env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "MODE", "value": "ro"}]},
         {"env": [{"name": "DB_PASSWORD", "value": MASK}, {"name": "MODE", "value": "ro"}]}),
        ({"env": [{"key": "DB_PASSWORD", "value": "x"}]}, {"env": [{"key": "DB_PASSWORD", "value": MASK}]}),
        ({"h": [{"name": "Authorization", "value": "x"}]}, {"h": [{"name": "Authorization", "value": MASK}]}),
        ("use sk-abcdefghijklmnop now", f"use {MASK} now"),
        ("Bearer abcdefgh12345", f"Bearer {MASK}"),
        ("https://me:pw@host/x", f"https://{MASK}@host/x"),
        ("https://me:p@ss@host/x", f"https://{MASK}@host/x"),
        ("redis://:pw@host", f"redis://{MASK}@host"),
        ("ghp_" + "a" * 36, MASK),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", MASK),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\ncut off", MASK),
        (f"the {KNOWN} value", f"the {MASK} value"),
        (f"https://h/?q={quote(KNOWN, safe='')}", f"https://h/?q={MASK}"),
        ({KNOWN: 1}, {MASK: 1}),
        ({"password": 4711, "passed": 1}, {"password": MASK, "passed": 1}),
        ({"credentials": {"user": "u", "pin": "x"}}, {"credentials": {"user": MASK, "pin": MASK}}),
        (["run", "--api-key", "abc", "file"], ["run", "--api-key", MASK, "file"]),
        ('{"password": "two words"}', f'{{"password": "{MASK}"}}'),
        ("curl -H 'X-Api-Key: abcd' https://h/?key=abcd&x=1", f"curl -H 'X-Api-Key: {MASK}' https://h/?key={MASK}&x=1"),
    ],
)  # fmt: skip
def test_secrets_are_masked_by_name_by_shape_and_by_value(value: Any, masked: Any) -> None:
    assert MASKER.value(value) == masked


@pytest.mark.parametrize(
    "text",
    [
        "OPENAI_API_KEY={}", "export MY_TOKEN='{}'", "password = {}", "db.password: {}", "--token={}",
        "--key={}", "tool --access-token {} file", "Authorization: Basic {}", "authorization: token {}",
        "Set-Cookie: id={}", "https://{}-and-more@github.com/x", "https://h/x?access_token={}&y=1",
        '{{\\"secret\\": \\"{}\\"}}',
        "sk-ant-api03-{}", "sk_live_{}ab", "hf_{}abcdef", "gsk_{}ab", "xoxb-1-{}", "glpat-{}abcdef",
        "github_pat_{}abcdefghij", "npm_{}abcdefgh", "pypi-{}abcdefgh", "xai-{}ab",
    ],
)  # fmt: skip
def test_no_shape_lets_a_secret_through(text: str) -> None:
    shown = text.format(CANARY)
    for value in (shown, {"text": shown}, [{"args": ["-c", shown]}], json.dumps({"inner": shown})):
        assert CANARY not in json.dumps(MASKER.value(value)), value


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_a_known_secret_is_found_in_base64(before: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        hidden = encode(f"{before}{KNOWN}!".encode()).decode()
        masked = MASKER.text(hidden)
        assert MASK in masked
        assert len(masked) <= len(MASK) + 12  # what is left belongs to what stands around the secret


@pytest.mark.parametrize(
    "value",
    [
        {"inputTokens": 12, "text": "plain", "total": {"tokens": 7}},
        "max_tokens: 100",
        "the key is here, for key in keys",
        "ssh://git@github.com/x",
        "http://localhost:8080/@scope/name",
        "token: null, password=false",
    ],
)
def test_what_is_no_secret_stays(value: Any) -> None:
    assert MASKER.value(value) == value


@pytest.mark.parametrize(
    "text",
    ["A", "-", "token ", "token", "://", 'password="', "\\", "--a", "x@", "-----BEGIN PRIVATE KEY-----"],
)  # fmt: skip
def test_a_long_line_is_masked_in_time_that_grows_with_its_length(text: str) -> None:
    def seconds(size: int) -> float:
        begun = time.process_time()
        MASKER.text(text * (size // len(text)))
        return time.process_time() - begun

    # Twice the work for twice the length; something quadratic would take minutes for the longer one.
    assert seconds(400_000) < 20 * max(seconds(100_000), 0.05)
