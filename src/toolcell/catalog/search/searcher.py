"""Owns a search over the entries of one snapshot: exact names, then ranked hits, then a reranker.

Above: `catalog.snapshot`. Below: `index`, `query`, `ranking`. Refuses to know: who may see what;
a caller says it with `visible`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from toolcell.catalog.entry import Entry, Hit
from toolcell.catalog.order import sort_key
from toolcell.catalog.search.documents import document_text
from toolcell.catalog.search.index import Index, index_of
from toolcell.catalog.search.query import parse
from toolcell.catalog.search.ranking import rank

Visible: TypeAlias = Callable[[Entry], bool]
Reranker: TypeAlias = Callable[[str, Sequence[Hit]], Sequence[Hit]]
"""Given the query and the ranked hits, returns the hits in the order it prefers."""

RERANKED: Final = 50


class Searcher:
    """Searches fixed entries. Nothing is read or built before the first search."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._given = entries

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        """The entries in order of id, which is the order of equal scores (BEHAVIOURS 317)."""
        return tuple(sorted(self._given, key=lambda entry: sort_key(entry.id)))

    @cached_property
    def _index(self) -> Index:
        return index_of(tuple(document_text(entry) for entry in self._entries))

    @cached_property
    def _exact(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Documents by exact spelling of id and names, and by name in any case."""
        spelled: dict[str, list[int]] = {}
        folded: dict[str, list[int]] = {}
        for number, entry in enumerate(self._entries):
            names = {entry.name, entry.guest_name or entry.name}
            for name in {entry.id, *names}:
                spelled.setdefault(name, []).append(number)
            for name in {name.casefold() for name in names}:
                folded.setdefault(name, []).append(number)
        return spelled, folded

    def search(
        self,
        query: str,
        *,
        limit: int,
        visible: Visible | None = None,
        reranker: Reranker | None = None,
    ) -> tuple[Hit, ...]:
        """Return at most `limit` hits, best first.

        An exact id, name or callable name comes first; then tools with a literal word of the query,
        then those with a word that stands for one; equal scores by id. Blank or unknown words give
        nothing. `visible` is asked on every search, and hidden tools do not touch the statistics.

        Raises:
            ValueError: `limit` is below 1, or the reranker gave back a hit that it was not given.
        """
        if limit < 1:
            message = "limit must be a positive integer."
            raise ValueError(message)
        wanted = query.strip()
        if not wanted or not self._given:
            return ()
        flags = self._flags(visible)
        exact = self._exact_hits(wanted, flags)
        if len(exact) >= limit:
            return tuple(exact[:limit])
        skip = {hit.entry.id for hit in exact}
        depth = limit if reranker is None else max(limit, RERANKED)
        ranked = rank(self._index.view(flags), parse(wanted), depth + len(skip))
        hits: Sequence[Hit] = [
            Hit(entry=self._entries[number], score=score)
            for number, score in ranked
            if self._entries[number].id not in skip
        ]
        if reranker is not None:
            hits = _rerank(reranker, query, hits[:depth])
        return tuple([*exact, *hits][:limit])

    def _flags(self, visible: Visible | None) -> bytes:
        if visible is None:
            return b"\x01" * len(self._entries)
        return bytes([1 if visible(entry) else 0 for entry in self._entries])

    def _exact_hits(self, wanted: str, flags: bytes) -> list[Hit]:
        """Return the tools of exactly this id or name; an exact spelling beats another case."""
        spelled, folded = self._exact
        for numbers in (spelled.get(wanted, ()), folded.get(wanted.casefold(), ())):
            seen = [number for number in numbers if flags[number]]
            if seen:
                return [Hit(entry=self._entries[n], score=0.0, exact=True) for n in seen]
        return []


def _rerank(reranker: Reranker, query: str, hits: Sequence[Hit]) -> Sequence[Hit]:
    given = {hit.entry.id for hit in hits}
    reranked = list(reranker(query, hits))
    for hit in reranked:
        if hit.entry.id not in given:
            message = f"the reranker returned {hit.entry.id!r}, which it was not given"
            raise ValueError(message)
    return reranked
