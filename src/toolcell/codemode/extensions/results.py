"""Owns `results.save/load/delete` in guest code (catalog API).

Above: the sets of guest APIs. Below: `codemode.saved`. Provenance follows a result: what was saved
by a cell that had seen the network makes the cell that loads it untrusted, too (rule 4.9).
"""

from __future__ import annotations

from typing import Any

from toolcell.base.jsontext import Json, dumps, loads
from toolcell.codemode.extensions.calling import text_at
from toolcell.codemode.extensions.contract import (
    Answering,
    CellContext,
    GuestExtension,
    prelude,
)


def _save(arguments: list[Any], cell: CellContext) -> Json:
    text = dumps(arguments[0] if arguments else None)
    return cell.saved.save(
        cell.scope, text, untrusted=cell.untrusted, allowance=cell.saved_allowance
    )


def _load(arguments: list[Any], cell: CellContext) -> Json:
    found = cell.saved.load(cell.scope, text_at(arguments, 0))
    cell.untrusted = cell.untrusted or found.untrusted
    return loads(found.text)


def _delete(arguments: list[Any], cell: CellContext) -> Json:
    cell.saved.delete(cell.scope, text_at(arguments, 0))
    return None


def results_extension() -> GuestExtension:
    """Return the extension."""
    return GuestExtension(
        name="results",
        script=prelude("results"),
        handlers={
            "results.save": Answering(_save),
            "results.load": Answering(_load),
            "results.delete": Answering(_delete),
        },
    )
