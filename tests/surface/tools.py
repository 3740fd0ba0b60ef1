"""Tools for the tests of surfaces."""

from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool, ToolKind, core_tool

SCHEMA = {"type": "object", "properties": {"v": {"type": "string"}}}


async def nothing(_arguments, _context):
    return ToolResult(details=None)


def make(name, *, kind=ToolKind.ORDINARY, catalog_mode="catalog", parameters=None):
    return Tool(
        name=name,
        description=f"Does {name}.",
        parameters=SCHEMA if parameters is None else parameters,
        execute=nothing,
        kind=kind,
        catalog_mode=catalog_mode,
    )


def core(name, **options):
    return core_tool(make(name, **options))


def plugin(owner, name, **options):
    return SourcedTool(
        tool=make(name, **options), source="openclaw", owner=owner, group=Group.EXTERNAL
    )


def mcp(server, name, **options):
    return SourcedTool(
        tool=make(name, **options),
        source="mcp",
        owner=server,
        group=Group.MCP,
        mcp=McpOrigin(server=server, tool=name),
    )


def client(name, app="app", **options):
    return SourcedTool(tool=make(name, **options), source="client", owner=app, group=Group.CLIENT)


def control(name):
    return core(name, kind=ToolKind.CONTROL)


EXEC, WAIT = control("exec"), control("wait")
CONTROLS = (EXEC, WAIT)
TOOL_SEARCH = tuple(
    control(name) for name in ("tool_search_code", "tool_search", "tool_describe", "tool_call")
)


def names(plan):
    return [tool.name for tool in plan.visible]
