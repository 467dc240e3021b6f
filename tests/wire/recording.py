"""A receiver that writes down what it is told, and the smallest way to run bytes through buffer and peer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from acp_subagent.wire.frames import FrameBuffer
from acp_subagent.wire.jsonrpc import Answer, OnAnswer, Peer, RequestId

MEBIBYTE = 1024 * 1024


@dataclass
class Recording:
    """Everything that came, in order: ("request", id, method, params), ("notification", method, params)..."""

    heard: list[tuple[object, ...]] = field(default_factory=list)
    then: Callable[[], None] | None = None
    """Called at the end of each callback, for tests of what a callback may do."""

    def on_request(self, id: RequestId, method: str, params: dict[str, object]) -> None:
        self.heard.append(("request", id, method, params))
        if self.then is not None:
            self.then()

    def on_notification(self, method: str, params: dict[str, object]) -> None:
        self.heard.append(("notification", method, params))
        if self.then is not None:
            self.then()

    def on_answer(self, number: int) -> OnAnswer:
        """A callback that notes the answer to our request of this number."""

        def note(answer: Answer) -> None:
            self.heard.append(("answer", number, answer))

        return note


@dataclass
class Codec:
    """Buffer and peer, wired together; two requests of ours (0 and 1) wait for an answer."""

    max_frame_bytes: int = MEBIBYTE
    max_noise_lines: int = 100
    recording: Recording = field(default_factory=Recording)

    def __post_init__(self) -> None:
        self.buffer = FrameBuffer(self.max_frame_bytes)
        self.peer = Peer(self.recording, max_noise_lines=self.max_noise_lines)
        for number in (0, 1):
            assert self.peer.request("ask", {}, self.recording.on_answer(number)).id == number

    def take(self, pieces: Iterable[bytes], *, end: bool = True) -> None:
        for piece in pieces:
            self.peer.feed(self.buffer.feed(piece))
        if end:
            self.peer.feed(self.buffer.finish())
