"""Events of real children: every kind, and subscriptions of every habit."""

from __future__ import annotations

import tracemalloc
from typing import Any

import trio

from acp_subagent import (
    CommandsChanged,
    ContentChunk,
    EventsLagged,
    ImageBlock,
    ModeChanged,
    OptionsChanged,
    PermissionDecided,
    PermissionRequested,
    PlanChanged,
    PlanEntry,
    SessionInfoChanged,
    Snapshot,
    StageChanged,
    StderrLine,
    SubagentResult,
    SubagentRun,
    TextBlock,
    TextChunk,
    ThoughtChunk,
    ToolCallChanged,
    UnknownUpdate,
    Usage,
    UsageChanged,
    UserChunk,
)
from tests.run.stage import Stage
from tests.run.waiting import resumed

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
OPTION = {"id": "m", "name": "Model", "type": "select", "currentValue": "a", "options": []}
COMMAND = {"name": "tidy", "description": "Tidy"}

EVERY_KIND: list[dict[str, Any]] = [
    {"user_text": {"text": "do it", "message_id": "u"}},
    {"thought": {"text": "hm", "message_id": "t"}},
    {"plan": ["look"]},
    {"tool_call": {"title": "List", "kind": "search", "status": "pending"}},
    {"tool_call_update": {"status": "in_progress"}},
    {"tool_call_update": {"status": "completed", "title": None, "kind": None}},
    {"permission": {"tool_call": {"toolCallId": "p", "title": "t", "kind": "edit"}}},
    {"update": {"sessionUpdate": "usage_update", "used": 5, "size": 10}},
    {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "code"}},
    {"update": {"sessionUpdate": "config_option_update", "configOptions": [OPTION]}},
    {"update": {"sessionUpdate": "available_commands_update", "availableCommands": [COMMAND]}},
    {"update": {"sessionUpdate": "session_info_update", "title": "T"}},
    {"update": {"sessionUpdate": "of_a_kind_to_come", "x": 1}},
    {"update": {"sessionUpdate": "agent_message_chunk", "content": IMAGE, "messageId": "m"}},
    {"text": {"chunks": ["one ", "two"], "message_id": "m"}},
]


async def test_every_kind_of_event_in_the_order_of_the_wire(stage: Stage) -> None:
    async with stage.service({"turns": [EVERY_KIND]}, faulty=True, permission="allow") as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            events = [event async for event in run.events()]
            with trio.fail_after(1):
                result = await run.result()
    assert [type(event) for event in events] == [
        StageChanged,
        UserChunk,
        ThoughtChunk,
        PlanChanged,
        *[ToolCallChanged] * 4,
        PermissionRequested,
        PermissionDecided,
        UsageChanged,
        ModeChanged,
        OptionsChanged,
        CommandsChanged,
        SessionInfoChanged,
        UnknownUpdate,
        ContentChunk,
        TextChunk,
        TextChunk,
    ]
    by_type = {type(event): event for event in events}
    assert by_type[UserChunk] == UserChunk(TextBlock("do it"), "u")
    assert by_type[ThoughtChunk] == ThoughtChunk("hm", "t")
    assert by_type[PlanChanged] == PlanChanged((PlanEntry("look", "medium", "pending"),))
    assert by_type[UsageChanged] == UsageChanged(Usage(5, 10))
    assert by_type[ModeChanged] == ModeChanged("code")
    assert by_type[OptionsChanged] == OptionsChanged((OPTION,))
    assert by_type[CommandsChanged] == CommandsChanged((COMMAND,))
    assert by_type[SessionInfoChanged] == SessionInfoChanged({"title": "T"})
    assert by_type[UnknownUpdate] == UnknownUpdate({"sessionUpdate": "of_a_kind_to_come", "x": 1})
    assert by_type[ContentChunk] == ContentChunk(ImageBlock("aGk=", "image/png"), "m")
    calls = [event.call for event in events if isinstance(event, ToolCallChanged)]
    assert [(call.title, call.kind, call.status) for call in calls[:3]] == [
        ("List", "search", "pending"),
        ("List", "search", "in_progress"),
        ("List", "search", "completed"),
    ]
    decided = by_type[PermissionDecided]
    assert isinstance(decided, PermissionDecided)
    assert decided.record in result.permissions
    assert result.output == (ImageBlock("aGk=", "image/png"), TextBlock("one two"))


async def test_a_subscription_made_before_the_first_checkpoint_misses_nothing(stage: Stage) -> None:
    seen: list[Any] = []

    def ready(run: SubagentRun) -> None:
        seen.append(run.events())

    turn = [{"text": {"chunks": [str(n) for n in range(8)]}}]
    async with stage.service({"turns": [turn, turn]}) as subagents:
        result = await subagents.run("fake", stage.request(), on_ready=ready)
        events = [event async for event in seen[0]]
        async with await subagents.start("fake", stage.request()) as run:
            await run.result()
            async with await resumed(run) as second:
                more = [event async for event in second.events()]
                again = await second.result()
    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == result.text
    assert [event.stage for event in events if isinstance(event, StageChanged)] == ["prompt", "teardown"]
    assert "".join(event.text for event in more if isinstance(event, TextChunk)) == again.text
    assert not any(isinstance(event, Snapshot) for event in [*events, *more])


async def test_a_late_subscription_begins_with_what_it_missed(stage: Stage) -> None:
    go_on = stage.folder / "go-on"
    turn = [
        {"plan": ["look"]},
        {"tool_call": {"title": "List", "status": "in_progress"}},
        {"text": {"text": "first ", "message_id": "m"}},
        {"wait_file": str(go_on)},
        {"text": {"text": "second", "message_id": "m"}},
    ]
    async with stage.service({"turns": [turn]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    break
            late = run.events()
            go_on.touch()
            events = [event async for event in late]
            after = [event async for event in run.events()]
    snapshot, *others = events
    assert isinstance(snapshot, Snapshot)
    assert snapshot.messages == ((TextBlock("first "),),)
    assert [call.title for call in snapshot.tool_calls] == ["List"]
    assert [entry.content for entry in snapshot.plan] == ["look"]
    assert [type(event) for event in others] == [TextChunk]
    (whole,) = after
    assert isinstance(whole, Snapshot)
    assert whole.messages == ((TextBlock("first second"),),)


async def test_several_subscriptions_and_one_from_another_task(stage: Stage) -> None:
    texts: dict[int, str] = {}

    async def follow(
        number: int, run: SubagentRun, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        subscription = run.events()
        task_status.started()
        chunks = [event.text async for event in subscription if isinstance(event, TextChunk)]
        texts[number] = "".join(chunks)

    go_on = stage.folder / "go-on"
    turn = [{"wait_file": str(go_on)}, {"text": {"size": 20, "count": 500}}]
    async with stage.service({"turns": [turn]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            async with trio.open_nursery() as nursery:
                for number in range(5):
                    await nursery.start(follow, number, run)
                go_on.touch()
            result = await run.result()
    assert list(texts.values()) == [result.text] * 5


async def test_awaiting_the_result_inside_the_loop_does_not_lock_up(stage: Stage) -> None:
    turn = [{"text": {"size": 40, "count": 20_000}}]
    settings: dict[str, Any] = {"event_buffer_events": 100, "subscriber_stall_seconds": 0.5, "logged": False}
    async with stage.service({"turns": [turn]}, **settings) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    result = await run.result()
                    break
    assert len(result.text) == 40 * 20_000


async def test_a_slow_subscription_slows_the_agent_and_loses_nothing(stage: Stage) -> None:
    turn = [{"text": {"size": 10, "count": 3000}}]
    chunks: list[str] = []
    async with stage.service({"turns": [turn]}, event_buffer_events=50, logged=False) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            async for event in run.events():
                if isinstance(event, TextChunk):
                    chunks.append(event.text)
                    if len(chunks) % 300 == 0:
                        await trio.sleep(0.05)
            result = await run.result()
    assert "".join(chunks) == result.text


async def test_a_stopped_subscription_is_given_up_and_memory_stays_bounded(stage: Stage) -> None:
    turn = [{"text": {"size": 4000, "count": 6000}}]
    settings: dict[str, Any] = {
        "event_buffer_events": 100,
        "subscriber_stall_seconds": 0.3,
        "max_output_bytes": 100_000,
        "logged": False,
    }
    async with stage.service({"turns": [turn]}, **settings) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            stopped = run.events()
            await trio.sleep(0.2)
            tracemalloc.start()
            result = await run.result()
            _, peak_bytes = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            left = [event async for event in stopped]
    assert result.stop_reason == "completed"
    assert result.counters.output_dropped_bytes > 20_000_000
    assert len(left) == 1
    assert isinstance(left[0], EventsLagged)
    assert left[0].count > 100
    assert peak_bytes < 8_000_000


async def test_lines_of_stderr_come_to_those_who_ask(stage: Stage) -> None:
    turn = [
        {"stderr": "first"},
        {"stderr": {"text": "half a ", "newline": False}},
        {"sleep": 0.1},
        {"stderr": "line \udcff"},
        {"text": "x"},
        {"stderr": {"text": "last words", "newline": False}},
        {"exit": 3},
    ]
    results: list[SubagentResult] = []
    async with stage.service({"turns": [turn]}) as subagents:
        seen: dict[bool, list[Any]] = {True: [], False: []}

        async def follow(events: Any, into: list[Any]) -> None:
            into.extend([event async for event in events])

        async with trio.open_nursery() as nursery:

            def ready(run: SubagentRun) -> None:
                for stderr, into in seen.items():
                    nursery.start_soon(follow, run.events(stderr=stderr), into)

            results.append(await subagents.run("fake", stage.request(), on_ready=ready))
    lines = [event.text for event in seen[True] if isinstance(event, StderrLine)]
    assert lines[0] == "first"
    assert lines[1].startswith("half a line ")
    assert lines[-1] == "last words"
    assert not any(isinstance(event, StderrLine) for event in seen[False])
    assert results[0].failure is not None
    assert results[0].failure.stderr_tail.endswith("last words")


async def test_the_last_words_of_a_crash_are_in_the_failure(stage: Stage) -> None:
    turn = [{"stderr": {"text": "e" * 99, "repeat": 3000}}, {"stderr": "Traceback: the end"}, {"exit": 1}]
    async with stage.service({"turns": [turn]}) as subagents:
        async with await subagents.start("fake", stage.request()) as run:
            result = await run.result()
    assert result.failure is not None
    assert result.failure.stderr_tail.endswith("Traceback: the end\n")
