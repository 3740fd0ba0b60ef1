"""Owns reading a Chat Completions request.

Above: `openai_routes`, `openapi`. Below: `asking`, `content_parts`. Refuses to know: runs, HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field

from toolcell.gateway.asking import Ask, Wire, conversation, tool_choice, unsupported
from toolcell.gateway.content_parts import content_of, text_of
from toolcell.gateway.faults import invalid
from toolcell.protocol.messages import Message, ToolCall
from toolcell.sources.client import ClientDefinition

PASSED_ON: Final = (
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "response_format",
    "reasoning_effort",
    "verbosity",
)
"""What the model is told as the client said it."""


class FunctionCall(Wire):
    """The function of a tool call."""

    name: str
    arguments: str = ""


class AssistantCall(Wire):
    """A tool call of an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(Wire):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[AssistantCall] | None = None
    tool_call_id: str | None = None


class FunctionDefinition(Wire):
    """A function of the client's."""

    name: str = Field(min_length=1, max_length=128)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(Wire):
    """A tool of the client's."""

    type: Literal["function"]
    function: FunctionDefinition


class StreamOptions(Wire):
    """How a stream ends."""

    include_usage: bool | None = None


class ChatRequest(Wire):
    """The body of `POST /v1/chat/completions`."""

    model: str | None = None
    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[ChatTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    user: str | None = Field(default=None, max_length=256)
    metadata: dict[str, str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the tokens."""
        return bool(self.stream_options and self.stream_options.include_usage)


def chat_ask(body: ChatRequest) -> Ask:
    """Return what a request asks.

    Raises:
        ApiError: 400: it asks for something else than this endpoint does.
    """
    extra = body.model_extra or {}
    _refuse_others(body, extra)
    said = [(message, _message(message, index)) for index, message in enumerate(body.messages)]
    system = [m.text for given, m in said if given.role in ("system", "developer") and m.text]
    talk = [m for given, m in said if given.role not in ("system", "developer")]
    asked, history, results = conversation(talk)
    given = {**extra, **body.model_dump(exclude_none=True, include=set(PASSED_ON))}
    metadata = body.metadata or {}
    return Ask(
        model=body.model,
        prompt=None if asked is None else asked.text,
        images=() if asked is None else asked.images,
        history=history,
        results=results,
        instructions="\n\n".join(system) or None,
        tools=client_tools([tool.function for tool in body.tools or ()]),
        tools_disabled=tool_choice(body.tool_choice),
        options={name: given[name] for name in PASSED_ON if given.get(name) is not None},
        session=metadata.get("session"),
        app=metadata.get("app") or "app",
        sender=body.user,
        stream=bool(body.stream),
    )


def client_tools(functions: Sequence[FunctionDefinition]) -> tuple[ClientDefinition, ...]:
    """Return definitions of a client's tools."""
    return tuple(
        ClientDefinition(
            name=each.name,
            description=each.description or "",
            parameters=each.parameters or {"type": "object", "properties": {}},
        )
        for each in functions
    )


def _message(given: ChatMessage, index: int) -> Message:
    where = f"messages[{index}]"
    if given.role in ("user", "tool"):
        said, images = content_of(given.content, param=f"{where}.content")
        if given.role == "user":
            return Message(role="user", text=said, images=images)
        if not given.tool_call_id:
            raise invalid("a tool message names its tool_call_id", param=where)
        # The wire itself has text only here; clients send images all the same.
        return Message(role="tool", text=said, tool_call_id=given.tool_call_id, images=images)
    text = text_of(given.content, param=f"{where}.content")
    match given.role:
        case "assistant":
            calls = tuple(
                ToolCall(call.id, call.function.name, call.function.arguments)
                for call in given.tool_calls or ()
            )
            return Message(role="assistant", text=text, tool_calls=calls)
        case _:
            return Message(role="system", text=text)


def _refuse_others(body: ChatRequest, extra: Mapping[str, Any]) -> None:
    if body.n not in (None, 1):
        raise unsupported("n", "a run gives one answer")
    if extra.get("functions") or extra.get("function_call"):
        raise unsupported("functions", "send tools")
    if extra.get("logprobs"):
        raise unsupported("logprobs", "an answer may come from several model calls")
    if extra.get("audio") or (extra.get("modalities") or ["text"]) != ["text"]:
        raise unsupported("modalities", "answers are text")
    for name in ("web_search_options", "prediction"):
        if extra.get(name):
            raise unsupported(name, "the agent's own tools and model are used")
