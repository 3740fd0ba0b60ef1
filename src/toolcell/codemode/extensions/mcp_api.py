"""Owns `$api`: what a guest is told about MCP functions as data (BEHAVIOURS 230, 231).

No tool is called and nothing is counted. Above: the MCP extension. Below: `declarations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolcell.base.jsontext import Json
from toolcell.catalog.entry import Entry
from toolcell.codemode.declarations.remote import declared_server
from toolcell.codemode.extensions.calling import bad_input, text_at, unknown
from toolcell.codemode.extensions.contract import CellContext
from toolcell.codemode.view import GuestView

KIND = "mcp_api"


def answer_root(_arguments: list[Any], cell: CellContext) -> Json:
    """Return the servers: `{kind, scope, servers: [{identifier, serverName, toolCount}]}`."""
    servers = [
        {
            "identifier": name,
            "serverName": _server_name(name, cell.view),
            "toolCount": sum("." not in method for method in methods),
        }
        for name, methods in cell.view.servers.items()
    ]
    return {"kind": KIND, "scope": "root", "servers": servers}


def answer_server(arguments: list[Any], cell: CellContext) -> Json:
    """Return the functions of one server, or the one that is selected.

    Args:
        arguments: Server identifier; a method or raw tool name, or null for all; whether JSON
            Schemas are wanted.
        cell: Who asks.

    Raises:
        CallError: the server or the function is not there.
    """
    server = text_at(arguments, 0)
    selector = arguments[1] if len(arguments) > 1 else None
    if selector is not None and not isinstance(selector, str):
        msg = "$api takes a function name or nothing."
        raise bad_input(msg)
    entries = _of(server, cell.view)
    chosen = entries if selector is None else _selected(entries, selector)
    if not chosen:
        names = ", ".join(_method(entry) for entry in entries[:8])
        msg = f"Unknown MCP function: MCP.{server}.{selector}. Its functions begin with: {names}."
        raise unknown(msg)
    cell.untrusted = True
    out: dict[str, Any] = {
        "kind": KIND,
        "scope": "server" if selector is None else "tool",
        "server": server,
        "serverName": _server_name(server, cell.view),
        "header": declared_server(server, list(chosen)),
        "tools": [_told(entry) for entry in chosen],
    }
    if len(arguments) > 2 and arguments[2] is True:
        out["schemas"] = {_method(entry): entry.sourced.tool.parameters for entry in chosen}
    return out


def _of(server: str, view: GuestView) -> list[Entry]:
    return [view.remote[(server, method)] for method in view.servers.get(server, ())]


def _selected(entries: Sequence[Entry], selector: str) -> list[Entry]:
    """The method name wins over the raw tool name."""
    by_method = [entry for entry in entries if _method(entry) == selector]
    return by_method or [entry for entry in entries if _raw(entry) == selector][:1]


def _method(entry: Entry) -> str:
    return entry.mcp_path[1] if entry.mcp_path is not None else entry.name


def _raw(entry: Entry) -> str:
    return entry.sourced.mcp.tool if entry.sourced.mcp is not None else entry.name


def _told(entry: Entry) -> dict[str, Any]:
    mcp = entry.sourced.mcp
    return {
        "method": _method(entry),
        "path": entry.guest_name,
        "mcpTool": _raw(entry),
        "operation": mcp.operation if mcp is not None else "tool",
        "description": entry.description,
    }


def _server_name(server: str, view: GuestView) -> str:
    entries = _of(server, view)
    return entries[0].sourced.owner if entries else server
