"""Owns the declaration of one native tool: `tools/<name>.d.ts` (BEHAVIOURS 182).

Above: `declarations.files`. Below: `schema.declaration`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcell.base.jsontext import dumps
from toolcell.catalog.entry import Entry
from toolcell.errors import SchemaError
from toolcell.schema.declaration import TOOL_STYLE, function_declaration, type_text
from toolcell.schema.discriminator import discriminator_of
from toolcell.schema.hints import output_hint

_MAX_NOTES: Final = 16
_MAX_TYPE: Final = 400


def native_file(name: str, entry: Entry) -> str:
    """Return `declare function <name>(input…): Promise<…>;` from the schemas `describe` shows."""
    tool = entry.sourced.tool
    known = entry.sourced.trusted and tool.output_schema is not None
    output = type_text(tool.output_schema, style=TOOL_STYLE) if known else "unknown"
    return function_declaration(
        name,
        entry.description,
        tool.parameters,
        output=output,
        style=TOOL_STYLE,
        notes=tuple(_by_input(entry)) if known else (),
    )


def _by_input(entry: Entry) -> Iterator[str]:
    """Yield what the input selects of the output, a line for each value (BEHAVIOURS 292)."""
    try:
        found = discriminator_of(entry.sourced.tool.output_schema, entry.sourced.tool.parameters)
    except SchemaError:  # the tool cannot run; its call says why
        return
    branches = tuple(found.mapping.values()) if found else ()
    for branch in branches[:_MAX_NOTES]:
        hint = output_hint(branch.schema)
        shown = hint if hint and len(hint) <= _MAX_TYPE else f"outputSchema {branch.pointer}"
        yield f"With {branch.input_property} {dumps(branch.value)}: {shown}"
    if len(branches) > _MAX_NOTES:
        yield f"{len(branches) - _MAX_NOTES} more values: see describe()"
