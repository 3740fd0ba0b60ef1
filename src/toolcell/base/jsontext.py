"""Owns the one way toolcell writes, reads and bounds JSON text.

Above: everything that crosses a bridge, a wire or a disk. Below: `json`.
Refuses to know: what the values mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value JSON can carry. `Any`, because checked recursion costs more than it tells a caller."""

JsonObject: TypeAlias = dict[str, Any]

_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_sorted = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=True
)


def dumps(value: Json) -> str:
    """Return compact JSON text.

    Raises:
        TypeError: `value` holds something JSON cannot carry.
        ValueError: `value` holds NaN, an infinity or a cycle.
    """
    return _compact.encode(value)


def canonical(value: Json) -> str:
    """Return compact JSON text with sorted keys: equal values give equal text."""
    return _sorted.encode(value)


def loads(text: str | bytes) -> Json:
    """Read JSON text; lone surrogates inside are kept.

    Raises:
        ValueError: the text is not JSON.
    """
    return json.loads(text)


def loads_finite(text: str | bytes) -> Json:
    """Read JSON text without NaN and infinities, so that `dumps` can write what it says.

    Raises:
        ValueError: the text is not such JSON, or a number in it is too large.
    """
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def loads_strict(text: str | bytes) -> Json:
    """Read JSON text that says one thing: no key twice, no NaN, no infinity.

    Raises:
        ValueError: the text is not such JSON.
    """
    return json.loads(
        text,
        object_pairs_hook=_each_key_once,
        parse_constant=_no_constant,
        parse_float=_finite,
    )


def _each_key_once(pairs: list[tuple[str, Json]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        msg = f"the number {digits[:20]} is too large"
        raise ValueError(msg)
    return number


def _no_constant(name: str) -> Json:
    msg = f"{name} is no JSON value"
    raise ValueError(msg)


def utf8(text: str) -> bytes:
    """Return UTF-8 that keeps lone surrogates, as JavaScript strings may hold them."""
    return text.encode("utf-8", "surrogatepass")


def from_utf8(data: bytes) -> str:
    """Undo `utf8`; bytes that are no such text become U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def utf8_length(text: str) -> int:
    """Return the number of UTF-8 bytes of `text` (a lone surrogate counts three)."""
    return len(text) if text.isascii() else len(utf8(text))


def clip_utf8(text: str, limit: int) -> str:
    """Return the longest prefix of `text` that has at most `limit` UTF-8 bytes and is whole."""
    data = utf8(text[: max(limit, 0) + 1])
    if len(data) <= limit:
        return text
    cut = max(limit, 0)
    while cut and (data[cut] & 0xC0) == 0x80:
        cut -= 1
    return from_utf8(data[:cut])


def clip_utf16(text: str, limit: int) -> str:
    """Return the longest prefix of `text` with at most `limit` UTF-16 units, no pair split."""
    if len(text) <= limit // 2:
        return text
    units = 0
    for index, char in enumerate(text):
        units += 2 if ord(char) > 0xFFFF else 1
        if units > limit:
            return text[:index]
    return text


def to_plain(value: Any) -> Json:
    """Return `value` as fresh plain JSON data (dicts, lists, strings, numbers, booleans, None).

    Raises:
        TypeError: something in it has no JSON form; the message names its type.
        ValueError: NaN, an infinity or a cycle.
    """
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes):
        return loads(dumps(value))
    dumps(value)
    return value
