"""Owns how toolcell's tools and results look to an MCP client.

`exec` and `wait` declare the contract's result union as their output schema and give the result as
structured content; the text beside it is what a model reads, with outside text wrapped (rule 4.9).

Above: client sessions. Below: the MCP types, `surface`. Refuses to know: sessions, transports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types

from toolcell.agent.result_text import bounded_text
from toolcell.base.jsontext import dumps, loads
from toolcell.base.untrusted import wrapped
from toolcell.codemode.controls import EXEC_NAME, WAIT_NAME
from toolcell.schema.plain import within_bounds
from toolcell.surface.definitions import definitions
from toolcell.surface.plan import SurfacePlan, VisibleTool
from toolcell.tools.content import Content, ImageContent, TextContent, ToolResult
from toolcell.tools.tool import ToolKind

MAX_TEXT_BYTES: Final = 1 << 20
"""Text of one block of a direct tool; a cell's own result is bounded by `maxOutputBytes`."""

LOOKING: Final = frozenset({"tool_search", "tool_describe"})
"""Controls that run no tool."""

_OUTPUT: Final[Mapping[str, Any]] = {
    "type": "array",
    "description": "New entries of text() and json(), in call order.",
    "items": {
        "type": "object",
        "properties": {"type": {"enum": ["text", "json"]}, "text": {"type": "string"}, "value": {}},
        "required": ["type"],
    },
}


def _variant(status: str, own: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {
        "properties": {"status": {"const": status}, **own},
        "required": ["status", "telemetry", *required],
    }


OUTCOME_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["completed", "waiting", "failed"]},
        "output": _OUTPUT,
        "telemetry": {"type": "object"},
    },
    "required": ["status", "telemetry"],
    "anyOf": [
        _variant("completed", {"value": {}}, ("value",)),
        _variant(
            "waiting",
            {
                "runId": {"type": "string", "description": "Pass it to wait."},
                "reason": {"enum": ["pending_tools", "yield"]},
                "pendingToolCalls": {"type": "array"},
            },
            ("runId", "reason"),
        ),
        _variant("failed", {"error": {"type": "string"}, "code": {"type": "string"}}, ("error",)),
    ],
}
"""The union of rule 3.3; its root is an object, as MCP wants it."""


def listed_tools(plan: SurfacePlan) -> list[types.Tool]:
    """Return the visible tools as `tools/list` gives them, names and schemas as the plan has."""
    rendered = definitions(plan, "mcp")
    if plan.prompt:
        # A server has no system prompt to write into; the first control leads to all others.
        rendered[0]["description"] += f"\n\n{plan.prompt}"
    return [_listed(*each) for each in zip(plan.visible, rendered, strict=True)]


def call_result(visible: VisibleTool | None, result: ToolResult) -> types.CallToolResult:
    """Return what a client gets for a call of `visible` (None for a name nobody has)."""
    control = visible is not None and visible.sourced.tool.kind is ToolKind.CONTROL
    content = [_block(each, result, whole=control) for each in result.content]
    structured = _structured(visible, result)
    if not content and structured is not None:
        content = [types.TextContent(text=dumps(structured))]
    return types.CallToolResult(
        content=content, structured_content=structured, is_error=result.is_error
    )


def _listed(visible: VisibleTool, rendered: Mapping[str, Any]) -> types.Tool:
    tool = visible.sourced.tool
    return types.Tool(
        name=rendered["name"],
        title=tool.label,
        description=rendered["description"],
        input_schema=rendered["inputSchema"],
        output_schema=_output_schema(visible),
        annotations=_annotations(visible),
    )


def _annotations(visible: VisibleTool) -> types.ToolAnnotations:
    """Say what is known: a program may do anything its tools may."""
    tool = visible.sourced.tool
    if tool.kind is ToolKind.CONTROL and tool.name in LOOKING:
        return types.ToolAnnotations(title=tool.label, read_only_hint=True, open_world_hint=False)
    if tool.kind is ToolKind.CONTROL:
        return types.ToolAnnotations(
            title=tool.label,
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=False,
            open_world_hint=True,
        )
    repeatable = True if tool.replay_safe else None
    return types.ToolAnnotations(title=tool.label, idempotent_hint=repeatable)


def _output_schema(visible: VisibleTool) -> dict[str, Any] | None:
    tool = visible.sourced.tool
    if tool.kind is ToolKind.CONTROL:
        return dict(OUTCOME_SCHEMA) if tool.name in (EXEC_NAME, WAIT_NAME) else None
    schema = tool.output_schema
    if schema is None or not visible.sourced.trusted or not within_bounds(schema):
        return None
    if schema.get("type") != "object":
        return None
    return dict(schema)


def _structured(visible: VisibleTool | None, result: ToolResult) -> dict[str, Any] | None:
    """Return the details where the tool declared them; a refused call has none."""
    if visible is None or _output_schema(visible) is None or not isinstance(result.details, dict):
        return None
    if visible.sourced.tool.kind is ToolKind.CONTROL and "status" not in result.details:
        return None
    return _well_formed(result.details)


def _block(block: Content, result: ToolResult, *, whole: bool) -> types.ContentBlock:
    match block:
        case ImageContent():
            return types.ImageContent(data=block.data, mime_type=block.mime_type)
        case TextContent():
            text = block.text
        case _:
            text = dumps(block.to_dict())
    text = text if whole else bounded_text(text, MAX_TEXT_BYTES)
    return types.TextContent(text=_text(wrapped(text) if result.untrusted else text))


def _well_formed(details: dict[str, Any]) -> dict[str, Any]:
    """Return `details` without halves of surrogate pairs, which no wire can carry."""
    text = dumps(details)
    cleaned = _text(text)
    return details if cleaned == text else dict(loads(cleaned))


def _text(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


INSTRUCTIONS: Final = (
    f"Call `{EXEC_NAME}` with a JavaScript program; its description names the tools that the "
    "program can call. A result with status `waiting` goes on when `wait` is called with its runId."
)
"""What a client is told of the server as a whole."""

SEARCH_INSTRUCTIONS: Final = (
    "Most tools are not listed. Find them with `tool_search`, and call them with `tool_call`."
)
"""The same where Tool Search is served."""
