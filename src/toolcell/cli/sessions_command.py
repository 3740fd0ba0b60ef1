"""Owns `toolcell sessions`: what was kept of earlier runs.

Above: `cli.main`. Below: `sessions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import anyio
from cyclopts import App

from toolcell.app.settings import sessions_path_of
from toolcell.cli.calltree import tree_lines
from toolcell.cli.console import DONE, print_json, print_table, print_text, printable
from toolcell.cli.options import SHARED, Shared
from toolcell.sessions.store import SessionStore

T = TypeVar("T")
app = App(name="sessions", help="What was kept of earlier runs.")


@app.command(name="list")
def list_(*, limit: int = 20, shared: Shared = SHARED) -> int:
    """List sessions, the latest first."""
    found = _read(shared, lambda store: store.list_sessions(limit=limit))
    rows = [info.to_dict() for info in found]
    if shared.json:
        print_json(rows)
        return DONE
    shown = ("sessionId", "agentId", "messages", "runs", "updatedAt")
    print_table(shown, [[_cell(row[key], key) for key in shown] for row in rows])
    return DONE


@app.command
def show(session_id: str, *, shared: Shared = SHARED) -> int:
    """Show one session: its conversation, and nested calls under their parent."""
    document = _read(shared, lambda store: store.show(session_id))
    if shared.json:
        print_json(document)
        return DONE
    for entry in document["transcript"]:
        if entry["type"] == "message":
            print_text(printable(f"{entry.get('role')}: {entry.get('text') or '(tool calls)'}"))
    for line in tree_lines(document["calls"]):
        print_text(line)
    return DONE


def _cell(value: object, key: str) -> str:
    if key.endswith("At") and isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def _read(shared: Shared, read: Callable[[SessionStore], Awaitable[T]]) -> T:
    path = sessions_path_of(shared.load())

    async def run() -> T:
        async with SessionStore(path) as store:
            return await read(store)

    return anyio.run(run)
