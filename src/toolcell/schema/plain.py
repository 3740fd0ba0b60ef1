"""Owns the careful look at a schema that somebody else made: plain dicts and lists, or nothing.

Above: every reader of schemas in this room. Below: `errors`.
Refuses to know: JSON Schema keywords.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from toolcell.errors import SchemaError

MAX_MEMBERS = 50_000
"""Members a foreign mapping may have to be read at all: its iterator may be endless."""
MAX_DEPTH = 200
"""Levels a schema may have to be compiled; the validator's own limit is 255."""
MAX_NODES = 100_000
"""Values a schema may have to be compiled."""

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class SameObject:
    """A hashable stand-in for a schema: equal only to stand-ins of the very same object."""

    __slots__ = ("schema",)

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.schema is self.schema


def as_object(value: Any) -> dict[Any, Any] | None:
    """Return `value` as a plain dict, or None when it is no mapping or refuses to be read."""
    if type(value) is dict:
        return value
    try:
        if not isinstance(value, Mapping):
            return None
        members = {key: value[key] for key in islice(value, MAX_MEMBERS + 1)}
    except Exception:  # noqa: BLE001 - a foreign mapping may raise anything; then nothing can be said
        return None
    return members if len(members) <= MAX_MEMBERS else None


def within_bounds(schema: Any) -> bool:
    """Whether a schema written out has at most `MAX_NODES` values and `MAX_DEPTH` levels.

    Objects that stand in several places count each time, as they do in JSON text: thirty levels
    that each hold the next one twice are a billion values. Takes time for at most `MAX_NODES`.
    """
    level, left = [schema], MAX_NODES
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                members = as_object(value)
                if members is None:
                    return False
                below += members.values()
            elif isinstance(value, list | tuple):
                below += value
            left -= 1
            if len(below) > left:
                return False
        if not below:
            return True
        level = below
    return False


def values_in(plain: Any) -> int:
    """Return how many values a plain copy has, itself included."""
    count, waiting = 0, [plain]
    while waiting:
        value = waiting.pop()
        count += 1
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return count


def as_list(value: Any) -> list[Any] | tuple[Any, ...] | None:
    """Return `value` when it is a plain list or tuple, else None."""
    return value if type(value) in {list, tuple} else None


def as_names(value: Any) -> list[str]:
    """Return the strings of a list such as `required`, each once, in order."""
    items = as_list(value) or ()
    return list(dict.fromkeys(item for item in items if type(item) is str))


def well_formed(text: str) -> str:
    """Return `text` with lone surrogates, which have no UTF-8 form, replaced by U+FFFD."""
    return text if text.isascii() else text.translate(_SURROGATES)


class _Copier:
    """Copies plain JSON, counting what it copies."""

    def __init__(self) -> None:
        self.left = MAX_NODES

    def copy(self, value: Any, depth: int) -> Any:
        """Return fresh plain JSON, well-formed strings throughout."""
        self.left -= 1
        if depth > MAX_DEPTH:
            msg = f"nested deeper than {MAX_DEPTH} levels, or in a cycle"
            raise SchemaError(msg)
        if self.left < 0:
            msg = f"more than {MAX_NODES} values"
            raise SchemaError(msg)
        if value is None or type(value) in {bool, int}:
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise SchemaError("holds NaN or an infinity, which have no JSON form")
            return value
        if isinstance(value, str):
            return well_formed(value)
        items = as_list(value)
        if items is not None:
            return [self.copy(item, depth + 1) for item in items]
        return self._members(value, depth)

    def _members(self, value: Any, depth: int) -> dict[str, Any]:
        members = as_object(value)
        if members is None:
            msg = f"holds a {type(value).__name__}, which has no JSON form"
            raise SchemaError(msg)
        out: dict[str, Any] = {}
        for key, member in members.items():
            if not isinstance(key, str):
                msg = f"holds the key {key!r}, which is no string"
                raise SchemaError(msg)
            out[well_formed(key)] = self.copy(member, depth + 1)
        return out


def copy_plain(value: Any) -> Any:
    """Return a fresh plain copy of a schema: dicts, lists, strings, numbers, booleans, None.

    Raises:
        SchemaError: it is too deep, too large, cyclic, or holds what JSON cannot carry.
    """
    return _Copier().copy(value, 0)
