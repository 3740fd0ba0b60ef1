"""Owns the few hidden tools whose schemas a turn in `directory` mode is given at once (rule 10.4).

Two kinds: the tools every coding turn needs, which are always the same and so no part of the
directory (REPORTS PP-08), and those that the user's words ask for. Only local code's tools: what a
server says of itself decides nothing about what the model is shown.

Above: the runtime. Below: `calls.access`. Refuses to know: plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from toolcell.base.jsontext import dumps
from toolcell.calls.access import RunCatalog
from toolcell.catalog.entry import Entry
from toolcell.schema.plain import within_bounds

REQUIRED: Final = frozenset({"read", "write", "edit", "apply_patch", "exec"})
"""Core tools for files and the shell: wrapping each call of them would cost more than it saves."""
MAX_LIKELY: Final = 4
MAX_SCHEMA_CHARS: Final = 4000
_PROMPT_CHARS: Final = 512


def required(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the core tools that are always shown with their schemas."""
    return tuple(e for e in entries if e.sourced.owner == "core" and e.name in REQUIRED)


def likely(catalog: RunCatalog, prompt: str, but: Iterable[Entry] = ()) -> tuple[Entry, ...]:
    """Return tools that the user's message asks for; not counted as a search.

    Args:
        catalog: The run's catalog.
        prompt: The message.
        but: Tools that are shown anyway.
    """
    if not prompt.strip():
        return ()
    wanted = prompt[:_PROMPT_CHARS]
    hits = catalog.snapshot.search(wanted, limit=MAX_LIKELY * 2, visible=catalog.is_visible)
    left = set(but)
    found = (hit.entry for hit in hits if hit.entry.sourced.trusted and hit.entry not in left)
    return tuple(_affordable(found))


def _affordable(entries: Iterable[Entry]) -> Iterator[Entry]:
    room, count = MAX_SCHEMA_CHARS, 0
    for entry in entries:
        tool = entry.sourced.tool
        if not within_bounds(tool.parameters):
            continue
        try:
            size = len(dumps(dict(tool.parameters))) + len(tool.description)
        except (TypeError, ValueError, RecursionError):
            continue
        if size <= room and count < MAX_LIKELY:
            room -= size
            count += 1
            yield entry
