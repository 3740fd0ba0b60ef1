"""Owns `MCP.<server>.<method>({...})` in guest code (rule 5.1, BEHAVIOURS 226 to 229, 242).

Above: the sets of guest APIs. Below: `extensions.calling`. Refuses to know: the MCP SDK and
declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcell.base.jsontext import Json, dumps
from toolcell.catalog.entry import Entry
from toolcell.codemode.extensions.calling import (
    bad_input,
    call_tool,
    refuse_namespaces,
    text_at,
    unknown,
    value_text,
)
from toolcell.codemode.extensions.contract import (
    Answering,
    Calling,
    CellContext,
    GuestExtension,
    prelude,
)
from toolcell.codemode.extensions.mcp_api import answer_root, answer_server
from toolcell.codemode.view import GuestView
from toolcell.errors import CallError

SHAPE = "MCP namespace tools accept one object argument."


async def _call(arguments: list[Any], cell: CellContext) -> str:
    server, method = text_at(arguments, 0), text_at(arguments, 1)
    given = arguments[2] if len(arguments) > 2 else {}
    if not isinstance(given, Mapping):
        raise bad_input(SHAPE)
    entry = cell.view.remote.get((server, method))
    if entry is None:
        msg = f"Unknown MCP function: MCP.{server}.{method}."
        raise unknown(msg)
    filled = _with_defaults(entry, given)
    try:
        return value_text(await call_tool(entry, filled, cell))
    except CallError as error:
        if error.code != "blocked":
            raise
        # An MCP result says so itself, so that one kind of check serves (BEHAVIOURS 242).
        return dumps({"content": [{"type": "text", "text": error.message}], "isError": True})


def _with_defaults(entry: Entry, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fill top-level defaults and check that the required arguments are there."""
    schema = entry.sourced.tool.parameters
    properties = schema.get("properties")
    filled = dict(given)
    if isinstance(properties, Mapping):
        for name, part in properties.items():
            if name not in filled and isinstance(part, Mapping) and "default" in part:
                filled[name] = part["default"]
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    missing = [name for name in names if isinstance(name, str) and name not in filled]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        listed = ", ".join(name[:128] for name in missing[:8])
        msg = f"Missing required MCP namespace argument{plural}: {listed}"
        raise CallError(
            msg,
            code="input_contract",
            effect="none",
            untrusted=True,
        )
    return filled


def _data(view: GuestView) -> Json:
    return [{"server": name, "methods": list(methods)} for name, methods in view.servers.items()]


def _prompt(view: GuestView) -> str | None:
    if not view.servers:
        return None
    how = "find them with catalog.search and call the handle, or "
    return (
        f"MCP tools: {how if view.guest_api == 'catalog' else ''}MCP.<server>.<tool>({{...}}) with "
        "one object argument; they resolve to {content, structuredContent?, isError?}."
    )


def mcp_extension() -> GuestExtension:
    """Return the extension."""
    return GuestExtension(
        name="mcp",
        script=prelude("mcp"),
        data=_data,
        handlers={
            "namespace": Calling(_call, refuse_namespaces),
            "mcp.root": Answering(answer_root),
            "mcp.server": Answering(answer_server),
        },
        prompt=_prompt,
    )
