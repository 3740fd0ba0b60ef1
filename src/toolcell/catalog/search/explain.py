"""Owns why a tool was found: which words of the query met which field.

Above: snapshot. Below: `documents`, `query`. Shows words of the query alone: the texts of a tool,
parameters above all, are never echoed (rule 4.5).
"""

from __future__ import annotations

from toolcell.catalog.entry import Entry
from toolcell.catalog.search.analysis import terms, word_terms, words
from toolcell.catalog.search.documents import DocumentText, document_text
from toolcell.catalog.search.lexicon import lexicon
from toolcell.catalog.search.query import MAX_QUERY, parse
from toolcell.catalog.search.synonyms import synonyms


def explain(query: str, entry: Entry) -> dict[str, tuple[str, ...]]:
    """Return, by field of `DocumentText`, the query words that matched there.

    A word as written is itself, a translation is `phrase = word`, a stand-in `word ~ stem`.
    """
    asked = _asked(query[:MAX_QUERY])
    found: dict[str, tuple[str, ...]] = {}
    for field, text in zip(DocumentText._fields, document_text(entry), strict=True):
        met = dict.fromkeys(asked[term] for term in terms(text) if term in asked)
        if met:
            found[field] = tuple(met)
    return found


def _asked(query: str) -> dict[str, str]:
    """Return a label for every term of the query; literal ones first."""
    labels: dict[str, str] = {}
    for word in words(query):
        for term in word_terms(word):
            labels.setdefault(term, word)
    for translation in lexicon().translate(query):
        for word, _ in translation.words:
            for term in word_terms(word):
                labels.setdefault(term, f"{translation.phrase} = {word}")
    expansions = parse(query).expansions
    for term, label in tuple(labels.items()):
        for other in synonyms().get(term, {}):
            if other in expansions:
                labels.setdefault(other, f"{label} ~ {other}")
    return labels
