"""Owns the inverted index of a set of document texts, and views of it over what may be seen.

Above: the searcher. Below: `analysis`, `documents`. Refuses to know: entries, executors, queries.
BM25F: term frequencies are weighted by field and summed before they saturate.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from toolcell.catalog.search.analysis import terms
from toolcell.catalog.search.documents import DocumentText

K1: Final = 1.2
B: Final = 0.6
FIELD_WEIGHTS: Final = (2.0, 1.5, 1.0, 1.0, 0.5)
"""In the order of `DocumentText`: name, owner, description, parameters, parameter texts."""
STAND_IN_COVERAGE: Final = 0.5
_MOST_VIEWS: Final = 8


class Index:
    """Term frequencies of documents, numbered as given."""

    def __init__(self, texts: tuple[DocumentText, ...]) -> None:
        self.names: list[tuple[str, ...]] = []
        self.lengths: list[float] = []
        self.documents: dict[str, array[int]] = {}
        self.frequencies: dict[str, array[float]] = {}
        for number, text in enumerate(texts):
            self._add(number, text)
        self._views: dict[bytes, View] = {}

    def _add(self, number: int, text: DocumentText) -> None:
        frequency: dict[str, float] = {}
        length = 0.0
        for field, weight in zip(text, FIELD_WEIGHTS, strict=True):
            found = terms(field)
            length += weight * len(found)
            for term in found:
                frequency[term] = frequency.get(term, 0.0) + weight
        self.names.append(tuple(dict.fromkeys(terms(text.name))))
        self.lengths.append(length)
        documents, frequencies = self.documents, self.frequencies
        for term, value in frequency.items():
            if term not in documents:
                documents[term] = array("l")
                frequencies[term] = array("d")
            documents[term].append(number)
            frequencies[term].append(value)

    def view(self, visible: bytes) -> View:
        """Return the view over the documents whose byte in `visible` is 1; kept while in use."""
        view = self._views.get(visible)
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            view = self._views[visible] = View(self, visible)
        return view


class View:
    """The statistics and weights of an index over the visible documents alone (rule 4.5).

    Weights of a term are worked out when it is first asked for.
    """

    def __init__(self, index: Index, visible: bytes) -> None:
        self._index = index
        self._visible = visible
        self._everything = 0 not in visible
        self.count = sum(visible)
        lengths = index.lengths
        total = sum(length for length, seen in zip(lengths, visible, strict=True) if seen)
        average = total / self.count if total else 1.0
        self._norms = [K1 * (1 - B + B * length / average) for length in lengths]
        self._weights: dict[str, dict[int, float]] = {}
        self._idf: dict[str, float] = {}
        self._names: dict[int, tuple[tuple[tuple[str, float], ...], float]] = {}

    def weights(self, term: str) -> dict[int, float]:
        """Return the saturated frequency of `term` by document; empty when none has it."""
        found = self._weights.get(term)
        if found is None:
            if term not in self._index.documents:
                return {}
            found = self._weights[term] = self._weigh(term)
        return found

    def _weigh(self, term: str) -> dict[int, float]:
        norms, visible = self._norms, self._visible
        pairs = zip(self._index.documents[term], self._index.frequencies[term], strict=True)
        if self._everything:
            return {doc: tf * (K1 + 1) / (tf + norms[doc]) for doc, tf in pairs}
        return {doc: tf * (K1 + 1) / (tf + norms[doc]) for doc, tf in pairs if visible[doc]}

    def has(self, term: str) -> bool:
        """Whether any visible document has `term`."""
        if self._everything:
            return term in self._index.documents
        return bool(self.weights(term))

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of `term` among the visible documents."""
        value = self._idf.get(term)
        if value is None:
            if self._everything:
                seen = len(self._index.documents.get(term, ()))
            else:
                seen = len(self.weights(term))
            value = self._idf[term] = math.log(1 + (self.count - seen + 0.5) / (seen + 0.5))
        return value

    def name_coverage(
        self, document: int, literal: AbstractSet[str], expansions: AbstractSet[str]
    ) -> float:
        """Return how much of the name's weight the asked terms cover, 0 to 1; stand-ins half."""
        held = self._names.get(document)
        if held is None:
            weighted = tuple((term, self.idf(term)) for term in self._index.names[document])
            held = self._names[document] = (weighted, sum(idf for _, idf in weighted))
        weighted, total = held
        covered = 0.0
        for term, idf in weighted:
            if term in literal:
                covered += idf
            elif term in expansions:
                covered += STAND_IN_COVERAGE * idf
        return covered / total if total else 0.0


@lru_cache(maxsize=4)
def index_of(texts: tuple[DocumentText, ...]) -> Index:
    """Return the index of `texts`; equal content shares one index (rule 4.5)."""
    return Index(texts)
