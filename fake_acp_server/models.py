"""The scenario format as pydantic models: the full check of a scenario file, and its published JSON Schema.

Imported only for these two; a built-in or inline scenario runs without pydantic, behind the quick check of
``scenario``. Each field's description is its line in the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from fake_acp_server.step_models import (
    CancelSteps,
    CancelWord,
    Closed,
    IdStyle,
    Json,
    OnEof,
    Raw,
    RpcError,
    SecondPrompt,
    Seconds,
    Step,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Answer(Closed):
    """What a request is answered."""

    result: Json = Field(None, description="the whole result")
    merge: dict[str, Json] | None = Field(None, description="laid over the default result, key by key")
    error: RpcError | None = None
    no_answer: bool = False
    raw: str | Raw | None = Field(None, description="bytes instead of an answer")
    delay_seconds: Seconds = 0
    before_answer: list[Step] = Field([], description="done before the answer")
    after_answer: list[Step] = Field([], description="done after the answer")
    needs_auth: bool = Field(False, description="error -32000 until `authenticate` was answered")


Answers = Answer | Annotated[list[Answer], Field(min_length=1)]


class ScenarioFile(Closed):
    """A scenario of fake_acp_server."""

    model_config = ConfigDict(title="Scenario of fake_acp_server")

    name: str = "unnamed"
    purpose: str = Field("", description="one line")
    start: list[Step] = Field([], description="done before the first byte is read")
    capabilities: dict[str, Json] | None = Field(None, description="`agentCapabilities`; default: close only")
    auth_methods: list[dict[str, Json]] = Field([], description="`authMethods`")
    agent_info: dict[str, Json] | Literal[False] | None = Field(None, description="`agentInfo`; false: none")
    history: list[dict[str, Json]] = Field([], description="updates that `session/load` replays")
    ids: IdStyle = Field("int", description="how ids of the agent's requests look; `int` starts at 0")
    session_id: str = Field("session-${number}", description="pattern of session ids")
    turns: Annotated[list[list[Step]], Field(min_length=1)] = Field(
        [], description="steps of each turn of a session; the last one repeats; default: echo the prompt"
    )
    on_cancel: CancelWord | CancelSteps = Field("cancelled", description="how a cancelled turn ends")
    on_eof: OnEof | None = Field(
        None, description="what happens when the client closes stdin; default: leave"
    )
    second_prompt: SecondPrompt = Field("error", description="a prompt while a turn is running")
    launcher: Literal["stays", "exits"] | None = Field(None, description="start the agent behind a launcher")
    life_socket: str | None = Field(None, description="Unix socket to connect to at the start, and to hold")
    lifetime_seconds: float = Field(600, description="the process leaves by itself after that, with code 75")
    initialize: Answers | None = None
    authenticate: Answers | None = None
    logout: Answers | None = None
    session_new: Answers | None = None
    session_load: Answers | None = None
    session_resume: Answers | None = None
    session_list: Answers | None = None
    session_close: Answers | None = None
    session_delete: Answers | None = None
    session_set_mode: Answers | None = None
    session_set_config_option: Answers | None = None
    unknown_session: Answers | None = Field(None, description="a request for a session that is not open")
    unknown_method: Answers | None = Field(None, description="a request with a method nobody knows")


def problems(data: Any) -> list[str]:
    """What is wrong with the data of a scenario file: a line each, with the place; empty when nothing is."""
    try:
        ScenarioFile.model_validate(data)
    except ValidationError as error:
        return _lines([(_place(detail["loc"]), _text(detail)) for detail in error.errors()])
    return []


def _lines(found: list[tuple[str, str]]) -> list[str]:
    """One line for each place. A value of several forms has an error for each: the deepest is meant."""
    texts: dict[str, list[str]] = {}
    for place, text in found:
        if not any(deeper != place and deeper.startswith(place) for deeper, _ in found):
            texts.setdefault(place, []).append(text)
    return [f"{place or 'the scenario'}: {' or '.join(dict.fromkeys(said))}" for place, said in texts.items()]


def _place(location: tuple[int | str, ...]) -> str:
    # Names of models and types that pydantic puts between the keys say nothing to the author of a file.
    steps = [part for part in location if isinstance(part, int) or _is_key(part)]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps).removeprefix(".")


def _is_key(part: str) -> bool:
    return part not in ("str", "int", "float", "bool") and part[:1].islower() and "[" not in part


def _text(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "unknown key"
    if detail["type"] in ("model_type", "dict_type"):
        return "Input should be a mapping"
    return detail["msg"].removeprefix("Value error, ")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    schema = _without_null(ScenarioFile.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_null(schema: Any) -> Any:
    """The schema without the null that stands for a key that is not there."""
    if isinstance(schema, list):
        return [_without_null(part) for part in schema if part != {"type": "null"}]
    if isinstance(schema, dict):
        return {key: _without_null(part) for key, part in schema.items() if (key, part) != ("default", None)}
    return schema
