"""Owns catalogs in a file, one JSON object a line: `{name, server?, description, inputSchema}`.

Above: the command line. Below: `tools`, `errors`. Refuses to know: how a listed tool would run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolcell.base.jsontext import loads
from toolcell.errors import CallError, ConfigError
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Group, McpOrigin, SourcedTool, Tool, ToolContext, core_tool


def load_listing(path: Path) -> list[SourcedTool]:
    """Return the tools listed in the JSONL file at `path`.

    A line with `server` is a tool of that MCP server, one without is a local tool. `title` and
    `outputSchema` are read too; further fields are ignored, blank lines skipped.

    Raises:
        ConfigError: the file cannot be read, or a line is not such an object; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the catalog {str(path)!r}: {error}"
        raise ConfigError(message) from error
    return parse_listing(text.split("\n"), where=str(path))


def parse_listing(lines: Iterable[str], *, where: str) -> list[SourcedTool]:
    """Return the tools of `lines`; `where` names their origin in errors. See `load_listing`."""
    return [
        _tool(line, f"{where}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _tool(line: str, where: str) -> SourcedTool:
    try:
        row = loads(line)
    except (ValueError, RecursionError) as error:
        message = f"{where}: not JSON: {error}; write one JSON object on each line."
        raise ConfigError(message) from error
    if not isinstance(row, dict):
        message = f"{where}: expected a JSON object with name, description and inputSchema."
        raise ConfigError(message)
    name = _text(row, "name", where)
    if not name:
        message = f"{where}: 'name' must be a non-empty string."
        raise ConfigError(message)
    server = _text(row, "server", where)
    tool = Tool(
        name=name,
        description=_text(row, "description", where) or "",
        parameters=_schema(row, "inputSchema", where) or {"type": "object"},
        output_schema=_schema(row, "outputSchema", where),
        label=_text(row, "title", where),
        execute=_not_here,
    )
    if not server:
        return core_tool(tool)
    origin = McpOrigin(server=server, tool=name)
    return SourcedTool(tool=tool, source="mcp", owner=server, group=Group.MCP, mcp=origin)


def _text(row: Mapping[str, Any], key: str, where: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        message = f"{where}: {key!r} must be a string."
        raise ConfigError(message)
    return value


def _schema(row: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any] | None:
    value = row.get(key)
    if value is not None and not isinstance(value, dict):
        message = f"{where}: {key!r} must be a JSON Schema object."
        raise ConfigError(message)
    return value


async def _not_here(_arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
    raise CallError(
        "this tool is only listed in a catalog file; configure its server or plugin to run it.",
        code="unavailable",
        effect="none",
    )
