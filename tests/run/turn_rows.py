"""The rows of the failure table that a turn can provoke: a scenario, and the text that is said about it."""

from __future__ import annotations

from tests.run.rows import (
    ASK,
    BOTH,
    DEAF,
    PASSING_SECONDS,
    PERMISSION_LINE,
    UNHURRIED,
    Row,
    error,
    line,
    question,
)

TURN_ROWS = [
    Row("end_turn", {"turns": [[ASK, {"stop": "end_turn"}]]}, None, "completed"),
    Row("max_tokens", {"turns": [[{"stop": "max_tokens"}]]}, None, "max-tokens"),
    Row(
        "max_tokens after a denial",
        {"turns": [[ASK, {"stop": "max_tokens"}]]},
        PERMISSION_LINE,
        "max-tokens",
    ),
    Row("refusal", {"turns": [[{"stop": "refusal"}]]}, None, "refusal"),
    Row("refusal after a denial", {"turns": [[ASK, {"stop": "refusal"}]]}, PERMISSION_LINE, "refusal"),
    Row("a remote cancel", {"turns": [[{"stop": "cancelled"}]]}, None, "aborted"),
    Row(
        "a remote cancel after a denial",
        {"turns": [[ASK, {"stop": "cancelled"}]]},
        PERMISSION_LINE,
        "aborted",
    ),
    Row(
        "max_turn_requests",
        {"turns": [[{"stop": "max_turn_requests"}]]},
        line("stage: prompt; category: remote-limit; stop reason: max_turn_requests"),
    ),
    Row(
        "a stop reason that is not known",
        {"turns": [[ASK, {"stop": "CANARY"}]]},
        line("stage: prompt; category: unknown; stop reason: unknown") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "no stop reason",
        {"turns": [[{"stop": {}}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a stop reason that is no string",
        {"turns": [[{"stop": 5}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "a JSON-RPC error",
        {"turns": [[{"error": {"code": -32603, "message": "CANARY", "data": "CANARY"}}]]},
        line("stage: prompt; category: remote-error; rpc code: -32603"),
    ),
    Row(
        "a login is needed in the middle",
        {"turns": [[{"error": {"code": -32000, "message": "CANARY"}}]]},
        line("stage: prompt; category: auth-required; rpc code: -32000"),
    ),
    Row(
        "the process exits",
        {"turns": [[{"text": "x"}, {"exit": 255}]]},
        line("stage: process; category: process-exit; exit code: 255"),
    ),
    Row(
        "a signal ends the process after a denial",
        {"turns": [[ASK, {"signal": "SEGV"}]]},
        line("stage: process; category: process-exit; signal: SIGSEGV") + "\n" + PERMISSION_LINE,
    ),
    *(
        Row(
            f"the process exits with {code}",
            {"turns": [[{"text": "x"}, {"exit": code}]]},
            line(f"stage: process; category: process-exit; exit code: {code}"),
        )
        for code in (0, 1, 126, 127)
    ),
    *(
        Row(
            f"signal {number} ends the process",
            {"turns": [[{"text": "x"}, {"signal": number}]]},
            line(f"stage: process; category: process-exit; signal: {name}"),
        )
        for number, name in ((9, "SIGKILL"), (15, "SIGTERM"), (6, "SIGABRT"), (40, "40"))
    ),
    *(
        Row(
            f"the error {code}",
            {"turns": [[error(code)]]},
            line(f"stage: prompt; category: remote-error; rpc code: {code}"),
        )
        for code in (-32600, -32602, -32002, -32800)
    ),
    Row(
        "an error of a code that is not in the list, after a denial",
        {"turns": [[ASK, error(424242)]]},
        line("stage: prompt; category: remote-error") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "a result and an error in one answer",
        {"turns": [[{"raw": BOTH}, {"no_answer": True}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
    ),
    Row(
        "stdin is closed, and the process stays",
        {"turns": [[{"close_stdin": True}, {**ASK}, {"sleep": 20}]]},
        line("stage: prompt; category: transport") + "\n" + PERMISSION_LINE,
    ),
    Row(
        "stdout ends and the process stays",
        {"turns": [[{"close_stdout": True}, {"sleep": 20}]]},
        line("stage: prompt; category: transport"),
    ),
    Row(
        "a frame that is too large",
        {"turns": [[{"raw": {"text": "x", "repeat": 200_000}}, {"sleep": 20}]]},
        line("stage: prompt; category: protocol; reason: frame-too-large"),
        settings={"max_frame_bytes": 100_000},
    ),
    Row(
        "nothing is read any more, after a denial",
        {"turns": [[ASK, *DEAF, {"sleep": 20}]]},
        line("stage: prompt; category: transport; reason: write-blocked") + "\n" + PERMISSION_LINE,
        settings={"max_unsent_bytes": 50_000},
    ),
    Row(
        "a malformed answer, and no look at the end of stdout",
        {"turns": [[{"stop": 5}, {"close_stdout": True}, {"sleep": 20}]]},
        line("stage: prompt; category: protocol; reason: malformed-answer"),
        settings=UNHURRIED,
    ),
    Row(
        "an exit that is seen although stdout is still held",
        {"turns": [[{"child": {"kind": "holds-stdout", "seconds": 20}}, {"exit": 7}]]},
        line("stage: process; category: process-exit; exit code: 7"),
        settings=UNHURRIED,
    ),
    Row(
        "the turn deadline",
        {
            "turns": [
                [
                    {"text": {"chunks": ["x", "x"], "message_id": "m"}},
                    question("q"),
                    {"text": {"text": "x", "message_id": "m", "forever": True, "delay_seconds": 0.05}},
                ]
            ]
        },
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": PASSING_SECONDS},
        time_passes_at="q",
    ),
    Row(
        "the idle deadline",
        {"turns": [[{"text": "x"}, question("q"), {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": PASSING_SECONDS},
        time_passes_at="q",
    ),
    Row(
        "the tool idle deadline",
        {
            "turns": [
                [{"tool_call": {"title": "t", "status": "in_progress"}}, question("q"), {"wait_cancel": True}]
            ]
        },
        line("stage: prompt; category: timeout; reason: tool-idle-deadline"),
        settings={"idle_timeout_seconds": 5.0, "tool_idle_timeout_seconds": PASSING_SECONDS},
        time_passes_at="q",
    ),
    Row(
        "a deadline after a denial",
        {"turns": [[ASK, {"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline") + "\n" + PERMISSION_LINE,
        settings={"idle_timeout_seconds": PASSING_SECONDS},
        time_passes_at="asked",
    ),
    Row(
        "a deadline comes before an answer that is malformed",
        {"on_cancel": "silent", "turns": [[{"wait_cancel": True}, {"stop": 5}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
    Row(
        "a deadline comes before an answer that says that all is done",
        {"on_cancel": "end_turn", "turns": [[{"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.4},
    ),
    Row(
        "a deadline comes before the end of stdout",
        {"turns": [[{"wait_cancel": True}, {"close_stdout": True}, {"sleep": 20}]]},
        line("stage: prompt; category: timeout; reason: turn-deadline"),
        settings={"turn_timeout_seconds": 0.4, "cancel_grace_seconds": 0.3},
    ),
    Row(
        "a deadline comes before whatever the agent then does",
        {"on_cancel": "exit", "turns": [[{"wait_cancel": True}]]},
        line("stage: prompt; category: timeout; reason: idle-deadline"),
        settings={"idle_timeout_seconds": 0.4},
    ),
    *(
        Row(
            f"{tool} was asked for",
            {"turns": [[*announced, {"permission": {"tool_call": asked}}, {"stop": "refusal"}]]},
            f"ACP permission (policy: allow; request: {tool}; decision: allowed)",
            "refusal",
            settings={"permission": "allow"},
        )
        for tool, announced, asked in (
            ("execute", [{"tool_call": {"toolCallId": "c", "kind": "execute"}}], {"toolCallId": "c"}),
            ("other", [{"tool_call": {"toolCallId": "c"}}], {"toolCallId": "c"}),
            ("unknown", [], {"toolCallId": "c"}),
            ("unknown", [], {"toolCallId": "c", "kind": "CANARY"}),
        )
    ),
]
