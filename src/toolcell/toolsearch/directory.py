"""Owns the directory of `directory` mode: names and descriptions, bounded, equal each turn.

Only what local code wrote gets in; remote tools are found by search (rule 10.4, BEHAVIOURS 347-352,
REPORTS PP-07). Sorted by code point, unlike every other listing.

Above: the runtime. Below: `catalog.entry`. Refuses to know: schemas, the user's message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from toolcell.base.untrusted import without_control_tokens
from toolcell.catalog.entry import Entry
from toolcell.toolsearch.description import (
    DIRECTORY_HEAD,
    DIRECTORY_HOW,
    DIRECTORY_MORE,
    DIRECTORY_NONE,
    NO_DESCRIPTION,
)
from toolcell.toolsearch.searching import clipped

MAX_CHARS: Final = 18_000
LEAST_CHARS: Final = 768
CONTEXT_SHARE: Final = 10
_LEVELS: Final = (180, 64, 0)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_BLANKS: Final = re.compile(r"\s+")


def directory_limit(context_tokens: int | None) -> int:
    """Return how many characters the directory may take in a model's context window."""
    if context_tokens is None:
        return MAX_CHARS
    return min(MAX_CHARS, max(LEAST_CHARS, context_tokens // CONTEXT_SHARE))


def directory(
    entries: Iterable[Entry], *, shown: Collection[str] = (), limit: int = MAX_CHARS
) -> str:
    """Return the directory's text.

    Args:
        entries: The visible catalog.
        shown: Ids of tools that the model sees with their schemas in every turn.
        limit: Characters it may take.
    """
    everything = list(entries)
    hidden = [entry for entry in everything if entry.id not in shown]
    if not hidden:
        return DIRECTORY_NONE
    names = Counter(entry.name for entry in everything)
    listed = sorted(
        (e for e in hidden if e.sourced.trusted and names[e.name] == 1 and _NAME.fullmatch(e.name)),
        key=lambda entry: entry.name,
    )
    described = [(entry, _description(entry)) for entry in listed]
    for level in _LEVELS:
        rows = [_row(entry, text, level) for entry, text in described]
        text = _text(rows, len(hidden) - len(rows))
        if len(text) <= limit:
            return text
    return _fitting(rows, len(hidden), limit)


def _fitting(rows: Sequence[str], hidden: int, limit: int) -> str:
    """Return the first rows that fit; the frame counts what every row left out adds to it."""
    room = limit - len(_text((), hidden))
    kept = 0
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept += 1
    return _text(rows[:kept], hidden - kept)


def _text(rows: Sequence[str], omitted: int) -> str:
    more = (f"{omitted} additional tools omitted.",) if omitted else ()
    return "\n".join((DIRECTORY_HEAD, *rows, DIRECTORY_MORE, *more, DIRECTORY_HOW))


def _row(entry: Entry, description: str, level: int) -> str:
    head = f"- {entry.name} ({entry.sourced.owner})"
    return f"{head}: {clipped(description, level)}" if level else head


def _description(entry: Entry) -> str:
    text = without_control_tokens(entry.description[: _LEVELS[0] * 8])
    return _BLANKS.sub(" ", text).strip() or NO_DESCRIPTION
