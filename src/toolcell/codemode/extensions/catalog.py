"""Owns the catalog API of the guest: bare globals, `catalog.search/all`, handles (rule 4.8).

Above: the sets of guest APIs. Below: `extensions.calling`. Refuses to know: ranking, the gate.
"""

from __future__ import annotations

from typing import Any

from toolcell.base.jsontext import Json, dumps
from toolcell.catalog.entry import Entry
from toolcell.codemode.extensions.calling import call_value, found, text_at, unknown
from toolcell.codemode.extensions.contract import (
    Answering,
    Calling,
    CellContext,
    GuestExtension,
    prelude,
)
from toolcell.codemode.view import GuestView
from toolcell.errors import CallError


def metadata(entry: Entry) -> dict[str, Any]:
    """Return what a handle shows of its tool: no id (rule 4.8)."""
    tool = entry.sourced.tool
    out: dict[str, Any] = {"callableName": entry.guest_name, "toolName": tool.name}
    if tool.label:
        out["label"] = tool.label
    out |= {"description": entry.description, "source": entry.sourced.source, "input": entry.input}
    if entry.output is not None:
        out["output"] = entry.output
    if entry.api_path is not None:
        out["apiPath"] = entry.api_path
    return out


def _data(view: GuestView) -> Json:
    return {
        "native": [[name, dumps(metadata(entry))] for name, entry in view.native.items()],
        "mcp": {
            f"MCP.{server}.{method}": {
                "server": server,
                "method": method,
                "text": dumps(metadata(entry)),
            }
            for (server, method), entry in view.remote.items()
            if entry.guest_name in view.by_guest_name
        },
    }


async def _call(arguments: list[Any], cell: CellContext) -> str:
    name = text_at(arguments, 0)
    entry = cell.view.native.get(name)
    if entry is None:
        raise _no_function(name)
    return await call_value(entry, arguments[1] if len(arguments) > 1 else {}, cell)


def _check(arguments: list[Any], cell: CellContext) -> None:
    entry = cell.view.native.get(text_at(arguments, 0))
    if cell.restart_safe and entry is not None:
        cell.catalog.require_replay_safe(entry)


def _search(arguments: list[Any], cell: CellContext) -> Json:
    query = arguments[0] if arguments else None
    hits = cell.catalog.search(query, limit=arguments[1] if len(arguments) > 1 else None)
    if hits and hits[0].exact:  # only the tool that is meant by its name (BEHAVIOURS 180)
        hits = [hit for hit in hits if hit.exact]
    if any(not hit.entry.sourced.trusted for hit in hits):
        cell.untrusted = True
    names = (hit.entry.guest_name for hit in hits)
    return found(query, [name for name in names if name in cell.view.by_guest_name], cell)


def _describe(arguments: list[Any], cell: CellContext) -> Json:
    name = text_at(arguments, 0)
    entry = cell.view.by_guest_name.get(name) or _operation(name, cell.view)
    if entry is None:
        raise _no_function(name)
    described = cell.catalog.describe(entry)
    if not entry.sourced.trusted:
        cell.untrusted = True
    out = metadata(entry)
    out["parameters"] = described.get("parameters")
    if "outputSchema" in described:
        out["outputSchema"] = described["outputSchema"]
    return out


def _no_function(name: str) -> CallError:
    return unknown(f"Unknown catalog function: {name}.")


def _operation(name: str, view: GuestView) -> Entry | None:
    return next((e for e in view.operations if e.guest_name == name), None)


def catalog_extension() -> GuestExtension:
    """Return the extension; `extensions.mcp` must come before it."""
    return GuestExtension(
        name="catalog",
        script=prelude("catalog"),
        data=_data,
        handlers={
            "callValue": Calling(_call, _check),
            "search": Answering(_search),
            "describe": Answering(_describe),
        },
    )
