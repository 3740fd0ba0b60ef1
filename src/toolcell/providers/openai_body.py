"""Owns the body of an OpenAI Chat Completions request.

Above: `openai_chat` (which sends it), `scripted` (which measures it). Below: `body`,
`protocol`, `tool_shapes`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

from typing import Any

from toolcell.protocol.messages import Message, ModelRequest, ToolCall
from toolcell.providers.body import refuse_reserved, wire_name
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
        "messages": [_message(message) for message in request.messages],
    }
    if request.tools:
        body["tools"] = [render_tool(tool, "openai") for tool in request.tools]
    body.update(request.options)
    return body


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
        case _:
            return {"role": message.role, "content": message.text}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
