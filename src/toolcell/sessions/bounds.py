"""Owns the bounds of what is recorded: a value is cut in time proportional to what is kept.

Above: `records`. Below: nothing. Refuses to know: events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

MAX_DEPTH: Final = 200
"""Deeper nesting is cut: readers of the record recurse."""

_OVERHEAD: Final = 2
_NUMBER: Final = 8
_MAX_BITS: Final = 4096


def bounded(value: Any, limit: int) -> Any:
    """Return a plain JSON copy of `value`, of about `limit` bytes at most.

    A value that had to be cut comes back as `{"truncated": true, "prefix": <what was kept>}`:
    strings end early, lists and objects end early. What JSON has no form for becomes text that
    names its type. Never raises, however hostile the value.
    """
    if value is None or value is True or value is False:
        return value
    if type(value) is str and len(value) <= limit // 4:
        return value
    copier = _Copier(limit)
    copy = copier.copy(value, 0)
    return {"truncated": True, "prefix": copy} if copier.cut else copy


class _Copier:
    """Copies until its budget is spent."""

    __slots__ = ("cut", "left")

    def __init__(self, limit: int) -> None:
        self.left = limit
        self.cut = False

    def copy(self, value: Any, depth: int) -> Any:
        self.left -= _OVERHEAD
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, Mapping | list | tuple):
            if depth >= MAX_DEPTH:
                self.cut = True
                return "…"
            if isinstance(value, Mapping):
                return self._mapping(value, depth)
            return self._list(value, depth)
        return self._scalar(value)

    def _scalar(self, value: Any) -> Any:
        if value is None or value is True or value is False:
            return value
        self.left -= _NUMBER
        # Reading back an integer of more than 4,300 digits fails; a digit is about 3.3 bits.
        if isinstance(value, int) and value.bit_length() < _MAX_BITS:
            self.left -= value.bit_length() // 4
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        return f"<{type(value).__name__}>"

    def _string(self, value: str) -> str:
        if not value.isascii():
            # Counting UTF-8 bytes costs a copy; cut by the worst case first.
            head = value[: max(self.left, 0) + 1]
            self.left -= len(head.encode("utf-8", "surrogatepass"))
        else:
            head = value
            self.left -= len(value)
        if self.left >= 0:
            return str(value)
        self.cut = True
        keep = max(len(head) + self.left, 0) if value.isascii() else _fit(head, self.left)
        self.left = 0
        return head[:keep]

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in list(value.items()):
            if self.left <= 0:
                self.cut = True
                break
            name = self._string(key if isinstance(key, str) else str(key))
            out[name] = self.copy(item, depth + 1)
        return out

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        out = []
        for item in value:
            if self.left <= 0:
                self.cut = True
                break
            out.append(self.copy(item, depth + 1))
        return out


def _fit(head: str, over: int) -> int:
    """Return how many characters of `head` remain when its UTF-8 is `-over` bytes too long."""
    kept = len(head.encode("utf-8", "surrogatepass")) + over
    return len(head.encode("utf-8", "surrogatepass")[: max(kept, 0)].decode("utf-8", "ignore"))
