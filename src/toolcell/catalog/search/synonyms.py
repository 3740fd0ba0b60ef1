"""Owns the words that stand for one another in tool catalogs, and how much each counts.

Above: queries. Below: `synonyms.txt`, `analysis`. Refuses to know: documents.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from itertools import permutations
from typing import Final, TypeAlias

from toolcell.catalog.search.analysis import stem

Synonyms: TypeAlias = dict[str, dict[str, float]]

# A share of the weight of the word itself; measured on public retrieval sets: much higher weights
# bring in tools about something else.
WEIGHTS: Final = {"related": 0.15, "derived": 0.3}


@lru_cache(maxsize=1)
def synonyms() -> Synonyms:
    """Return, for each stem, the stems that stand for it and their weights."""
    found: Synonyms = {}
    for section, weight in WEIGHTS.items():
        for group in _groups()[section]:
            for one, other in permutations(group, 2):
                known = found.setdefault(one, {})
                known[other] = max(known.get(other, 0.0), weight)
    return found


@lru_cache(maxsize=1)
def action_stems() -> frozenset[str]:
    """Return the stems of what tools of every kind do."""
    return frozenset(one for group in _groups()["action"] for one in group)


@lru_cache(maxsize=1)
def _groups() -> dict[str, list[list[str]]]:
    """Return the groups of stems of each section of `synonyms.txt`."""
    sections: dict[str, list[list[str]]] = {}
    groups: list[list[str]] = []
    text = files("toolcell.catalog.search").joinpath("synonyms.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            groups = sections.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            groups.append(list(dict.fromkeys(stem(word) for word in line.split())))
    return sections
