"""Owns one nested call as an extension makes it: through the run's catalog, to JSON text.

Above: the catalog, tools and MCP extensions. Below: `extensions.contract`, `errors`.
Refuses to know: policy, hooks and approvals, which the gate applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolcell.base.jsontext import Json, dumps
from toolcell.catalog.entry import Entry
from toolcell.codemode.extensions.contract import CellContext
from toolcell.errors import CallError
from toolcell.tools.content import MISSING, ToolResult

RESTART_SAFE: Final = "restart-safe code mode cannot call namespace tools."


async def call_tool(entry: Entry, arguments: Any, cell: CellContext) -> ToolResult:
    """Run `entry` for the cell.

    Raises:
        CallError: it was refused, or failed.
    """
    try:
        result = await cell.catalog.call(
            entry,
            arguments,
            parent_id=cell.parent_id,
            budget=cell.budget,
            on_update=cell.update,
            replay_safe_only=cell.restart_safe,
        )
    except CallError as error:
        cell.untrusted = cell.untrusted or error.untrusted
        raise
    cell.untrusted = cell.untrusted or result.untrusted
    cell.terminate = cell.terminate or result.terminate
    return result


async def call_value(entry: Entry, arguments: Any, cell: CellContext) -> str:
    """Run `entry` and return its `details` as JSON text; the whole result where it has none."""
    return value_text(await call_tool(entry, arguments, cell))


def refuse_namespaces(_arguments: list[Any], cell: CellContext) -> None:
    """Refuse a namespace call of a restart-safe cell (BEHAVIOURS 211); raises CallError."""
    if cell.restart_safe:
        raise bad_input(RESTART_SAFE)


def value_text(result: ToolResult) -> str:
    """Return what a guest gets for a result (rule 4.8, BEHAVIOURS 157)."""
    value: Json = result.to_dict() if result.details is MISSING else result.details
    return dumps(value)


def found(query: Any, hits: Sequence[Json], cell: CellContext) -> Json:
    """Return a search's answer, with a note on what it might have found (REPORTS SR-12)."""
    asked = query if isinstance(query, str) else ""
    missing = cell.catalog.missing(asked, empty=not hits)
    return {"hits": list(hits), "note": " ".join(missing) or None}


def text_at(arguments: list[Any], index: int) -> str:
    """Return the text argument at `index`; a forged request may have none.

    Raises:
        CallError: `invalid_input`.
    """
    given = arguments[index] if index < len(arguments) else None
    if not isinstance(given, str):
        msg = "a malformed bridge request was refused."
        raise bad_input(msg)
    return given


def unknown(message: str) -> CallError:
    """Return the error for something that is not there; nothing ran."""
    return CallError(message, code="unknown_tool", effect="none")


def bad_input(message: str) -> CallError:
    """Return the error for arguments that were refused; nothing ran."""
    return CallError(message, code="invalid_input", effect="none")
