"""Owns reading a Responses request.

Above: `openai_routes`, `openapi`. Below: `asking`, `content_parts`. Refuses to know: runs, HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field

from toolcell.gateway.asking import Ask, Wire, conversation, tool_choice, unsupported
from toolcell.gateway.chat_request import FunctionDefinition, client_tools
from toolcell.gateway.content_parts import content_of, text_of
from toolcell.gateway.faults import invalid
from toolcell.gateway.response_book import ResponseBook
from toolcell.protocol.messages import Message, ToolCall

_UNREAD: Final = frozenset({"reasoning"})
"""Items that say nothing to another model."""


class ResponseTool(FunctionDefinition):
    """A tool of the client's."""

    type: Literal["function"]


class ResponsesRequest(Wire):
    """The body of `POST /v1/responses`."""

    model: str | None = None
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    tools: list[ResponseTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    background: bool | None = None
    user: str | None = Field(default=None, max_length=256)
    metadata: dict[str, str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None


def responses_ask(body: ResponsesRequest, book: ResponseBook) -> Ask:
    """Return what a request asks.

    Raises:
        ApiError: 400: it asks for something else than this endpoint does.
    """
    if body.background:
        raise unsupported("background", "start the run with POST /api/runs")
    extra = body.model_extra or {}
    if extra.get("prompt"):
        raise unsupported("prompt", "send instructions and input")
    messages = _messages(body.input)
    system = [m.text for m in messages if m.role == "system" and m.text]
    asked, history, results = conversation([m for m in messages if m.role != "system"])
    metadata = body.metadata or {}
    return Ask(
        model=body.model,
        prompt=None if asked is None else asked.text,
        images=() if asked is None else asked.images,
        history=history,
        results=results,
        instructions="\n\n".join(filter(None, [body.instructions, *system])) or None,
        tools=client_tools(body.tools or ()),
        tools_disabled=tool_choice(body.tool_choice),
        options=_options(body, extra),
        session=_session(body, book) or metadata.get("session"),
        app=metadata.get("app") or "app",
        sender=body.user,
        stream=bool(body.stream),
    )


def _session(body: ResponsesRequest, book: ResponseBook) -> str | None:
    given = body.conversation
    named = given.get("id") if isinstance(given, Mapping) else given
    if named is not None and not isinstance(named, str):
        raise invalid("conversation is an id, or an object with one", param="conversation")
    if body.previous_response_id is None:
        return named
    if named is not None:
        message = "send conversation or previous_response_id, not both"
        raise invalid(message, param="previous_response_id")
    return book.session_of(body.previous_response_id)


def _options(body: ResponsesRequest, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's options in the words of Chat Completions, which every wire reads."""
    reasoning, text = extra.get("reasoning"), extra.get("text")
    named = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_completion_tokens": body.max_output_tokens,
        "reasoning_effort": reasoning.get("effort") if isinstance(reasoning, Mapping) else None,
        "verbosity": text.get("verbosity") if isinstance(text, Mapping) else None,
        "response_format": _format(text.get("format")) if isinstance(text, Mapping) else None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _format(given: object) -> dict[str, Any] | None:
    if not isinstance(given, Mapping) or given.get("type") == "text":
        return None
    if given.get("type") == "json_schema":
        inner = {key: value for key, value in given.items() if key != "type"}
        return {"type": "json_schema", "json_schema": inner}
    return dict(given)


def _messages(given: str | Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return the items of an input as messages; calls of one reply become one message."""
    if isinstance(given, str):
        return [Message(role="user", text=given)]
    out: list[Message] = []
    for index, item in enumerate(given):
        where = f"input[{index}]"
        kind = item.get("type", "message")
        match kind:
            case "message":
                out.append(_message(item, where))
            case "function_call":
                _add_call(out, item, where)
            case "function_call_output":
                text, images = content_of(item.get("output"), param=f"{where}.output")
                call_id = _text(item, "call_id", where)
                out.append(Message(role="tool", text=text, tool_call_id=call_id, images=images))
            case str() if kind in _UNREAD:
                pass
            case _:
                message = f"items of type {str(kind)[:60]!r} are not supported"
                raise invalid(message, param=where)
    return out


def _message(item: Mapping[str, Any], where: str) -> Message:
    role = item.get("role")
    if role == "user":
        said, images = content_of(item.get("content"), param=f"{where}.content")
        return Message(role="user", text=said, images=images)
    text = text_of(item.get("content"), param=f"{where}.content")
    match role:
        case "assistant":
            return Message(role="assistant", text=text)
        case "system" | "developer":
            return Message(role="system", text=text)
        case _:
            raise invalid("role must be user, assistant, system or developer", param=where)


def _add_call(out: list[Message], item: Mapping[str, Any], where: str) -> None:
    call = ToolCall(
        _text(item, "call_id", where),
        _text(item, "name", where),
        str(item.get("arguments") or ""),
    )
    last = out[-1] if out and out[-1].role == "assistant" else None
    if last is None:
        out.append(Message(role="assistant", tool_calls=(call,)))
    else:
        calls = (*last.tool_calls, call)
        out[-1] = Message(role="assistant", text=last.text, tool_calls=calls)


def _text(item: Mapping[str, Any], name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        message = f"{name} must be text"
        raise invalid(message, param=f"{where}.{name}")
    return value
