"""Owns the tools API of the guest: `ALL_TOOLS` and `tools.*`, by exact ids (rule 4.8, area L).

MCP tools are left out of all of it: they live under `MCP` alone.

Above: the sets of guest APIs. Below: `extensions.calling`. Refuses to know: ranking, the gate.
"""

from __future__ import annotations

from typing import Any

from toolcell.base.jsontext import Json, dumps
from toolcell.catalog.entry import Entry
from toolcell.catalog.names import convenience_names
from toolcell.codemode.extensions.calling import (
    bad_input,
    call_tool,
    call_value,
    found,
    text_at,
    unknown,
)
from toolcell.codemode.extensions.contract import (
    Answering,
    Calling,
    CellContext,
    GuestExtension,
    prelude,
)
from toolcell.codemode.view import GuestView
from toolcell.errors import CallError

ADVICE = " Use tools.search(...) to find an exact id."


def _data(view: GuestView) -> Json:
    listed = list(view.by_id.values())
    return {
        "entries": [dumps(entry.compact()) for entry in listed],
        "shortcuts": convenience_names(entry.sourced for entry in listed),
    }


def _entry(tool_id: str, cell: CellContext) -> Entry:
    """Return the listed entry of an exact id.

    Raises:
        CallError: `unknown_tool`, with at most three suggestions; an MCP id is as unknown as any.
    """
    entry = cell.view.by_id.get(tool_id)
    if entry is not None:
        return entry
    shown = tool_id[:256]
    try:
        found = cell.catalog.resolve(tool_id)
    except CallError as error:
        raise CallError(error.message + ADVICE, code=_code(error), effect="none") from None
    del found  # an MCP tool, or one that appeared after the cell began
    raise unknown(f"Unknown tool id: {shown}." + ADVICE)


def _code(error: CallError) -> Any:
    return error.code


def _check(arguments: list[Any], cell: CellContext) -> None:
    entry = cell.view.by_id.get(text_at(arguments, 0))
    if cell.restart_safe and entry is not None:
        cell.catalog.require_replay_safe(entry)


async def _value(arguments: list[Any], cell: CellContext) -> str:
    return await call_value(_entry(text_at(arguments, 0), cell), _input(arguments), cell)


async def _call(arguments: list[Any], cell: CellContext) -> str:
    entry = _entry(text_at(arguments, 0), cell)
    result = await call_tool(entry, _input(arguments), cell)
    return dumps({"tool": entry.compact(), "result": result.to_dict()})


def _input(arguments: list[Any]) -> Any:
    return arguments[1] if len(arguments) > 1 else {}


def _describe(arguments: list[Any], cell: CellContext) -> Json:
    entry = _entry(text_at(arguments, 0), cell)
    if not entry.sourced.trusted:
        cell.untrusted = True
    return cell.catalog.describe(entry)


def _searching(default_limit: int, max_limit: int) -> Answering:
    def search(arguments: list[Any], cell: CellContext) -> Json:
        given = arguments[1] if len(arguments) > 1 else default_limit
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            msg = "limit must be a positive integer."
            raise bad_input(msg)
        # All that may be asked for is ranked, so that MCP hits take no native one's place.
        query = arguments[0] if arguments else None
        hits = cell.catalog.search(query, limit=max_limit)
        native = [hit.entry.compact() for hit in hits if hit.entry.id in cell.view.by_id]
        return found(query, native[: min(given, max_limit)], cell)

    return Answering(search)


def tools_extension(*, default_limit: int, max_limit: int) -> GuestExtension:
    """Return the extension; the limits are `searchDefaultLimit` and `maxSearchLimit`."""
    return GuestExtension(
        name="tools",
        script=prelude("tools"),
        data=_data,
        handlers={
            "search": _searching(default_limit, max_limit),
            "describe": Answering(_describe),
            "call": Calling(_call, _check),
            "callValue": Calling(_value, _check),
        },
    )
