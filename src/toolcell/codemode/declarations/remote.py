"""Owns the declarations of MCP servers: `mcp/index.d.ts` and `mcp/<server>.d.ts`.

Above: `declarations.files`, `$api`. Below: `schema.declaration`. Text of remote servers stands in
doc comments only, and cannot leave them (REPORTS TS-07).
"""

from __future__ import annotations

from typing import Final

from toolcell.catalog.entry import Entry
from toolcell.codemode.view import GuestView
from toolcell.schema.declaration import (
    MCP_STYLE,
    FunctionSpec,
    Member,
    NamespaceSpec,
    namespace_declaration,
)

RESULT: Final = """\
type McpToolResult = {
  content?: unknown[];
  structuredContent?: unknown;
  isError?: boolean;
  [key: string]: unknown;
};
"""
HEADER: Final = """\
type McpApiHeader = {
  kind: "mcp_api";
  scope: "root" | "server" | "tool";
  [key: string]: unknown;
};
"""
API_FUNCTION: Final = FunctionSpec(
    name="$api",
    description="Return the functions as data, with JSON Schemas where asked.",
    output="McpApiHeader",
    parameters="toolName?: string, options?: { schema?: boolean }",
)
ROOT_FUNCTION: Final = FunctionSpec(
    name="$api", description="Return the servers as data.", output="McpApiHeader", parameters=""
)


def index_file(view: GuestView) -> str:
    """Return `mcp/index.d.ts`: which servers there are and how many functions each has."""
    lines = [
        f"// MCP.{name}: {len(methods)} functions, declared in mcp/{name}.d.ts\n"
        for name, methods in view.servers.items()
    ]
    return (
        "// MCP servers of this run. Call MCP.<server>.<function>({...}) with one object.\n"
        + "".join(lines)
        + HEADER
        + namespace_declaration("MCP", [ROOT_FUNCTION])
    )


def server_file(identifier: str, view: GuestView) -> str:
    """Return `mcp/<identifier>.d.ts`, complete in itself."""
    methods = view.servers[identifier]
    entries = [view.remote[(identifier, method)] for method in methods]
    return RESULT + HEADER + "\n" + declared_server(identifier, entries)


def declared_server(identifier: str, entries: list[Entry]) -> str:
    """Return the namespace of a server with these functions."""
    return namespace_declaration(f"MCP.{identifier}", members(entries), style=MCP_STYLE)


def members(entries: list[Entry]) -> list[Member]:
    """Return `$api`, the functions, and operations inside `resources` and `prompts`."""
    own: list[Member] = [API_FUNCTION]
    inner: dict[str, list[Member]] = {}
    for entry in entries:
        method = entry.mcp_path[1] if entry.mcp_path is not None else entry.name
        group, dot, name = method.partition(".")
        spec = FunctionSpec(
            name=name if dot else method,
            description=entry.description,
            input_schema=entry.sourced.tool.parameters,
            output="McpToolResult",
        )
        (inner.setdefault(group, []) if dot else own).append(spec)
    own.extend(NamespaceSpec(name=name, members=tuple(each)) for name, each in inner.items())
    return own
