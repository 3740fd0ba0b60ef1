"""Owns the body of an OpenAI Chat Completions request.

Above: `openai_chat` (which sends it), `scripted` (which measures it). Below: `protocol`,
`tool_shapes`. Refuses to know: the SDK, HTTP.
"""

from __future__ import annotations

import re
from typing import Any

from toolcell.base.jsontext import dumps
from toolcell.errors import ProviderError
from toolcell.protocol.messages import Message, ModelRequest, ToolCall
from toolcell.providers.tool_shapes import render_tool

RESERVED = frozenset({"model", "messages", "tools", "functions", "stream", "stream_options", "n"})
"""Keys `ModelRequest.options` may not set: they are the request itself."""

_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def chat_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body as plain data, without anything about streaming.

    Raises:
        ProviderError: an option tries to set a reserved key.
    """
    taken = sorted(RESERVED.intersection(request.options))
    if taken:
        message = f"model option {taken[0]!r} cannot be set: it is part of the request itself"
        raise ProviderError(message)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
    }
    if request.tools:
        body["tools"] = [render_tool(tool, "openai") for tool in request.tools]
    body.update(request.options)
    return body


def encode(body: dict[str, Any]) -> bytes:
    """Return the bytes that are sent; a lone surrogate, which no endpoint takes, becomes U+FFFD.

    Raises:
        ProviderError: an option or a schema holds something JSON cannot carry.
    """
    try:
        text = dumps(body)
    except (TypeError, ValueError) as error:
        message = f"the request to the model is not JSON: {error}; check options and tool schemas"
        raise ProviderError(message) from error
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def wire_name(name: str) -> str:
    """Return a tool name of the history in letters every endpoint accepts.

    A model may have called a tool that does not exist by a name that no endpoint takes back; the
    next request must not be refused because of it (CN-08).
    """
    trimmed = name.strip()
    if _WIRE_NAME.fullmatch(trimmed):
        return trimmed
    return re.sub(r"[^A-Za-z0-9_-]+", "_", trimmed)[:64] or "unnamed"


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
