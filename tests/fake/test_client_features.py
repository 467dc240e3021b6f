"""Steps that use what a client serves: files, terminals, elicitation; answers to what cannot be served."""

from __future__ import annotations

from collections.abc import Callable

from tests.fake.driver import Fake
from tests.fake.test_conversation import turns

Start = Callable[..., Fake]


def test_a_file_is_read_and_written(start: Start) -> None:
    fake = start(
        turns(
            {"read_file": "${cwd}/a.txt"},
            {"text": "read ${file.content}"},
            {
                "write_file": {
                    "path": "${cwd}/b.txt",
                    "text": "new",
                    "on": {"error": [{"text": ", not written"}]},
                }
            },
        )
    )
    session = fake.open_session({"fs": {"readTextFile": True, "writeTextFile": True}})
    prompt = fake.prompt(session)
    fake.answer(fake.read_request("fs/read_text_file"), {"content": "old"})
    request = fake.read_request("fs/write_text_file")
    assert request["params"] == {"sessionId": session, "path": "/srv/demo/b.txt", "content": "new"}
    fake.send({"id": request["id"], "error": {"code": -32603, "message": "disk full"}})
    fake.read_answer(prompt)
    assert fake.text() == "read old, not written"


def test_a_terminal_is_run_to_its_end_and_released(start: Start) -> None:
    fake = start(
        turns(
            {
                "terminal": {
                    "command": "make",
                    "args": ["test"],
                    "on": {"result": [{"text": "${terminal.output}"}]},
                }
            }
        )
    )
    prompt = fake.prompt(fake.open_session({"terminal": True}))
    fake.answer(fake.read_request("terminal/create"), {"terminalId": "t-1"})
    fake.answer(fake.read_request("terminal/wait_for_exit"), {"exitCode": 0})
    fake.answer(fake.read_request("terminal/output"), {"output": "3 passed", "truncated": False})
    release = fake.read_request("terminal/release")
    assert release["params"]["terminalId"] == "t-1"
    fake.answer(release, {})
    fake.read_answer(prompt)
    assert fake.text() == "3 passed"


def test_a_refused_terminal_is_not_used(start: Start) -> None:
    fake = start(turns({"terminal": {"command": "make", "on": {"error": [{"text": "refused"}]}}}))
    prompt = fake.prompt(fake.open_session())
    request = fake.read_request("terminal/create")
    fake.send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
    fake.read_answer(prompt)
    assert fake.text() == "refused"


def test_elicitation_branches_on_the_action(start: Start) -> None:
    form = {"schema": {"type": "object", "properties": {"branch": {"type": "string"}}}}
    steps = {"accept": [{"text": "${elicited.content} "}], "decline": [{"text": "declined"}]}
    fake = start(
        turns({"elicit": {**form, "on": steps}}, {"elicit": {"url": "https://example.org/", "on": steps}})
    )
    prompt = fake.prompt(fake.open_session({"elicitation": {"form": {}, "url": {}}}))
    request = fake.read_request("elicitation/create")
    fake.answer(request, {"action": "accept", "content": {"branch": "dev"}})
    assert fake.read_request("elicitation/create")["params"]["mode"] == "url"
    fake.answer({"id": request["id"] + 1}, {"action": "decline"})
    fake.read_answer(prompt)
    assert fake.text() == "{'branch': 'dev'} declined"


def test_unknown_sessions_and_methods_may_get_a_result(start_faulty: Start) -> None:
    fake = start_faulty(
        {"unknown_session": {"result": {"stopReason": "refusal"}}, "unknown_method": {"result": None}}
    )
    fake.open_session()
    assert fake.read_answer(fake.prompt("nobody"))["result"] == {"stopReason": "refusal"}
    assert fake.call("_vendor/x", {})["result"] is None
    assert (
        fake.call("session/load", {"sessionId": "x", "cwd": "/", "mcpServers": []})["error"]["code"] == -32601
    )
