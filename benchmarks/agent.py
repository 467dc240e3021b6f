"""The agent of `agent.c` for machines without a C compiler: the same arguments, prebuilt bytes.

Standard library only, and as little of it as it can do with. It starts slower than the one in C, so the
figures about whole runs say less; the report says which agent it was.
"""

from __future__ import annotations

import os
import signal
import sys
import time

HEAD = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
)
TAIL = b'"}}}}\n'
PERMISSION = (
    b'{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s-1",'
    b'"toolCall":{"toolCallId":"call-%d","title":"Edit a file","kind":"edit","status":"pending"},'
    b'"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},'
    b'{"optionId":"no","name":"Reject","kind":"reject_once"}]}}\n'
)
NUMBER_DIGITS = 8
#: more different texts than a decoder remembers (16384), as far as they fit in this much
MOST_LINES, MOST_BYTES = 65536, 16 << 20


class Input:
    """Lines from stdin."""

    def __init__(self, stamp: str | None) -> None:
        self._stamp = stamp
        self._data = b""

    def line(self) -> bytes:
        """The next line, empty at the end."""
        while b"\n" not in self._data:
            piece = os.read(0, 65536)
            if not piece:
                return b""
            if self._stamp is not None:
                with open(self._stamp, "w", encoding="ascii") as stamp:
                    stamp.write(f"{time.monotonic_ns()}\n")
                self._stamp = None
            self._data += piece
        line, _, self._data = self._data.partition(b"\n")
        return line


def send(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def value_of(line: bytes, key: bytes) -> bytes | None:
    """The value after a key, as it is written there."""
    _, found, rest = line.partition(key)
    if not found:
        return None
    rest = rest.lstrip(b" :")
    if rest.startswith(b'"'):
        return rest[: rest.index(b'"', 1) + 1]
    return rest.partition(b",")[0].partition(b"}")[0].strip()


def answer(id_: bytes, result: bytes) -> None:
    send(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (id_, result))


def send_chunks(count: int, line_bytes: int) -> None:
    filler_bytes = max(0, line_bytes - len(HEAD) - NUMBER_DIGITS - len(TAIL))
    different = max(1, min(count, MOST_LINES, MOST_BYTES // line_bytes))
    filler = (b"the words of an agent that has much to say " * (filler_bytes // 40 + 2))[: filler_bytes + 64]
    lines = [
        b"%s%08d%s%s" % (HEAD, number, filler[number % 64 : number % 64 + filler_bytes], TAIL)
        for number in range(different)
    ]
    block = b"".join(lines)
    for _ in range(count // different):
        send(block)
    send(b"".join(lines[: count % different]))


def ask(count: int, source: Input) -> None:
    times = []
    for number in range(count):
        request = PERMISSION % (number, number)
        began = time.monotonic_ns()
        os.write(1, request)
        line = source.line()
        times.append(time.monotonic_ns() - began)
        if not line:
            sys.exit(0)
        if b'"yes"' not in line:
            sys.exit(3)
    send(b"%s%d%s" % (HEAD, sorted(times)[count // 2], TAIL))


def bystanders(count: int) -> None:
    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(1)
            while os.getppid() != 1:  # the end of the parent ends it, at the latest after this
                time.sleep(5)
            os._exit(0)
        children.append(child)
    send(b"ready\n")
    while os.read(0, 1):
        pass
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main(words: list[str]) -> None:
    stamp = None
    if words[0] == "--stamp":
        stamp, words = words[1], words[2:]
    mode, numbers = words[0], [int(word) for word in words[1:]]
    if mode == "bystanders":
        bystanders(numbers[0])
        return
    source, held = Input(stamp), None
    while line := source.line():
        method, id_ = value_of(line, b'"method"'), value_of(line, b'"id"')
        if method == b'"initialize"':
            answer(id_ or b"0", b'{"protocolVersion":1,"agentCapabilities":{}}')
        elif method == b'"session/new"':
            answer(id_ or b"0", b'{"sessionId":"s-1"}')
        elif method == b'"session/prompt"' and mode == "hold":
            held = id_
        elif method == b'"session/prompt"':
            if mode == "ask":
                ask(numbers[0], source)
            else:
                send_chunks(*numbers)
            answer(id_ or b"0", b'{"stopReason":"end_turn"}')
        elif method == b'"session/cancel"' and held is not None:
            answer(held, b'{"stopReason":"cancelled"}')
            held = None
        elif method is not None and id_ is not None:
            answer(id_, b"{}")


if __name__ == "__main__":
    main(sys.argv[1:])
