"""What the built-in scenarios cover: what real agents do, how a run can end, what a client has to hold out.

The lists say which scenario shows what. Each scenario is run in ``test_builtin``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fake_acp_server import builtin
from fake_acp_server.scenario import STEP_KEYS

#: What real agents were seen to do -> scenarios that do it.
HABITS = {
    "lines far over 64 KiB": "wire-long-lines wire-huge-answer",
    "text on stdout that is no JSON": "wire-text-noise wire-ansi",
    "much on stderr": "wire-stderr-flood",
    "updates before session/new is answered, and between turns": "wire-early-updates "
    "wire-many-early-updates",
    "requests before the answer to session/new": "wire-early-requests",
    "calls of what was not offered": "wire-unoffered-calls",
    "unknown methods": "wire-unknown-methods turn-cancel-before-permission",
    "request ids from 0, as texts, as UUIDs": "turn-permission wire-string-ids wire-uuid-ids",
    "errors without an id, or with null; id last": "wire-idless-errors",
    "keys nobody knows": "wire-extra-fields",
    "data of an error as a text or a list": "turn-model-error end-odd-error",
    "no agentInfo, no capabilities, login methods without need": "wire-bare-initialize",
    "tool calls out of order, permissions for no tool call": "wire-tools-out-of-order",
    "free option ids, two of one kind, few options": "wire-permission-options wire-permission-no-options",
    "two permission requests in one turn": "turn-two-permissions",
    "echoed prompts, system prompts as thoughts, warnings, empty chunks": "wire-mixed-messages",
    "after a rejection the turn goes on, or ends": "turn-permission turn-reject-ends",
    "a cancel is answered at once, late, never": "turn-cancel turn-cancel-slow turn-cancel-never",
    "a cancel is answered with something else": "turn-cancel-end-turn turn-cancel-error "
    "turn-cancel-spoils-next",
    "a cancel is never answered while a tool runs": "turn-cancel-never-tool",
    "a cancel with a permission open": "turn-cancel-permission turn-cancel-before-permission "
    "turn-cancel-permission-end-turn turn-cancel-permission-never",
    "the tool's process outlives the cancel": "turn-tool-outlives-cancel",
    "a second prompt is refused, queued, dropped, never answered": "turn-second-refused turn-second-queued "
    "turn-second-at-once turn-second-unanswered",
    "a second prompt ends the first": "turn-second-cancels-first turn-second-breaks-first",
    "trouble with the model": "turn-model-error turn-model-error-as-text end-empty end-refusal "
    "turn-model-retries turn-model-retries-silently",
    "token limit and refusal": "end-completed end-max-tokens end-refusal end-error",
    "a wrong session or method is served": "turn-any-session turn-any-method",
    "the end of stdin ends it late, not, or after the turn": "process-slow-eof process-stays-at-eof "
    "process-eof-waits-for-turn",
    "SIGTERM is not enough": "process-ignores-term process-second-term process-stubborn process-exit-code",
    "the started process is a launcher": "process-launcher process-launcher-exits process-holds-stdout",
    "children in groups and sessions of their own": "process-own-session process-orphan "
    "process-nested process-daemon process-bare-daemon",
    "it cleans up by itself": "process-cleans-up",
    "slow start, short-lived children": "process-slow-start",
    "it goes on after the turn": "process-goes-on",
}  # fmt: skip

#: How a run can end, as it is seen from outside -> scenarios that end so.
ENDINGS = {
    "completed": "end-completed",
    "max tokens, requests; refusal": "end-max-tokens end-max-turn-requests end-refusal",
    "cancelled by nobody": "end-cancelled turn-reject-ends",
    "a stop reason nobody knows, none, one of the wrong type": "end-unknown-reason end-no-reason "
    "end-bad-reason",
    "the process ended before an answer": "start-exit start-exit-clean start-exit-at-once start-killed "
    "session-exit session-killed end-exit end-exit-clean end-killed end-crash end-half-frame end-exec",
    "the stream ended, the process did not": "start-closes-stdout session-closes-stdout end-closes-stdout",
    "it cannot be written to": "end-closes-stdin end-stops-reading",
    "login needed": "start-auth-required session-auth-required end-auth-required login",
    "an option cannot be set": "session-option-refused session-option-unchanged",
    "a session is lost": "session-lost",
    "another error": "start-error session-error end-error end-odd-error",
    "another version": "start-version-two start-version-zero start-version-text",
    "it never spoke ACP": "start-noise",
    "no session id": "session-no-id session-bad-id",
    "a malformed answer": "start-malformed session-malformed end-null-result wire-result-and-error",
    "a frame over every limit": "start-huge-frame session-huge-frame end-huge-frame",
    "silence": "start-silent session-silent end-silent end-silent-tool turn-model-retries-silently",
    "failed after a permission": "turn-permission-then-fails",
    "processes left": "process-stubborn process-fork-loop process-relay process-setsid-relay process-child "
    "process-child-ignores-term process-own-group process-closed process-stopped",
}  # fmt: skip

#: What a careful client holds out -> scenarios that ask it for that.
RULES = {
    "lines end at a newline only": "wire-line-separators wire-crlf wire-no-final-newline wire-glued-frames "
    "wire-split-frames",
    "bytes that are no UTF-8, half surrogates, NUL": "wire-bad-utf8 wire-lone-surrogates wire-nul",
    "JSON that is no frame": "wire-json-noise",
    "unknown variants, nulls": "wire-unknown-variants wire-nulls",
    "answers that are foreign, late, double, of the wrong id": "wire-foreign-answer wire-late-answer "
    "wire-duplicate-answer wire-wrong-id-type",
    "the exit ends the conversation": "wire-answer-and-exit process-holds-stdout process-launcher-exits",
    "bounds on requests, early updates, output": "turn-many-permissions wire-many-early-updates "
    "wire-huge-answer",
    "floods": "flood wire-stderr-flood turn-cancel-flood endless",
    "messages with and without ids": "wire-mixed-messages wire-no-message-ids",
    "a denied call that is done all the same": "turn-disobeys",
    "a close that is not answered": "session-close-silent session-close-error",
    "sessions, modes, options, media, files, terminals, questions": "sessions options media files terminal "
    "elicit",
    "cancels with an end of their own": "turn-cancel-tail turn-cancel-exit turn-cancel-ignored",
}  # fmt: skip

#: Steps in no built-in scenario; they are done in ``test_faults_by_stage``.
NOT_BUILT_IN = {"ignore_eof", "start_reading", "touch_file", "wait_file", "wait_socket", "on_eof", "set"}


@pytest.mark.parametrize("table", [HABITS, ENDINGS, RULES])
def test_what_is_to_be_shown_has_its_scenarios(table: dict[str, str]) -> None:
    named = {name for names in table.values() for name in names.split()}
    assert named <= set(builtin.purposes())


def test_every_scenario_is_there_for_something() -> None:
    named = {name for table in (HABITS, ENDINGS, RULES) for names in table.values() for name in names.split()}
    examples = {"demo", "echo", "rich", "stream", "tour", "conversation"}
    unnamed = set(builtin.purposes()) - named - examples
    assert {name for name in unnamed if not name.startswith("process-")} == set()  # further kinds of children


def steps_in(value: Any) -> Iterator[str]:
    """The names of everything in scenario data that may be a step."""
    if isinstance(value, dict):
        if len(value) == 1:
            yield from value
        for item in value.values():
            yield from steps_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from steps_in(item)


def test_every_step_is_in_a_built_in_scenario_or_has_a_test_of_its_own() -> None:
    assert set(steps_in(builtin.everything())) & set(STEP_KEYS) == set(STEP_KEYS) - NOT_BUILT_IN
