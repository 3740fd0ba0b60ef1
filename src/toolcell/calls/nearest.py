"""Owns did-you-mean: which known names are a slip of the finger away (BEHAVIOURS 332).

Above: input contracts, unknown tools. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MAX_SUGGESTIONS: Final = 3
_MAX_COMPARED_CHARS: Final = 64


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names within min(3, max(1, ceil(len/3))) edits, closest first."""
    wanted = name[:_MAX_COMPARED_CHARS].casefold()
    reach = min(3, max(1, -(-len(wanted) // 3)))
    scored = []
    for candidate in known:
        if abs(len(candidate) - len(wanted)) <= reach:
            distance = _edits(wanted, candidate.casefold())
            if distance <= reach:
                scored.append((distance, candidate))
    return [candidate for _, candidate in sorted(scored)[:MAX_SUGGESTIONS]]


def _edits(a: str, b: str) -> int:
    """Return the Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]
