"""Owns the body of an OpenAI Chat Completions request.

Above: `openai_chat` (which sends it), `scripted` (which measures it). Below: `body`,
`protocol`, `tool_shapes`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolcell.protocol.messages import ImagePart, Message, ModelRequest, ToolCall
from toolcell.providers.body import data_url, refuse_reserved, wire_name
from toolcell.providers.tool_shapes import render_tool

RESERVED = frozenset({"model", "messages", "tools", "functions", "stream", "stream_options", "n"})
"""Keys `ModelRequest.options` may not set: they are the request itself."""


def chat_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body as plain data, without anything about streaming.

    Raises:
        ProviderError: an option tries to set a reserved key.
    """
    refuse_reserved(request.options, RESERVED)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request.messages),
    }
    if request.tools:
        body["tools"] = [render_tool(tool, "openai") for tool in request.tools]
    body.update(request.options)
    return body


def _messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages of the wire.

    Its tool messages carry text only, and stand together behind the message that called. So the
    images of tool results come in one user message behind them, each under the id of its call; it
    says nothing else (TR-06) and is no part of the conversation: other wires have no such message.
    """
    out: list[dict[str, Any]] = []
    owed: list[dict[str, Any]] = []
    for message in messages:
        if owed and message.role != "tool":
            if message.role == "user":
                out.append({"role": "user", "content": [*owed, *_parts(message)]})
                owed = []
                continue
            out.append({"role": "user", "content": owed})
            owed = []
        out.append(_message(message))
        if message.role == "tool":
            for number, image in enumerate(message.images, 1):
                label = f"[image {number} of tool result {message.tool_call_id or ''}]"
                owed += [{"type": "text", "text": label}, _image(image)]
    return [*out, {"role": "user", "content": owed}] if owed else out


def _parts(message: Message) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": part} if isinstance(part, str) else _image(part)
        for part in message.parts()
    ]


def _image(image: ImagePart) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def _message(message: Message) -> dict[str, Any]:
    match message.role:
        case "assistant":
            out: dict[str, Any] = {"role": "assistant", "content": message.text or None}
            if message.tool_calls:
                out["tool_calls"] = [_call(call) for call in message.tool_calls]
            elif not message.text:
                out["content"] = ""
            return out
        case "tool":
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id or "",
                "content": message.text,
            }
        case "user" if message.images:
            return {"role": "user", "content": _parts(message)}
        case _:
            return {"role": message.role, "content": message.text}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
