"""Owns what the caller of a tool that does not exist may have meant (rule 4.4, BEHAVIOURS 330).

Above: `calls.access`, code mode's hints. Below: `catalog`, `schema.nearest`. Refuses to know: who
may see what; it is given what is visible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from toolcell.catalog.entry import Entry, Hit
from toolcell.schema.nearest import allowance, edit_distance

_MAX_SUGGESTIONS: Final = 3
_MAX_NAME: Final = 256
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.:/@$-]{1,128}")
_WORD: Final = re.compile(r"[^\W_]+")


class Guesses:
    """Guesses among the tools that are visible when it is asked.

    Args:
        entries: Gives what is visible.
        search: Gives the hits of a query among that, best first.
    """

    __slots__ = ("_entries", "_search")

    def __init__(
        self, entries: Callable[[], Iterable[Entry]], search: Callable[[str], Iterable[Hit]]
    ) -> None:
        self._entries = entries
        self._search = search

    def near(
        self,
        name: str,
        *,
        by_meaning: bool = True,
        keep: Callable[[Entry], bool] | None = None,
    ) -> tuple[Entry, ...]:
        """Return at most three entries.

        By meaning first, unless one of those is the name with a slip; then by spelling alone.

        Args:
            name: A name, without the parts of an id before it.
            by_meaning: False for the spelling alone.
            keep: Which entries may be named; None for all.
        """
        name = name[:_MAX_NAME]
        words = _WORD.findall(name.casefold())
        found: list[Entry] = []
        if by_meaning:
            hits = (hit.entry for hit in self._search(" ".join(words)))
            found = [entry for entry in hits if _nameable(entry, keep)]
        literal = [entry for entry in found if _speaks_of(entry, words)]
        found = _spelt_like(name, found) or literal or found
        if not found:
            found = _spelt_like(name, (e for e in self._entries() if _nameable(e, keep)))
        return tuple(found[:_MAX_SUGGESTIONS])


def _nameable(entry: Entry, keep: Callable[[Entry], bool] | None) -> bool:
    return _PLAIN_NAME.fullmatch(entry.id) is not None and (keep is None or keep(entry))


def _speaks_of(entry: Entry, words: Iterable[str]) -> bool:
    text = f"{entry.name} {entry.description}".casefold()
    return any(word.removesuffix("s") in text for word in words)


def _spelt_like(name: str, entries: Iterable[Entry]) -> list[Entry]:
    reach = allowance(name)
    near = [entry for entry in entries if abs(len(entry.name) - len(name)) <= reach]
    scored = [(edit_distance(name.casefold(), entry.name.casefold()), entry) for entry in near]
    scored.sort(key=lambda pair: (pair[0], pair[1].id))
    return [entry for edits, entry in scored if edits <= reach]
