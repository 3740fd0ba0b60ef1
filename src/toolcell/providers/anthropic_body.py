"""Owns the body of an Anthropic Messages request.

Above: `anthropic` (which sends it). Below: `anthropic_thinking`, `body`, `protocol`, `tool_shapes`.
Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolcell.base.jsontext import loads
from toolcell.protocol.messages import ImagePart, Message, ModelRequest, ToolCall
from toolcell.providers.anthropic_thinking import fit_thinking, with_thinking
from toolcell.providers.body import refuse_reserved, wire_name
from toolcell.providers.tool_shapes import render_tool

RESERVED: Final = frozenset({"model", "messages", "system", "tools", "stream", "mcp_servers"})
"""Keys `ModelRequest.options` may not set: they are the request itself."""

DEFAULT_MAX_TOKENS: Final = 8192
"""The wire demands a bound on each reply; `max_tokens` of the options replaces this one."""


def messages_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body as plain data, without anything about streaming.

    Raises:
        ProviderError: an option tries to set a reserved key.
    """
    refuse_reserved(request.options, RESERVED)
    body: dict[str, Any] = {"model": request.model, "max_tokens": DEFAULT_MAX_TOKENS}
    system = "\n\n".join(m.text for m in request.messages if m.role == "system" and m.text)
    if system:
        body["system"] = system
    body["messages"] = _turns(m for m in request.messages if m.role != "system")
    if request.tools:
        body["tools"] = [render_tool(tool, "anthropic") for tool in request.tools]
    body.update(request.options)
    fit_thinking(body, request)
    return body


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return user and assistant in turn; answers of tools are blocks of the user's turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            # The wire refuses empty messages.
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": wire_name(message.tool_call_id or ""),
            "content": message.text,
        }
        if message.is_error:
            # Here the wire takes text only.
            return [block | {"is_error": True}]
        return [block | {"content": _parts(message)}] if message.images else [block]
    if message.role == "user":
        return _parts(message)
    return with_thinking(message, [_tool_use(call) for call in message.tool_calls])


def _parts(message: Message) -> list[dict[str, Any]]:
    """Return text and images; the wire refuses blank text."""
    return [
        {"type": "text", "text": part} if isinstance(part, str) else _image(part)
        for part in message.parts()
        if not isinstance(part, str) or part.strip()
    ]


def _image(image: ImagePart) -> dict[str, Any]:
    source = {"type": "base64", "media_type": image.mime_type, "data": image.data}
    return {"type": "image", "source": source}


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": wire_name(call.id),
        "name": wire_name(call.name),
        "input": _input(call.arguments),
    }


def _input(arguments: str) -> Mapping[str, Any]:
    """Return the arguments as the object this wire wants; what is none is shown as it was."""
    if not arguments.strip():
        return {}
    try:
        value = loads(arguments)
    except (ValueError, RecursionError):
        return {"invalid_arguments": arguments}
    return value if isinstance(value, dict) else {"invalid_arguments": arguments}
