"""Owns how one tool definition looks on each wire.

Above: the provider adapters, `surface.definitions`. Below: `protocol`. Refuses to know: which
tools are shown, and why.
"""

from __future__ import annotations

from typing import Any, Literal

from toolcell.protocol.messages import ToolDefinition

Shape = Literal["openai", "openai-responses", "anthropic", "mcp"]
"""`openai` is Chat Completions."""

SHAPES: tuple[Shape, ...] = ("openai", "openai-responses", "anthropic", "mcp")


def render_tool(definition: ToolDefinition, shape: Shape) -> dict[str, Any]:
    """Return `definition` as the wire `shape` wants it.

    Raises:
        ValueError: there is no such shape.
    """
    name, text, schema = definition.name, definition.description, dict(definition.parameters)
    match shape:
        case "openai":
            function = {"name": name, "description": text, "parameters": schema}
            return {"type": "function", "function": function}
        case "openai-responses":
            # The Responses API reads a missing `strict` as true and then refuses open schemas.
            return {
                "type": "function",
                "name": name,
                "description": text,
                "parameters": schema,
                "strict": False,
            }
        case "anthropic":
            return {"name": name, "description": text, "input_schema": schema}
        case "mcp":
            return {"name": name, "description": text, "inputSchema": schema}
    message = f"unknown tool shape {shape!r}; choose one of {', '.join(SHAPES)}"
    raise ValueError(message)
