"""Owns the hint for a program that used something that is not there: a name, a method, a server.

Said after the fact and never before, so that prompts name nothing a run does not have (BEHAVIOURS
52 and 368). Of tools it names only those that are visible now.

Above: cells. Below: `absent_names`, the cell's view and catalog. Refuses to know: engines, budgets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from toolcell.catalog.entry import Entry
from toolcell.catalog.names import convenience_names
from toolcell.catalog.reserved import TOOLS_METHODS
from toolcell.codemode.absent_names import ABSENT, CATALOG_ONLY, MEMBERS, OTHER_API
from toolcell.codemode.extensions.contract import CellContext
from toolcell.errors import CallError
from toolcell.execution.contract import GuestError

FRESH: Final = (
    "Nothing of that name exists in this cell. Variables of an earlier exec are gone; tools are "
    "found with {search}"
)
MEANT: Final = "Did you mean: {names}?"
MCP_METHOD: Final = "MCP.{server} has no such tool; await MCP.{server}.$api() lists what it has"
NO_SERVER: Final = "No MCP server of that name is connected to this run{others}"
NO_SERVERS: Final = "No MCP server is connected to this run (mcp.servers in the configuration)"
NO_SHORTCUT: Final = "tools has no function of that name; {search} finds exact ids"
PROMISE: Final = (
    "A call gives a promise: put await and parentheses around it, as in "
    "(await {search}).{method}(...)"
)

_MAX_SERVERS: Final = 8
_MAX_SHOWN: Final = 100
_AROUND: Final = 300
_WORD: Final = r"[A-Za-z_$][\w$]*+"
_UNDEFINED: Final = re.compile(rf"'?({_WORD})'? is not defined")
_NO_FUNCTION: Final = re.compile(rf"(?:({_WORD}(?:\.{_WORD})+) is )?not a function")
_OF_A_CALL: Final = re.compile(rf".{{0,200}}\(\.\.\.\)\.({_WORD}) is not a function")
_OF_UNDEFINED: Final = re.compile(
    rf"[Cc]annot read propert(?:y|ies) (?:'{_WORD}' )?of undefined(?: \(reading '{_WORD}'\))?"
)
_PATH: Final = re.compile(rf"(?<![\w$.]){_WORD}(?:\.{_WORD})+")
# A method of a named object, or of what a call gave.
_CALLED: Final = re.compile(rf"(?:(?<![\w$.])({_WORD}(?:\.{_WORD})+)|\)\.({_WORD}))(?=\s*+\()")
_LIST_METHODS: Final = frozenset(
    {"map", "filter", "find", "forEach", "reduce", "slice", "some", "every", "join", "sort",
     "flatMap", "push", "includes"}
)  # fmt: skip


def hint(error: GuestError, source: str, cell: CellContext) -> str:
    """Return the hint for an uncaught error, or nothing.

    Args:
        error: As the guest left it; a program may make one up, and gets the hint for it.
        source: The program.
        cell: Whose view and catalog say what there is.
    """
    try:
        said = _said(error, source, cell)
    except CallError:  # the run ended meanwhile, and its catalog with it
        said = ""
    return f"\nHint: {said}" if said else ""


def _said(error: GuestError, source: str, cell: CellContext) -> str:
    message = error.message[: 2 * _AROUND]
    if error.name == "ReferenceError":
        found = _UNDEFINED.fullmatch(message)
        return _of_name(found[1], source, cell) if found else ""
    return _of_member(message, error, source, cell) if error.name == "TypeError" else ""


def _of_name(name: str, source: str, cell: CellContext) -> str:
    here = _spelt(cell)
    visible = [entry for entry in cell.catalog.entries() if entry.name == name]
    if visible:
        return _meant(visible, cell)
    if cell.view.guest_api == "tools" and name in CATALOG_ONLY:
        return OTHER_API.format(name=name) + "."
    called = re.search(rf"(?<![\w$.]){re.escape(name)}\s*+\(", source) is not None
    meant = _meant(cell.catalog.guesses.near(name, by_meaning=called), cell)
    said = ABSENT.get(name, "" if meant else FRESH)
    if name == "mcp" and not cell.view.servers:
        said = NO_SERVERS
    return " ".join(part for part in (here(said + "." if said else ""), meant) if part)


def _of_member(message: str, error: GuestError, source: str, cell: CellContext) -> str:
    if _OF_UNDEFINED.fullmatch(message):
        return _of_server(_path_at(error, source).split("."), cell)
    of_call = _OF_A_CALL.fullmatch(message)
    if of_call is not None:
        return _of_promise(of_call[1], cell)
    missing = _NO_FUNCTION.fullmatch(message)
    if missing is None:
        return ""
    path, method = (missing[1], "") if missing[1] else _called_at(error, source)
    return _of_promise(method, cell) if method else _of_path(path.split("."), cell)


def _of_path(parts: list[str], cell: CellContext) -> str:
    """Return the hint for a method that a global does not have."""
    root, method = parts[0], parts[-1]
    if root == "tools" and len(parts) == 2 and method not in TOOLS_METHODS:
        named = [e for e in cell.catalog.entries() if e.name == method and e.id in cell.view.by_id]
        near = named or cell.catalog.guesses.near(method, by_meaning=True)
        return f"{_spelt(cell)(NO_SHORTCUT)}. {_meant(near, cell)}".rstrip()
    if root == "MCP" and len(parts) > 2 and parts[1] in cell.view.servers:
        keep = partial(_of, parts[1])
        near = cell.catalog.guesses.near(method, by_meaning=True, keep=keep)
        return f"{MCP_METHOD.format(server=parts[1])}. {_meant(near, cell)}".rstrip()
    if root in MEMBERS and len(parts) == 2 and not (_tools_api(cell) and root in CATALOG_ONLY):
        return MEMBERS[root].format() + "."
    return ""


def _of(server: str, entry: Entry) -> bool:
    return entry.mcp_path is not None and entry.mcp_path[0] == server


def _of_server(parts: list[str], cell: CellContext) -> str:
    """Return the hint for `MCP.<server>` that is not there."""
    if parts[0] != "MCP" or len(parts) < 2 or parts[1] in cell.view.servers:
        return ""
    servers = list(cell.view.servers)[:_MAX_SERVERS]
    if not servers:
        return NO_SERVERS + "."
    return NO_SERVER.format(others=f"; connected: {', '.join(servers)}") + "."


def _of_promise(method: str, cell: CellContext) -> str:
    if method not in _LIST_METHODS:
        return ""
    return PROMISE.format(search=_search(cell), method=method) + "."


def _line(error: GuestError, source: str) -> tuple[str, int]:
    """Return the source around the place of an error, and where in it that place is."""
    lines = source.split("\n")
    if error.line is None or error.column is None or not 0 < error.line <= len(lines):
        return "", 0
    at = error.column - 1
    start = max(0, at - _AROUND)
    return lines[error.line - 1][start : at + _AROUND], at - start


def _path_at(error: GuestError, source: str) -> str:
    """Return the dotted path that an error points into."""
    text, at = _line(error, source)
    return next((m[0] for m in _PATH.finditer(text) if m.start() <= at <= m.end()), "")


def _called_at(error: GuestError, source: str) -> tuple[str, str]:
    """Return the dotted path that is called where an error points, or the method of a call.

    The engine may point at an argument; so it is the last call that begins before.
    """
    text, at = _line(error, source)
    path = method = ""
    for found in _CALLED.finditer(text):
        if found.start() > at:
            break
        path, method = found[1] or "", found[2] or ""
    return path, method


def _meant(entries: Sequence[Entry], cell: CellContext) -> str:
    """Return `Did you mean: …?` with what a program would write, or nothing."""
    call = _caller(cell)
    names = [name for entry in entries[:3] if (name := call(entry)) is not None]
    return MEANT.format(names=", ".join(names)) if names else ""


def _caller(cell: CellContext) -> Callable[[Entry], str | None]:
    """Return how a program of this cell spells the call of a tool; None for one it cannot show."""
    shortcuts = (
        {
            i: name
            for name, i in convenience_names(e.sourced for e in cell.view.by_id.values()).items()
        }
        if _tools_api(cell)
        else {}
    )

    def spelt(entry: Entry) -> str | None:
        name = entry.guest_name
        if _tools_api(cell) and entry.mcp_path is None:
            short = shortcuts.get(entry.id)
            name = f'tools.callValue("{entry.id}", {{...}})' if short is None else f"tools.{short}"
        return None if name is None or len(name) > _MAX_SHOWN else name

    return spelt


def _tools_api(cell: CellContext) -> bool:
    return cell.view.guest_api == "tools"


def _search(cell: CellContext) -> str:
    return f"{cell.view.search_call}(...)"


def _spelt(cell: CellContext) -> Callable[[str], str]:
    call = "await tools.<name>({...})" if _tools_api(cell) else "await <name>({...})"
    return lambda text: text.format(search=_search(cell), call=call) if text else text
