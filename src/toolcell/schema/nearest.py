"""Owns the nearest name: what a misspelt property was probably meant to be.

Above: violations; the catalog may use it for tool names. Below: nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

_MAX_NAME = 64
_MAX_NAMES = 256


def allowance(name: str) -> int:
    """Return the edits a name may be away: min(3, max(1, ceil(len / 3))) (BEHAVIOURS 332)."""
    return min(3, max(1, math.ceil(len(name) / 3)))


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate fewest edits away, the first of equals, or None when all are far."""
    if len(name) > _MAX_NAME:
        return None
    best: str | None = None
    limit = allowance(name)
    for candidate in islice(candidates, _MAX_NAMES):
        if _folded(candidate) == _folded(name):
            return candidate  # `userID` for `user_id` is more edits away than it is meant
        if abs(len(candidate) - len(name)) > limit:
            continue
        distance = edit_distance(name, candidate)
        if distance <= limit:
            best, limit = candidate, distance - 1
    return best


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def edit_distance(a: str, b: str) -> int:
    """Return the Levenshtein distance: insertions, deletions and replacements."""
    previous = list(range(len(b) + 1))
    for row, x in enumerate(a, 1):
        current = [row]
        for column, y in enumerate(b, 1):
            change = previous[column - 1] + (x != y)
            current.append(min(previous[column] + 1, current[-1] + 1, change))
        previous = current
    return previous[-1]
