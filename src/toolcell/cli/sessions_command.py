"""Owns `toolcell sessions`: what was kept of earlier runs.

Above: `cli.main`. Below: `sessions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
from cyclopts import App, Parameter
from cyclopts.validators import Number

from toolcell.app.compacting import compact_session
from toolcell.app.settings import (
    endpoints_of,
    mcp_servers_of,
    secret_values_of,
    sessions_path_of,
)
from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.base.masking import Masker
from toolcell.cli.calltree import compaction_line, tool_use_lines, tree_lines
from toolcell.cli.console import DONE, print_json, print_table, print_text, printable
from toolcell.cli.options import SHARED, Shared
from toolcell.sessions.bundle import write_bundle
from toolcell.sessions.store import SessionStore
from toolcell.sessions.tool_use import tool_use
from toolcell.sessions.trajectory import trajectory

T = TypeVar("T")
app = App(name="sessions", help="What was kept of earlier runs.")


@app.command(name="list")
def list_(
    *, limit: Annotated[int, Parameter(validator=Number(gte=1))] = 20, shared: Shared = SHARED
) -> int:
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
def show(
    session_id: str,
    *,
    tools: Annotated[bool, Parameter(negative="")] = False,
    shared: Shared = SHARED,
) -> int:
    """Show one session: its conversation, and nested calls under their parent.

    Args:
        session_id: The session.
        tools: Show what each run did with tools instead: how many schemas the model saw up front,
            how often it searched and described, which tools were called in the end, from where.
        shared: Options of every command.
    """
    if tools:
        use = tool_use(_read(shared, lambda store: store.trace(session_id)))
        if shared.json:
            print_json(use)
            return DONE
        for run in use["runs"]:
            for line in tool_use_lines(run):
                print_text(printable(line))
        return DONE
    document = _read(shared, lambda store: store.show(session_id))
    if shared.json:
        print_json(document)
        return DONE
    for entry in document["transcript"]:
        if entry["type"] == "message":
            print_text(printable(f"{entry.get('role')}: {_said(entry)}"))
        elif entry["type"] == "compacted":
            print_text(printable(f"[{compaction_line(entry)}] {entry['summary']}"))
    for line in tree_lines(document["calls"]):
        print_text(line)
    return DONE


@app.command
def compact(
    session_id: str,
    *,
    model: str | None = None,
    shared: Shared = SHARED,
) -> int:
    """Put a summary in the place of a session's older messages, for the model; none is deleted.

    The newest messages stay as they are (`compaction.keepRecentTokens` of the agent), and so does
    what a turn that was cut off needs to be rebuilt. Runs do this by themselves when a conversation
    gets too long.

    Args:
        session_id: The session.
        model: `provider/model` that writes the summary; the agent's own when absent.
        shared: Options of every command.
    """
    config = shared.load()
    asked = partial(compact_session, config, session_id=session_id, model=model)
    done = _read(shared, asked)
    if shared.json:
        print_json({"sessionId": session_id, "compacted": done})
    elif done is None:
        print_text(f"{session_id}: nothing to compact; its messages are all recent enough to stay")
    else:
        print_text(printable(f"{session_id}: {compaction_line(done)}\n{done['summary']}"))
    return DONE


def _said(entry: dict[str, Any]) -> str:
    images = [f"[image {each['mimeType']}]" for each in entry.get("images", ())]
    return " ".join(filter(None, [entry.get("text"), *images])) or "(tool calls)"


@app.command(name="export-trajectory")
def export_trajectory(
    session_id: str,
    *,
    out: Annotated[Path | None, Parameter(name="--out")] = None,
    shared: Shared = SHARED,
) -> int:
    """Write a session as a bundle to pass on: bounded, with secrets masked.

    `toolcell replay` runs its cells again offline. Prompts and results stay readable: look through
    it before you hand it on.

    Args:
        session_id: The session.
        out: A new or empty folder, or a new `.zip`; default `trajectory-<session>.zip`.
        shared: Options of every command.
    """
    config = shared.load()
    endpoints, servers = endpoints_of(config), mcp_servers_of(config)
    masker = Masker(secret_values_of(config, endpoints, servers))
    trace = _read(shared, lambda store: store.trace(session_id))
    bundle = trajectory(trace, masker, at=SYSTEM_CLOCK.wall())
    safe = "".join(char if char.isalnum() or char in "-_" else "_" for char in session_id)
    target = out if out is not None else Path(f"trajectory-{safe[:100]}.zip")
    write_bundle(bundle, target)
    size = sum(map(len, bundle.files.values()))
    if shared.json:
        print_json(
            {
                "path": str(target),
                "files": sorted(bundle.files),
                "bytes": size,
                "omitted": dict(bundle.omitted),
            }
        )
        return DONE
    left = ", ".join(f"{count} of {name}" for name, count in bundle.omitted.items())
    omitted = f"; left out: {left}" if left else ""
    print_text(f"{target}: {len(bundle.files)} files, {size} bytes{omitted}")
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
