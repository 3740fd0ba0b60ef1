"""Owns `toolcell replay`: the cells of an exported session, run again offline.

Above: `cli.main`. Below: `app.replay`, `sessions.bundle`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from toolcell.app.executors import Executors
from toolcell.app.replay import DEFAULT_SECONDS, CellReport, replay_cell
from toolcell.base.identifiers import digest
from toolcell.cli.console import DONE, FAILED, Progress, print_json, print_text, printable
from toolcell.cli.options import SHARED, Shared
from toolcell.errors import ConfigError, SessionError
from toolcell.sessions.bundle import BundleReader


def replay(
    bundle: Path,
    *,
    cell: str | None = None,
    timeout: float = DEFAULT_SECONDS,
    shared: Shared = SHARED,
) -> int:
    """Run the cells of a trajectory bundle again, on QuickJS, against what is on record.

    No tool runs and no model is asked. Exit code 1 when a cell does something else than on record.

    Args:
        bundle: A folder or `.zip` that `toolcell sessions export-trajectory` wrote.
        cell: Only this cell.
        timeout: Seconds for each step of a cell.
        shared: Options of every command.
    """
    reader = BundleReader(bundle)
    cells = [each for each in reader.lines("cells.jsonl") if isinstance(each, dict)]
    if cell is not None:
        cells = [each for each in cells if each.get("cellId") == cell]
        if not cells:
            msg = f"no cell {cell!r} in this bundle; leave out --cell to see them all"
            raise ConfigError(msg)
    progress = Progress()

    async def run() -> list[CellReport]:
        executors = Executors(on_progress=progress.say)
        try:
            executor = executors.get("quickjs")
            return [
                await replay_cell(each, _image(reader, each), executor, seconds=timeout)
                for each in cells
            ]
        finally:
            await executors.aclose()

    with progress.running("replaying"):
        reports = anyio.run(run)
    _show(reader, reports, as_json=shared.json)
    return FAILED if any(report.status == "differs" for report in reports) else DONE


def _image(reader: BundleReader, cell: dict[str, Any]) -> str:
    name = f"artifacts/{digest(str(cell.get('image')))}.image"
    try:
        return reader.text(name)
    except SessionError:
        # A cell without its image is reported as skipped.
        return ""


def _show(reader: BundleReader, reports: list[CellReport], *, as_json: bool) -> None:
    if as_json:
        session = reader.manifest.get("session")
        print_json({"session": session, "cells": [report.to_dict() for report in reports]})
        return
    for report in reports:
        steps = f"{report.steps} step{'' if report.steps == 1 else 's'}"
        detail = f": {report.detail}" if report.detail else ""
        line = f"{report.status:8} {report.cell_id} ({steps}){detail}"
        print_text(printable(line).replace("\n", " "))
    if not reports:
        print_text("no cell is on record in this bundle")
