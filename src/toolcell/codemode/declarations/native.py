"""Owns the declaration of one native tool: `tools/<name>.d.ts` (BEHAVIOURS 182).

Above: `declarations.files`. Below: `schema.declaration`.
"""

from __future__ import annotations

from toolcell.catalog.entry import Entry
from toolcell.schema.declaration import TOOL_STYLE, function_declaration, type_text


def native_file(name: str, entry: Entry) -> str:
    """Return `declare function <name>(input…): Promise<…>;` from the schemas `describe` shows."""
    tool = entry.sourced.tool
    known = entry.sourced.trusted and tool.output_schema is not None
    output = type_text(tool.output_schema, style=TOOL_STYLE) if known else "unknown"
    return function_declaration(
        name, entry.description, tool.parameters, output=output, style=TOOL_STYLE
    )
