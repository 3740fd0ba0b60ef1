"""Owns patterns: names with `*` and `?`, matched whole, in time linear in practice.

Above: rules, approval rules, MCP filters. Below: `re`. Refuses to know: what the names mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Globs:
    """A set of patterns, compiled once.

    `*` stands for any run of characters, `?` for one; nothing else is special, so a name with
    brackets or dots matches itself.

    Args:
        patterns: The patterns.
        fold_case: Whether letters match in either case.
    """

    __slots__ = ("_exact", "_fold", "_regex")

    def __init__(self, patterns: Iterable[str], *, fold_case: bool = False) -> None:
        folded = [pattern.casefold() if fold_case else pattern for pattern in patterns]
        wild = [pattern for pattern in folded if "*" in pattern or "?" in pattern]
        self._fold = fold_case
        self._exact = frozenset(folded).difference(wild)
        self._regex = re.compile("|".join(map(_translate, wild)), re.DOTALL) if wild else None

    def match(self, name: str) -> bool:
        """Whether the whole of `name` matches one of the patterns."""
        text = name.casefold() if self._fold else name
        if text in self._exact:
            return True
        return self._regex is not None and self._regex.fullmatch(text) is not None


def _translate(pattern: str) -> str:
    """Return a regular expression whose `*` never gives back what it took (no backtracking)."""
    head, *rest = re.split(r"\*+", pattern)
    parts = [_literal(head)]
    if rest:
        *middle, tail = rest
        parts += [f"(?>.*?{_literal(piece)})" for piece in middle]
        parts.append(f".*{_literal(tail)}")
    return f"(?:{''.join(parts)})"


def _literal(piece: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in piece)
