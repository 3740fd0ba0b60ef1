"""Owns what is said of a key that nothing reads: the key that was probably meant, or all there are.

Above: `config.parse`, and rooms that read open parts of the tree themselves. Below: nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the sentence about `key`.

    Args:
        key: As somebody wrote it.
        known: The keys of its place, and paths below it such as `mcp.servers`.
    """
    names = {_folded(name): name for name in sorted(known, reverse=True)}
    near = difflib.get_close_matches(_folded(key), names, n=1)
    if near:
        return f"unknown key; did you mean {names[near[0]]!r}?"
    here = sorted(name for name in names.values() if "." not in name)
    return f"unknown key; known keys: {', '.join(here)}" if here else "unknown key"


def _folded(name: str) -> str:
    """`TIMEOUT_MS`, `timeout-ms` and `timeoutMs` are the same key to a reader."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
