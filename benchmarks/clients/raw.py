"""The raw limit: what no client in Python can be faster than.

Blocking reads of 64 KiB, a split, one parse per line, a dispatch of a few comparisons, no supervision. One
thread for each child where there are several.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator

from work import Stopwatch, conversation, median, perform, resident_bytes

try:
    from orjson import loads
except ImportError:  # only the project's own tests run without it
    from json import loads

READ_BYTES = 65536
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
)
NEW_SESSION = b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
PROMPT = (
    b'{"jsonrpc":"2.0","id":2,"method":"session/prompt",'
    b'"params":{"sessionId":"s-1","prompt":[{"type":"text","text":"go"}]}}\n'
)
YES = b'{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}\n'


def spawn(agent: list[str]) -> subprocess.Popen[bytes]:
    """One child with three pipes."""
    return subprocess.Popen(
        agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )


def messages(source: int) -> Iterator[dict]:
    """What comes, message by message."""
    read = os.read
    tail: list[bytes] = []
    while data := read(source, READ_BYTES):
        lines = data.split(b"\n")
        last = lines.pop()
        if lines and tail:
            tail.append(lines[0])
            lines[0] = b"".join(tail)
            tail.clear()
        if last:
            tail.append(last)
        for line in lines:
            yield loads(line)


class Conversation:
    """The shortest conversation: handshake, one turn."""

    def __init__(self, agent: list[str]) -> None:
        self.process = spawn(agent)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._sink = self.process.stdin.fileno()
        self._source = self.process.stdout.fileno()
        self._messages = messages(self._source)
        for id_, request in enumerate((INITIALIZE, NEW_SESSION)):
            os.write(self._sink, request)
            while next(self._messages).get("id") != id_:
                pass

    def turn(self) -> str:
        """Prompt, and return the whole text."""
        os.write(self._sink, PROMPT)
        parts: list[str] = []
        add = parts.append
        for message in self._messages:
            method = message.get("method")
            if method == "session/update":
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    content = update["content"]
                    if content["type"] == "text":
                        add(content["text"])
            elif method == "session/request_permission":
                os.write(self._sink, YES % message["id"])
            elif message.get("id") == 2:
                return "".join(parts)
        raise EOFError

    def close(self) -> None:
        """End the child by the end of its input."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        self.process.wait()


def converse(agent: list[str]) -> str:
    """A whole conversation."""
    conversation = Conversation(agent)
    text = conversation.turn()
    conversation.close()
    return text


def stream(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    opened = Conversation(agent)
    watch = Stopwatch()
    text = opened.turn()
    measured = watch.read()
    opened.close()
    return conversation(measured, text)


def ask(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    return {"p50_seconds": int(converse(agent)) / 1e9}


def runs(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    """Nothing but the spawn and the wait: what a run costs above that is the client's."""
    seconds = []
    for _ in range(numbers["count"]):
        began = time.perf_counter()
        process = spawn(agent)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        seconds.append(time.perf_counter() - began)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
    return {"p50_seconds": median(seconds)}


def crowd(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    waiting: queue.SimpleQueue[None] = queue.SimpleQueue()
    for _ in range(numbers["count"]):
        waiting.put(None)

    def worker() -> None:
        while True:
            try:
                waiting.get_nowait()
            except queue.Empty:
                return
            converse(agent)

    watch = Stopwatch()
    threads = [threading.Thread(target=worker) for _ in range(numbers["at_a_time"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {**watch.read()}


def children(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    """Memory with one thread for each child, all of them in a turn."""
    opened: list[Conversation] = []

    def one() -> None:
        child = Conversation(agent)
        opened.append(child)
        try:
            child.turn()
        except (EOFError, OSError):
            return

    threads: list[threading.Thread] = []

    def open_up_to(count: int) -> int:
        while len(threads) < count:
            threads.append(threading.Thread(target=one, daemon=True))
            threads[-1].start()
        while len(opened) < count:
            time.sleep(0.01)
        time.sleep(0.2)
        return resident_bytes(collect=True)

    few = open_up_to(numbers["few"])
    many = open_up_to(numbers["many"])
    for child in opened:
        child.process.kill()
        child.process.wait()
    for thread in threads:
        thread.join(5)
    return {"bytes_per_child": (many - few) / (numbers["many"] - numbers["few"])}


def first_byte(numbers: dict[str, int], agent: list[str]) -> dict[str, object]:
    return {"characters": len(converse(agent))}


if __name__ == "__main__":
    perform(
        {
            "stream": stream,
            "ask": ask,
            "runs": runs,
            "crowd": crowd,
            "children": children,
            "first_byte": first_byte,
        }
    )
