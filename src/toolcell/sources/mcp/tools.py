"""Owns the tools a server is published as: one per listed tool, and the five operations.

Operations are tools of kind `mcp-operation` named `$resources.list`, `$resources.templates`,
`$resources.read`, `$prompts.list` and `$prompts.get`; they exist when the server has the
capability, pass the gate like any call, and are never searched, counted or indexed (DESIGN,
knot 4).

Above: the connection, the listing. Below: `tools.tool`. Refuses to know: the MCP SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolcell.tools.tool import Execute, Group, McpOrigin, SourcedTool, Tool, ToolKind

Operation: TypeAlias = Literal[
    "resources.list", "resources.templates", "resources.read", "prompts.list", "prompts.get"
]

OPERATION_PREFIX = "$"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """One tool a server offers.

    Attributes:
        name: Its canonical name: without white space around it.
        wire_name: The exact name the server wants in a call.
        description: Cleaned of control characters; bounded here only against floods.
        title: A short title, or None.
        parameters: Its input schema, or `listing.ANY_OBJECT`.
        structured: It declares an output schema, so a result should carry structured content.
    """

    name: str
    wire_name: str
    description: str
    title: str | None
    parameters: Mapping[str, Any]
    structured: bool


_TEXT = {"type": "string"}
_OPERATIONS: Mapping[Operation, tuple[str, dict[str, Any]]] = {
    "resources.list": (
        "List the server's resources.",
        {"type": "object", "properties": {"cursor": _TEXT}},
    ),
    "resources.templates": (
        "List the server's resource templates: uris with variables to fill in.",
        {"type": "object", "properties": {"cursor": _TEXT}},
    ),
    "resources.read": (
        "Read one resource by its uri; with variables the uri is a template to fill in.",
        {
            "type": "object",
            "properties": {
                "uri": _TEXT,
                "variables": {
                    "type": "object",
                    "additionalProperties": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
                },
            },
            "required": ["uri"],
        },
    ),
    "prompts.list": (
        "List the server's prompts.",
        {"type": "object", "properties": {"cursor": _TEXT}},
    ),
    "prompts.get": (
        "Get one prompt by its name, filled in with arguments.",
        {
            "type": "object",
            "properties": {
                "name": _TEXT,
                "arguments": {"type": "object", "additionalProperties": _TEXT},
            },
            "required": ["name"],
        },
    ),
}


def operations_of(*, resources: bool, prompts: bool) -> tuple[Operation, ...]:
    """Return the operations a server with these capabilities has."""
    found: list[Operation] = []
    if resources:
        found += ["resources.list", "resources.templates", "resources.read"]
    if prompts:
        found += ["prompts.list", "prompts.get"]
    return tuple(found)


def listed_tool(server: str, listed: ListedTool, execute: Execute) -> SourcedTool:
    """Return a listed tool as `mcp:<server>:<name>`; its output schema is dropped (rule 7.3)."""
    tool = Tool(
        name=listed.name,
        description=listed.description,
        label=listed.title,
        parameters=listed.parameters,
        execute=execute,
    )
    return _sourced(tool, McpOrigin(server=server, tool=listed.wire_name))


def operation_tool(
    server: str, operation: Operation, execute: Callable[[Operation], Execute]
) -> SourcedTool:
    """Return an operation as `mcp:<server>:$<operation>`."""
    description, parameters = _OPERATIONS[operation]
    tool = Tool(
        name=OPERATION_PREFIX + operation,
        description=description,
        parameters=parameters,
        execute=execute(operation),
        kind=ToolKind.MCP_OPERATION,
    )
    return _sourced(tool, McpOrigin(server=server, tool=tool.name, operation=operation))


def _sourced(tool: Tool, origin: McpOrigin) -> SourcedTool:
    return SourcedTool(tool=tool, source="mcp", owner=origin.server, group=Group.MCP, mcp=origin)
