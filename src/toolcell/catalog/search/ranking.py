"""Owns the order of matching documents: BM25F, name coverage, literal before expansions.

Above: the searcher. Below: `index`, `query`. Refuses to know: entries, limits of tools.
"""

from __future__ import annotations

import heapq
from itertools import islice
from typing import Final

from toolcell.catalog.search.index import View
from toolcell.catalog.search.query import Query

MAX_TERMS: Final = 48
NAME_GAIN: Final = 0.6
_ENOUGH_CANDIDATES: Final = 200
_RESCORED: Final = 64


def rank(view: View, query: Query, limit: int) -> list[tuple[int, float]]:
    """Return at most `limit` `(document, score)`, best first; ties in document order."""
    scores: dict[int, float] = {}
    _accumulate(view, query.literal, scores)
    literal_count = len(scores)
    _accumulate(view, query.expansions, scores)
    asked = query.literal | query.expansions
    ranked = list(scores.items())
    out: list[tuple[int, float]] = []
    for tier in (ranked[:literal_count], ranked[literal_count:]):
        if len(out) < limit:
            out.extend(_best(view, tier, asked, query, limit - len(out)))
    return out


def _accumulate(view: View, asked: dict[str, float], scores: dict[int, float]) -> None:
    """Add the weight of each asked term to the documents that have it, rarest term first.

    Once there are enough candidates a common term only adds to those: it cannot lift a document
    that has none of the rarer ones above them.
    """
    known = ((w * view.idf(t), t) for t, w in asked.items() if view.has(t))
    weighted = sorted(known, key=_by_weight)
    for weight, term in weighted[:MAX_TERMS]:
        weights = view.weights(term)
        get = scores.get
        if len(scores) < _ENOUGH_CANDIDATES or len(weights) < _ENOUGH_CANDIDATES // 2:
            for document, value in weights.items():
                scores[document] = get(document, 0.0) + value * weight
        elif len(weights) > len(scores):
            for document, held in scores.items():
                found = weights.get(document)
                if found is not None:
                    scores[document] = held + found * weight
        else:
            for document, value in weights.items():
                if document in scores:
                    scores[document] += value * weight


def _by_weight(pair: tuple[float, str]) -> tuple[float, str]:
    return (-pair[0], pair[1])


def _best(
    view: View,
    tier: list[tuple[int, float]],
    asked: dict[str, float],
    query: Query,
    limit: int,
) -> list[tuple[int, float]]:
    pool = max(_RESCORED, 2 * limit)
    if len(tier) > pool:
        tier = heapq.nsmallest(pool, tier, key=_by_score)
    rescored = [
        (document, score * (1 + NAME_GAIN * view.name_coverage(document, asked)))
        for document, score in tier
    ]
    rescored.sort(key=_by_score)
    if query.required == 1:
        return rescored[:limit]
    kept = (hit for hit in rescored if _matched(view, hit[0], query) >= query.required)
    return list(islice(kept, limit))


def _by_score(pair: tuple[int, float]) -> tuple[float, int]:
    return (-pair[1], pair[0])


def _matched(view: View, document: int, query: Query) -> int:
    """Return how many words of the query the document has, as written or by a stand-in."""
    mask = 0
    for term, bits in query.concepts.items():
        if document in view.weights(term):
            mask |= bits
    return mask.bit_count()
