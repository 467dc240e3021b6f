"""What an agent answers, as far as we act on it: pydantic models, lenient as the protocol asks readers to be.

Owns which members of an answer are needed and how the others are forgiven: a malformed optional member is
read as its default, unknown members are ignored. A missing or malformed required member makes the whole
answer malformed (`read` returns None). Nothing raises, and no input ever gets into an exception. Models are
built when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)


def _forgiving(default: Callable[[], object]) -> WrapValidator:
    """A malformed value is read as the default."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return default()

    return WrapValidator(validate)


_No = Annotated[bool, _forgiving(lambda: False)]
#: A marker object: `{}` means yes, absent or null means no.
_Marker = Annotated[dict[str, Any] | None, _forgiving(lambda: None)]
_Text = Annotated[str | None, _forgiving(lambda: None)]
_Items = Annotated[list[Any] | None, _forgiving(lambda: None)]


class WireModel(BaseModel):
    """Settings of every model of something that an agent sent."""

    model_config = ConfigDict(
        extra="ignore", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True
    )


class PromptCapabilities(WireModel):
    """Which content the agent takes in a prompt, beyond text and links."""

    image: _No = False
    audio: _No = False
    embeddedContext: _No = False


class SessionCapabilities(WireModel):
    """Which session methods the agent has, beyond new and prompt."""

    list: _Marker = None
    resume: _Marker = None
    close: _Marker = None
    delete: _Marker = None


_PromptCapabilities = Annotated[PromptCapabilities, _forgiving(PromptCapabilities)]
_SessionCapabilities = Annotated[SessionCapabilities, _forgiving(SessionCapabilities)]


class AgentCapabilities(WireModel):
    """What the agent says it can do; what is left out it cannot."""

    loadSession: _No = False
    promptCapabilities: _PromptCapabilities = Field(default_factory=PromptCapabilities)
    sessionCapabilities: _SessionCapabilities = Field(default_factory=SessionCapabilities)


_AgentCapabilities = Annotated[AgentCapabilities, _forgiving(AgentCapabilities)]


class InitializeResult(WireModel):
    """The answer to `initialize`."""

    protocolVersion: Annotated[int, Field(ge=0, le=65535)]
    agentCapabilities: _AgentCapabilities = Field(default_factory=AgentCapabilities)


class SessionResult(WireModel):
    """The answer to `session/load` and `session/resume`; null is read as empty."""

    modes: _Marker = None
    configOptions: _Items = None


class DeleteResult(WireModel):
    """The answer to `session/delete`, which says nothing but yes; null is read as empty."""


class NewSessionResult(SessionResult):
    """The answer to `session/new`."""

    sessionId: str


class SessionEntry(WireModel):
    """One session in the answer to `session/list`."""

    sessionId: str
    cwd: str
    title: _Text = None
    updatedAt: _Text = None


class ListResult(WireModel):
    """One page of the answer to `session/list`; entries are read one by one."""

    sessions: list[Any]
    nextCursor: str | None = None


class PromptResult(WireModel):
    """The answer to `session/prompt`."""

    stopReason: str


_Model = TypeVar("_Model", bound=WireModel)


def read(model: type[_Model], value: object) -> _Model | None:
    """`value` as a `model`; None when a required member is missing or malformed."""
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
