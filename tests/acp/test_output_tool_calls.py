"""Tool calls merged by id, read from whatever an agent sends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from acp_subagent.acp.tool_calls import note_call, plan_from, usage_from
from acp_subagent.seam.activity import ToolCall, ToolKind, ToolStatus
from acp_subagent.supervised import tool_calls
from acp_subagent.supervised.output import MAX_ID_CHARACTERS
from acp_subagent.supervised.tool_calls import MAX_CALLS, MAX_PAYLOAD_BYTES, MAX_TITLE_CHARACTERS, ToolCalls

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)


def announced(call_id: object = "k", **fields: object) -> dict[str, object]:
    return {"sessionUpdate": "tool_call", "toolCallId": call_id, **fields}


def patched(call_id: object = "k", **fields: object) -> dict[str, object]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def asked(call_id: object = "k", **fields: object) -> dict[str, object]:
    """The tool call of a permission request: like an update, without the discriminator."""
    return {"toolCallId": call_id, **fields}


def noted(calls: ToolCalls, raw: object) -> ToolCall:
    return note_call(calls, raw).call


def test_a_record_is_made_once_for_all_who_look_and_stays_as_it_was_when_the_call_goes_on() -> None:
    calls = ToolCalls()
    tracked = note_call(calls, announced(status="pending"))
    before = tracked.call
    assert calls.get("k") is before
    note_call(calls, patched(status="completed"))
    assert (before.status, tracked.call.status) == (ToolStatus.PENDING, ToolStatus.COMPLETED)


def test_an_announcement_makes_a_call_with_the_defaults_of_the_protocol() -> None:
    call = noted(ToolCalls(), announced(title="List files"))
    assert call == ToolCall("k", "List files", ToolKind.OTHER, ToolStatus.PENDING)


def test_everything_that_was_said_is_in_the_call() -> None:
    call = noted(
        ToolCalls(),
        announced(
            title="Edit",
            kind="edit",
            status="in_progress",
            locations=[{"path": "/a", "line": 3}, {"path": "/b"}],
            content=[{"type": "diff", "path": "/a", "newText": "x"}],
            rawInput={"a": 1},
            rawOutput=[2],
        ),
    )
    assert (call.title, call.kind, call.status) == ("Edit", ToolKind.EDIT, ToolStatus.IN_PROGRESS)
    assert call.locations == ("/a", "/b")
    assert call.content == ({"type": "diff", "path": "/a", "newText": "x"},)
    assert (call.raw_input, call.raw_output) == ({"a": 1}, [2])


FULL: dict[str, object] = {
    "title": "Edit",
    "kind": "edit",
    "status": "in_progress",
    "locations": [{"path": "/a"}],
    "content": [{"type": "x"}],
    "rawInput": {"a": 1},
    "rawOutput": "out",
}


@pytest.mark.parametrize("mention", [announced, patched, asked])
@pytest.mark.parametrize("nothing", [{}, dict.fromkeys(FULL)], ids=["absent", "null"])
def test_absent_and_null_mean_unchanged(mention: Any, nothing: dict[str, object]) -> None:
    calls = ToolCalls()
    before = noted(calls, announced(**FULL))
    assert noted(calls, mention(**nothing)) == before
    assert calls.get("k") == before


def test_a_list_replaces_the_whole_list_also_by_an_empty_one() -> None:
    calls = ToolCalls()
    noted(calls, announced(**FULL))
    call = noted(calls, patched(locations=[{"path": "/c"}, {"path": "/d"}], content=[]))
    assert (call.locations, call.content) == (("/c", "/d"), ())


@pytest.mark.parametrize("mention", [patched, asked])
def test_an_update_or_a_permission_may_be_the_first_mention(mention: Any) -> None:
    calls = ToolCalls()
    assert noted(calls, mention()) == ToolCall("k", "", ToolKind.UNKNOWN, ToolStatus.PENDING)
    assert noted(calls, mention(kind="execute")).kind is ToolKind.EXECUTE
    assert calls.all() == (calls.get("k"),)


def test_an_announcement_after_the_first_mention_fills_in_the_default_kind() -> None:
    calls = ToolCalls()
    noted(calls, asked())
    assert noted(calls, announced(title="t")).kind is ToolKind.OTHER


def test_an_announcement_without_kind_does_not_undo_a_kind() -> None:
    calls = ToolCalls()
    noted(calls, asked(kind="execute"))
    assert noted(calls, announced(title="t")).kind is ToolKind.EXECUTE
    noted(calls, asked("other", kind="dance"))
    assert noted(calls, announced("other")).kind is ToolKind.UNKNOWN


@pytest.mark.parametrize("kind", [kind for kind in ToolKind if kind is not ToolKind.UNKNOWN])
def test_each_of_the_ten_kinds_is_known(kind: ToolKind) -> None:
    assert noted(ToolCalls(), announced(kind=str(kind))).kind is kind


@pytest.mark.parametrize("kind", ["", "unknown", "EDIT", "edit ", "dance", 7, True, [], ["edit"], {}])
def test_any_other_kind_is_unknown(kind: object) -> None:
    assert noted(ToolCalls(), announced(kind=kind)).kind is ToolKind.UNKNOWN


@pytest.mark.parametrize("status", ["", "cancelled", "DONE", "running", 7, True, [], ["completed"], {}])
def test_an_unknown_status_changes_nothing(status: object) -> None:
    calls = ToolCalls()
    assert noted(calls, announced(status=status)).status is ToolStatus.PENDING
    noted(calls, patched(status="in_progress"))
    assert noted(calls, patched(status=status)).status is ToolStatus.IN_PROGRESS


@pytest.mark.parametrize("call_id", [None, 7, "", True, [], {}, "i" * (MAX_ID_CHARACTERS + 1)])
def test_a_mention_without_a_usable_id_is_read_and_not_kept(call_id: object) -> None:
    calls = ToolCalls()
    call = noted(calls, asked(call_id, kind="edit", status="in_progress"))
    assert (call.id, call.kind) == ("", ToolKind.EDIT)
    assert calls.all() == ()
    assert not calls.in_progress
    assert calls.get(call_id) is None


def test_junk_in_lists_is_left_out() -> None:
    call = noted(
        ToolCalls(),
        announced(
            locations=[None, 7, "/x", {}, {"path": None}, {"path": "/a"}, {"path": ["/b"]}],
            content=[None, 7, "text", [], {"type": "content"}],
        ),
    )
    assert (call.locations, call.content) == (("/a",), ({"type": "content"},))


@pytest.mark.parametrize("junk", ["x", 7, True, {}, {"path": "/a"}])
def test_what_should_be_a_list_and_is_none_changes_nothing(junk: object) -> None:
    calls = ToolCalls()
    before = noted(calls, announced(**FULL))
    assert noted(calls, patched(locations=junk, content=junk)) == before


@given(
    JSON
    | st.fixed_dictionaries(
        {"toolCallId": st.just("k")}, optional=dict.fromkeys([*FULL, "sessionUpdate"], JSON)
    )
)
def test_nothing_that_an_agent_sends_raises(raw: object) -> None:
    calls = ToolCalls()
    noted(calls, raw)
    noted(calls, announced(**FULL))
    noted(calls, raw)
    plan_from(raw)
    usage_from(raw)
    assert calls.in_progress == any(call.status is ToolStatus.IN_PROGRESS for call in calls.all())


def test_a_call_is_in_progress_until_it_says_otherwise() -> None:
    calls = ToolCalls()
    assert not calls.in_progress
    noted(calls, announced("a", status="in_progress"))
    noted(calls, announced("b", status="in_progress"))
    noted(calls, patched("a", status="in_progress"))
    noted(calls, patched("a", status="completed"))
    assert calls.in_progress
    noted(calls, patched("b", status="failed"))
    assert not calls.in_progress
    noted(calls, patched("b", status="in_progress"))
    noted(calls, announced("b", status="pending"))
    assert not calls.in_progress


def test_what_is_unfinished_at_the_end_of_the_turn_is_cancelled_here() -> None:
    calls = ToolCalls()
    for status in ("pending", "in_progress", "completed", "failed"):
        noted(calls, announced(status, status=status))
    changed = calls.finish()
    assert [call.id for call in changed] == ["pending", "in_progress"]
    assert [str(call.status) for call in calls.all()] == ["cancelled", "cancelled", "completed", "failed"]
    assert not calls.in_progress
    assert calls.finish() == ()


def test_the_end_of_a_call_may_still_come_after_the_turn() -> None:
    calls = ToolCalls()
    noted(calls, announced(status="in_progress"))
    calls.finish()
    assert noted(calls, patched(status="completed")).status is ToolStatus.COMPLETED
    assert not calls.in_progress


def test_the_payload_that_was_longest_not_updated_goes_when_there_is_too_much() -> None:
    calls = ToolCalls()
    third = "x" * (MAX_PAYLOAD_BYTES // 3)
    for call_id in ("a", "b"):
        noted(calls, announced(call_id, kind="edit", status="completed", rawInput=third))
    noted(calls, patched("a", rawOutput="recent"))
    latest = noted(calls, announced("c", kind="edit", rawInput=third))
    kept = {call.id: call for call in calls.all()}
    assert kept["a"].raw_input is not None
    assert kept["b"] == ToolCall("b", "", ToolKind.EDIT, ToolStatus.COMPLETED)
    assert kept["c"] == latest


def test_a_payload_larger_than_the_bound_is_told_and_not_kept() -> None:
    calls = ToolCalls()
    call = noted(calls, announced(locations=[{"path": "/a"}], rawInput="x" * (MAX_PAYLOAD_BYTES + 1)))
    assert call.raw_input is not None
    kept = calls.get("k")
    assert kept is not None
    assert kept.raw_input is None
    assert kept.locations == ("/a",)  # the call is unfinished and may still ask for a permission


def test_calls_go_when_even_their_locations_are_too_much() -> None:
    calls = ToolCalls()
    half = [{"path": "/" + "x" * (MAX_PAYLOAD_BYTES // 2)}]
    for call_id in ("a", "b", "c"):
        noted(calls, announced(call_id, status="in_progress", locations=half))
    assert [call.id for call in calls.all()] == ["c"]
    assert calls.in_progress
    noted(calls, patched("c", status="completed"))
    assert not calls.in_progress


def test_the_number_of_calls_is_bounded() -> None:
    calls = ToolCalls()
    for number in range(MAX_CALLS + 5):
        noted(calls, announced(f"k{number}", status="in_progress", rawInput="x"))
    assert len(calls) == MAX_CALLS
    assert calls.get("k4") is None
    assert calls.get("k5") is not None
    for call in calls.all():
        noted(calls, patched(call.id, status="completed"))
    assert not calls.in_progress


def test_a_call_that_has_gone_takes_its_payload_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_calls, "MAX_CALLS", 2)
    half = "x" * (MAX_PAYLOAD_BYTES // 2)
    calls = ToolCalls()
    for call_id in ("a", "b", "c", "d"):
        noted(calls, announced(call_id, status="completed", rawInput=half))
    assert [(call.id, call.raw_input is None) for call in calls.all()] == [("c", True), ("d", False)]


def test_a_patch_is_weighed_by_what_it_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[object] = []

    def weigh(value: object) -> int:
        weighed.append(value)
        return 1

    monkeypatch.setattr(tool_calls, "json_bytes", weigh)
    calls = ToolCalls()
    noted(calls, announced(**FULL))
    weighed.clear()
    noted(calls, patched(status="completed"))
    assert weighed == []
    noted(calls, patched(rawOutput="new"))
    assert weighed == ["new"]


def test_a_long_title_is_cut() -> None:
    assert len(noted(ToolCalls(), announced(title="t" * 5000)).title) == MAX_TITLE_CHARACTERS


def test_no_repr_shows_what_the_agent_said() -> None:
    calls = ToolCalls()
    call = noted(
        calls, announced("secret", title="secret", rawInput="secret", locations=[{"path": "secret"}])
    )
    assert "secret" not in repr([calls, call])
