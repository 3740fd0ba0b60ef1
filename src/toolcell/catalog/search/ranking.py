"""Owns the order of matching documents: BM25F, then name coverage and clauses for the best.

Above: the searcher. Below: `index`, `query`. Refuses to know: entries.
"""

from __future__ import annotations

import heapq
from itertools import islice
from typing import Final

from toolcell.catalog.search.index import View
from toolcell.catalog.search.query import EVERY_WORD, Query, is_enough

MAX_TERMS: Final = 48
NAME_GAIN: Final = 0.6
CLAUSE_SHARE: Final = 0.15
MOST_CLAUSE_SHARE: Final = 0.45
_ENOUGH_CANDIDATES: Final = 200
_RESCORED: Final = 96


def rank(view: View, query: Query, limit: int) -> list[tuple[int, float]]:
    """Return at most `limit` `(document, score)`, best first; ties in document order.

    Documents with a literal term come before those that only have stand-ins.
    """
    scores: dict[int, float] = {}
    _accumulate(view, query.literal, scores)
    literal_count = len(scores)
    _accumulate(view, query.expansions, scores)
    ranked = list(scores.items())
    out: list[tuple[int, float]] = []
    for tier in (ranked[:literal_count], ranked[literal_count:]):
        if tier and len(out) < limit:
            hits = (
                hit for hit in _rescore(view, tier, query, limit) if _is_hit(view, query, hit[0])
            )
            out.extend(islice(hits, limit - len(out)))
    return out


def _accumulate(view: View, asked: dict[str, float], scores: dict[int, float]) -> None:
    """Add the weight of each asked term to the documents that have it, rarest term first.

    Once there are enough candidates a common term only adds to those: it cannot lift a document
    that has none of the rarer ones above them.
    """
    known = ((w * view.idf(t), t) for t, w in asked.items() if view.has(t))
    for weight, term in heapq.nsmallest(MAX_TERMS, known, key=_by_weight):
        weights = view.weights(term)
        if len(scores) < _ENOUGH_CANDIDATES or len(weights) < _ENOUGH_CANDIDATES // 2:
            get = scores.get
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


def _by_score(pair: tuple[int, float]) -> tuple[float, int]:
    return (-pair[1], pair[0])


def _rescore(
    view: View, tier: list[tuple[int, float]], query: Query, limit: int
) -> list[tuple[int, float]]:
    """Order the best of a tier by their score, raised by name coverage and by their best clause."""
    pool = max(_RESCORED, 2 * limit)
    if len(tier) > pool:
        # Of equal scores at the cut the first documents stay; the cut itself needs no keys.
        cut = heapq.nlargest(pool, [score for _, score in tier])[-1]
        tier = sorted((pair for pair in tier if pair[1] >= cut), key=_by_score)[:pool]
    literal, expansions = query.literal.keys(), query.expansions.keys()
    scores = {
        document: score * (1 + NAME_GAIN * view.name_coverage(document, literal, expansions))
        for document, score in tier
    }
    if query.clauses:
        _add_clauses(view, query.clauses, scores)
    return sorted(scores.items(), key=_by_score)


def _add_clauses(
    view: View, clauses: tuple[tuple[str, ...], ...], scores: dict[int, float]
) -> None:
    """Mix each score with that of the clause the document answers best.

    A request of several sentences asks for several tools: one that answers a single sentence well
    must not lose to those that have a little of each.
    """
    best = dict.fromkeys(scores, 0.0)
    for clause in clauses:
        found: dict[int, float] = {}
        for term in clause:
            weights, idf = view.weights(term), view.idf(term)
            for document in weights.keys() & best.keys():
                found[document] = found.get(document, 0.0) + weights[document] * idf
        top = max(found.values(), default=1.0)
        for document, value in found.items():
            best[document] = max(best[document], value / top)
    share = min(MOST_CLAUSE_SHARE, CLAUSE_SHARE * (len(clauses) - 1))
    scale = max(scores.values())
    for document, score in scores.items():
        scores[document] = (1 - share) * score + share * scale * best[document]


def _is_hit(view: View, query: Query, document: int) -> bool:
    if query.telling == EVERY_WORD:
        return True
    matched = 0
    for term, bits in query.concepts.items():
        if bits & ~matched and document in view.weights(term):
            matched |= bits
            if is_enough(query, matched):
                return True
    return False
