"""Owns the body of an OpenAI Responses request.

The whole conversation is sent each time and nothing is kept at the endpoint (`store: false`): the
record of a session is ours, and a run may go on with another provider.

Above: `openai_responses` (which sends it). Below: `body`, `protocol`, `tool_shapes`. Refuses to
know: the SDK, HTTP.
"""

from __future__ import annotations

from typing import Any, Final

from toolcell.protocol.messages import ImagePart, Message, ModelRequest, ToolCall
from toolcell.providers.body import data_url, refuse_reserved, wire_name
from toolcell.providers.tool_shapes import render_tool

API: Final = "openai-responses"
RESERVED: Final = frozenset(
    {"model", "input", "instructions", "tools", "stream", "previous_response_id", "conversation"}
)
"""Keys `ModelRequest.options` may not set: they are the request itself."""


def responses_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body as plain data, without anything about streaming.

    Raises:
        ProviderError: an option tries to set a reserved key.
    """
    refuse_reserved(request.options, RESERVED)
    body: dict[str, Any] = {"model": request.model, "store": False}
    system = "\n\n".join(m.text for m in request.messages if m.role == "system" and m.text)
    if system:
        body["instructions"] = system
    body["input"] = [
        item for message in request.messages if message.role != "system" for item in _items(message)
    ]
    if request.tools:
        body["tools"] = [render_tool(tool, "openai-responses") for tool in request.tools]
    body.update(request.options)
    return body


def _items(message: Message) -> list[dict[str, Any]]:
    match message.role:
        case "tool":
            call_id = wire_name(message.tool_call_id or "")
            output = _parts(message) if message.images else message.text
            return [{"type": "function_call_output", "call_id": call_id, "output": output}]
        case "assistant":
            kept = message.reasoning
            own = kept is not None and kept.api == API
            out = [dict(item) for item in kept.items] if kept is not None and own else []
            if message.text:
                out.append({"role": "assistant", "content": message.text})
            return [*out, *(_call(call) for call in message.tool_calls)]
        case "user" if message.images:
            return [{"role": "user", "content": _parts(message)}]
        case _:
            return [{"role": message.role, "content": message.text}]


def _parts(message: Message) -> list[dict[str, Any]]:
    return [
        {"type": "input_text", "text": part} if isinstance(part, str) else _image(part)
        for part in message.parts()
    ]


def _image(image: ImagePart) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(image), "detail": "auto"}


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": wire_name(call.id),
        "name": wire_name(call.name),
        "arguments": call.arguments,
    }
