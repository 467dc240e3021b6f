"""The steps of a scenario as pydantic models. Each field's description is its line in the reference.

Only for checking and documenting: what a step does is in ``steps``, ``client_steps`` and ``faults``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    model_validator,
)

Seconds = NonNegativeFloat
Branches = dict[str, "list[Step]"]
Json = Any


class Closed(BaseModel):
    """A mapping with known keys only."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _no_null(cls, data: Any) -> Any:
        # What is not said keeps its default; null is a value only where any value is one.
        for name, field in cls.model_fields.items():
            key = field.alias or name
            if isinstance(data, dict) and key in data and data[key] is None and field.annotation is not Any:
                raise ValueError(f"{key} may not be null")
        return data


class Text(Closed):
    """Chunks of text."""

    text: str | None = Field(None, description="one text; with `size` cut into pieces of so many characters")
    chunks: list[str] | None = Field(None, description="the texts of the chunks")
    size: PositiveInt | None = Field(None, description="characters a piece; without `text`, of a filler")
    count: PositiveInt = Field(1, description="how often the whole is said")
    forever: bool = Field(False, description="say it again until the turn is cancelled")
    delay_seconds: Seconds = Field(0, description="pause between two chunks")
    message_id: bool | str = Field(
        True, description="true: a fresh one for the step; false: none; or the id itself"
    )


class Permission(Closed):
    """A `session/request_permission`."""

    tool_call: dict[str, Json] = Field({}, description="wire fields; `toolCallId` is `call-1` by default")
    options: list[dict[str, Json]] | None = Field(None, description="wire form; by default one of each kind")
    on: Branches = Field(
        {},
        description="steps by answer, the most exact first: option id, option kind, `allow` or `reject`; "
        "`cancelled`, `error`, `not_offered`, `timeout`",
    )
    wait: bool = Field(True, description="false: ask and go on at once")
    session_id: str | None = Field(None, description="another session's id")
    id: Json = Field(None, description="the request's id, instead of the next one")
    interrupted_by_cancel: bool = Field(
        False, description="true: a cancel ends the wait before the answer is there"
    )
    timeout_seconds: Seconds | None = None


class Request(Closed):
    """Any request to the client."""

    method: str
    params: Json = Field(default_factory=dict)
    id: Json = Field(None, description="the request's id, instead of the next one")
    on: Branches = Field({}, description="steps by answer: `result`, `error`, `timeout`")
    wait: bool = Field(True, description="false: ask and go on at once")
    save: str | None = Field(None, description="name under which `${name.key}` finds the result afterwards")
    timeout_seconds: Seconds | None = None


class ReadFile(Closed):
    """An `fs/read_text_file`."""

    path: str
    line: int | None = None
    limit: int | None = None
    save: str = Field("file", description="`${file.content}` is the text afterwards")
    on: Branches = Field({}, description="`result`, `error`, `timeout`")


class WriteFile(Closed):
    """An `fs/write_text_file`."""

    path: str
    text: str = ""
    on: Branches = Field({}, description="`result`, `error`, `timeout`")


class Terminal(Closed):
    """A terminal, from create to release."""

    command: str
    args: list[str] | None = None
    cwd: str | None = None
    env: list[dict[str, str]] | None = Field(None, description="list of `name` and `value`")
    output_byte_limit: int | None = None
    kill: bool = Field(False, description="kill the command instead of only waiting for it")
    save: str = Field(
        "terminal", description="`${terminal.output}` is the output, `${exit.exitCode}` the code"
    )
    on: Branches = Field({}, description="`result`, or `error` when it could not be created")


class Elicit(Closed):
    """An `elicitation/create`."""

    message: str = "A question"
    schema_: dict[str, Json] | None = Field(None, alias="schema", description="the form")
    url: str | None = Field(None, description="a URL instead of a form")
    elicitation_id: str = "elicitation-1"
    save: str = Field("elicited", description="`${elicited.action}` afterwards")
    on: Branches = Field({}, description="`accept`, `decline`, `cancel`, `error`")


class Notify(Closed):
    """Any notification to the client."""

    method: str
    params: Json = Field(default_factory=dict)


class Raw(Closed):
    """Bytes on stdout."""

    text: str | None = Field(None, description="as UTF-8")
    bytes: str | None = Field(None, description="as latin-1: each character is one byte")
    base64: str | None = None
    json_: Json = Field(None, alias="json", description="as one line of JSON")
    newline: bool = Field(True, description="false: the JSON without its newline")
    repeat: int = 1
    split: int = Field(0, description="write in pieces of so many bytes")
    delay_seconds: Seconds = Field(0, description="pause between two pieces")


class Stderr(Closed):
    """A line on stderr."""

    text: str
    repeat: int = 1
    newline: bool = True


class Timeout(Closed):
    """A wait that may have an end."""

    timeout_seconds: Seconds | None = None


class WaitPath(Timeout):
    """A wait for a file or a socket."""

    path: str


class TouchFile(Closed):
    """A file that is written."""

    path: str
    text: str = ""
    append: bool = False


class RpcError(Closed):
    """A JSON-RPC error."""

    code: int = -32603
    message: str = "Internal error"
    data: Json = None


EchoWord = Literal["prompt", "blocks", "argv", "cwd", "env", "frames", "answers", "pid", "session"]


class Echo(Closed):
    """What the agent knows, as answer text."""

    what: EchoWord
    values: list[str] | None = Field(None, description="environment variables whose values are shown")


class Exit(Closed):
    """The end of the process."""

    code: int = 0


ChildKind = Literal[
    "plain",
    "launcher-exits",
    "launcher-stays",
    "double-fork",
    "setsid",
    "own-group",
    "closed",
    "stopped",
    "holds-stdout",
    "fork-loop",
    "relay",
    "setsid-relay",
]


class Child(Closed):
    """A child process."""

    kind: ChildKind
    connect: str | None = Field(
        None, description="Unix socket it connects to; it says `KIND PID`, and holds on"
    )
    ignore_term: bool = False
    environment: Literal["inherit", "empty"] = "inherit"
    seconds: float | str = Field(120, description="after that it leaves by itself")
    every_seconds: float = Field(0.01, description="pace of `fork-loop` and of relays")
    wait: bool = Field(True, description="false: do not wait until it is in place")


class CountTerm(Closed):
    """SIGTERM, counted."""

    path: str | None = Field(None, description="file that gets a line for each")
    exit_after: int | None = Field(None, description="leave with code 0 after so many")


class OnEof(Closed):
    """What happens when the client closes stdin."""

    ignore: bool = Field(False, description="stay")
    wait_turns: bool = Field(False, description="leave only when no turn is running")
    delay_seconds: Seconds = 0
    steps: list[Step] = Field([], description="done before it leaves")
    marker: str | None = Field(None, description="file that is written last")
    exit_code: int = 0


class CancelSteps(Closed):
    """Steps that answer a cancel."""

    steps: list[Step]


CancelWord = Literal["cancelled", "ignore", "silent", "end_turn", "error", "exit", "flood"]
SecondPrompt = Literal["error", "queue", "cancel_first", "ignore", "end_turn"]
IdStyle = Literal["int", "string", "uuid"]


class Setting(Closed):
    """Settings that change from here on."""

    ids: IdStyle | None = None
    on_cancel: CancelWord | CancelSteps | None = None
    second_prompt: SecondPrompt | None = None


class Repeat(Closed):
    """Steps, several times."""

    times: int
    steps: list[Step]


class PlanEntry(BaseModel):
    """One entry of a plan, in wire form."""

    content: str
    priority: str
    status: str


class Step(Closed):
    """One step: exactly one of these keys."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    update: dict[str, Json] = Field({}, description="a `session/update` with this update, in wire form")
    text: str | Text = Field("", description="answer text, as `agent_message_chunk`")
    thought: str | Text = Field("", description="a thought, as `agent_thought_chunk`")
    user_text: str | Text = Field("", description="the user's words, as `user_message_chunk`")
    plan: list[str | PlanEntry | Json] = Field([], description="a plan; a text is a pending entry")
    tool_call: dict[str, Json] = Field({}, description="a tool call, in wire form")
    tool_call_update: dict[str, Json] = Field({}, description="an update of a tool call, in wire form")
    permission: Permission | None = Field(None, description="ask for a permission")
    request: Request | None = Field(None, description="any request to the client")
    read_file: str | ReadFile = Field("", description="read a file through the client")
    write_file: WriteFile | None = Field(None, description="write a file through the client")
    terminal: str | Terminal = Field("", description="run a command in a terminal of the client")
    elicit: Elicit | None = Field(None, description="ask the user")
    notify: Notify | None = Field(None, description="any notification to the client")
    frame: Json = Field(None, description="any JSON value as a line")
    raw: str | Raw = Field("", description="bytes on stdout, with no newline of their own")
    stderr: str | Stderr = Field("", description="a line on stderr")
    sleep: Seconds = Field(0, description="seconds; a cancel ends it")
    wait_cancel: Literal[True] | Timeout = Field(True, description="wait until the client cancels the turn")
    wait_file: str | WaitPath = Field("", description="wait until a file exists")
    wait_socket: str | WaitPath = Field(
        "", description="connect to a Unix socket, say `waiting`, and wait for a byte or the end"
    )
    wait_requests: Literal[True] | Timeout = Field(
        True, description="wait until the client answered all requests"
    )
    touch_file: str | TouchFile = Field("", description="write a file")
    stop: Json = Field(None, description="answer the prompt: a stop reason, or the whole result as a mapping")
    error: RpcError | int = Field(-32603, description="answer the prompt with an error")
    no_answer: Literal[True] = Field(True, description="never answer the prompt")
    echo: EchoWord | Echo = Field("prompt", description="say what the agent got or knows")
    exit: int | Exit = Field(0, description="leave with this code")
    signal: int | str = Field(9, description="die by this signal, as a number or a name (POSIX)")
    close_stdout: Literal[True] = Field(True, description="close stdout and stay")
    close_stdin: Literal[True] = Field(True, description="close stdin and stay")
    stop_reading: Literal[True] = Field(True, description="stop reading stdin")
    start_reading: Literal[True] = Field(True, description="read stdin again")
    exec: list[str] = Field([], description="become another program (POSIX)")
    child: ChildKind | Child = Field("plain", description="start a child process (most kinds: POSIX)")
    end_children: Literal[True] = Field(True, description="kill the children that are still ours")
    ignore_eof: bool = Field(True, description="stay when the client closes stdin")
    ignore_term: bool = Field(True, description="ignore SIGTERM (POSIX)")
    count_term: str | CountTerm = Field("", description="count SIGTERM instead of dying by it (POSIX)")
    on_eof: OnEof | None = Field(None, description="what happens when the client closes stdin")
    set: Setting | None = Field(None, description="change a setting from here on")
    repeat: Repeat | None = Field(None, description="do steps several times")

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, data: Any) -> Any:
        if not isinstance(data, dict) or len(data) != 1:
            raise ValueError("a step is a mapping with exactly one key, its name")
        return data
