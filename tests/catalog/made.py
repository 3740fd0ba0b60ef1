"""Tools to test the catalog with."""

from collections.abc import Mapping
from typing import Any

from toolcell.tools.content import ToolResult
from toolcell.tools.tool import (
    Group,
    McpOrigin,
    SourcedTool,
    Tool,
    ToolContext,
    ToolKind,
)


async def nothing(_arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
    return ToolResult()


def tool(name: str, description: str = "", **fields: Any) -> Tool:
    fields.setdefault("parameters", {"type": "object"})
    return Tool(name=name, description=description, execute=nothing, **fields)


def params(*names: str, **described: str) -> dict[str, Any]:
    found = {name: {"type": "string"} for name in names}
    found |= {name: {"type": "string", "description": text} for name, text in described.items()}
    return {"type": "object", "properties": found}


def core(name: str, description: str = "", **fields: Any) -> SourcedTool:
    made = tool(name, description, **fields)
    return SourcedTool(tool=made, source="openclaw", owner="core", group=Group.CORE)


def plugin(owner: str, name: str, description: str = "", **fields: Any) -> SourcedTool:
    made = tool(name, description, **fields)
    return SourcedTool(tool=made, source="openclaw", owner=owner, group=Group.EXTERNAL)


def client(name: str, description: str = "", owner: str = "app", **fields: Any) -> SourcedTool:
    made = tool(name, description, **fields)
    return SourcedTool(tool=made, source="client", owner=owner, group=Group.CLIENT)


def mcp(server: str, name: str, description: str = "", **fields: Any) -> SourcedTool:
    origin = McpOrigin(server=server, tool=name)
    made = tool(name, description, **fields)
    return SourcedTool(tool=made, source="mcp", owner=server, group=Group.MCP, mcp=origin)


def operation(server: str, name: str) -> SourcedTool:
    origin = McpOrigin(server=server, tool=name, operation=name)  # type: ignore[arg-type]
    made = tool(name, kind=ToolKind.MCP_OPERATION)
    return SourcedTool(tool=made, source="mcp", owner=server, group=Group.MCP, mcp=origin)
