"""Owns what a query asks for: weighted terms, which of them are literal, and how many must match.

Above: ranking. Below: `analysis`, `lexicon`, `synonyms`. Refuses to know: documents.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from toolcell.catalog.search.analysis import CJK_RUN, stem, terms, word_terms, words
from toolcell.catalog.search.lexicon import lexicon
from toolcell.catalog.search.synonyms import action_stems, synonyms

MAX_QUERY: Final = 4_000
_MOST_EXPANDED: Final = 24
_REPEAT_GAIN: Final = 0.5
_CLAUSE_END: Final = re.compile(r"[.!?;\n]+\s+")
_SHORTEST_CLAUSE: Final = 3
_LONG_QUERY: Final = 4
_LEAST_MATCHED: Final = 2
EVERY_WORD: Final = -1


@dataclass(frozen=True, slots=True)
class Query:
    """A query ready to rank.

    Attributes:
        literal: Weight of each term that is written in the query or translates a phrase of it.
        expansions: Weight of each further term that stands for one of them.
        concepts: For each term, a bit for every query word it comes from.
        clauses: The terms of each sentence, when there are several of some length.
        telling: The bits of the query words that are enough alone; `EVERY_WORD` when all are.
    """

    literal: dict[str, float]
    expansions: dict[str, float]
    concepts: dict[str, int]
    clauses: tuple[tuple[str, ...], ...]
    telling: int


def parse(text: str) -> Query:
    """Return the query in `text`, of which the first `MAX_QUERY` characters count."""
    text = text[:MAX_QUERY]
    counts: dict[str, int] = {}
    concepts: dict[str, int] = {}
    asked = _count_terms(text, counts, concepts)
    literal = {
        term: 1.0 if count == 1 else 1.0 + _REPEAT_GAIN * math.log(count)
        for term, count in counts.items()
    }
    _translate(text, literal, concepts)
    telling = _telling(text, asked, concepts)
    expansions = _expand(literal, concepts)
    return Query(literal, expansions, concepts, _clauses(text), telling)


def _clauses(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the distinct terms of each sentence; a request may ask for several things."""
    found = [tuple(dict.fromkeys(terms(part))) for part in _CLAUSE_END.split(text)]
    kept = tuple(clause for clause in found if len(clause) >= _SHORTEST_CLAUSE)
    return kept if len(kept) > 1 else ()


def _count_terms(text: str, counts: dict[str, int], concepts: dict[str, int]) -> int:
    """Count the terms of each word and mark which word they come from; return how many words.

    A compound (`readFile`) is as many words as it has pieces, and its whole stands for them all.
    """
    asked = 0
    for word in words(text):
        found = word_terms(word)
        for term in found:
            counts[term] = counts.get(term, 0) + 1
        if not found or not concepts.keys().isdisjoint(found):
            continue
        if not word.isascii():
            concepts.update(dict.fromkeys(found, 1 << asked))
            asked += 1
            continue
        whole = len(found) > 1 and found[-1] == stem(word.lower())
        parts = found[:-1] if whole else found
        for place, term in enumerate(parts):
            concepts[term] = 1 << (asked + place)
        if whole:
            concepts[found[-1]] = ((1 << len(parts)) - 1) << asked
        asked += len(parts)
    return asked


def _translate(text: str, literal: dict[str, float], concepts: dict[str, int]) -> None:
    for translation in lexicon().translate(text):
        mask = 0
        for word in words(translation.phrase):
            for term in word_terms(word):
                mask |= concepts.get(term, 0)
        for word, weight in translation.words:
            for term in word_terms(word):
                if literal.get(term, 0.0) < weight:
                    literal[term] = weight
                concepts[term] = concepts.get(term, 0) | mask


def _expand(literal: dict[str, float], concepts: dict[str, int]) -> dict[str, float]:
    expansions: dict[str, float] = {}
    if len(literal) > _MOST_EXPANDED:
        return expansions
    table = synonyms()
    for term, weight in literal.items():
        for other, share in table.get(term, {}).items():
            if other in literal:
                continue
            expansions[other] = max(expansions.get(other, 0.0), share * weight)
            concepts[other] = concepts.get(other, 0) | concepts.get(term, 0)
    return expansions


def _telling(text: str, asked: int, concepts: dict[str, int]) -> int:
    """Return which query words make a hit alone (SR-06); of the others a tool must have two.

    Any word does in a short query. None does in a lone identifier of several parts
    (`slack_channel`), and no action word that every second tool has does in a query of four or more
    content words: one common word alone is chance.
    """
    lone = text.strip()
    if asked >= _LEAST_MATCHED and not any(map(str.isspace, lone)) and not CJK_RUN.search(lone):
        return 0
    if asked < _LONG_QUERY:
        return EVERY_WORD
    actions = action_stems()
    return reduce(or_, (bits for term, bits in concepts.items() if term not in actions), 0)


def is_enough(query: Query, matched: int) -> bool:
    """Whether a document that has the query words `matched` (bits) is a hit."""
    return bool(matched & query.telling) or matched.bit_count() >= _LEAST_MATCHED
