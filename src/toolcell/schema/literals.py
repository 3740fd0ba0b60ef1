"""Owns how names and scalar values are written in TypeScript.

Above: the reader and the printers. Below: `schema.model`.
Every text is free of control, format and bidirectional characters, whatever the schema holds.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from toolcell.schema.model import Literal

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)
_SAFE_INTEGER = 2**53 - 1


def quoted(text: str) -> str:
    """Return a string literal in double quotes; characters that do not print are escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    if plain.isascii() and "\x7f" not in plain:
        return plain
    return "".join(c if c.isprintable() else _escape(c) for c in plain)


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def property_name(name: str) -> str:
    """Return a property name: bare when it is an ASCII identifier, else quoted."""
    return name if _IDENTIFIER.fullmatch(name) else quoted(name)


def number_text(value: Any) -> str | None:
    """Return a JSON number as text, or None when `value` is none or is not exact in JavaScript."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        if not value.is_integer():
            return repr(value)
        value = int(value)
    if type(value) is not int or abs(value) > _SAFE_INTEGER:
        return None
    return str(value)


def literal(value: Any) -> Literal | None:
    """Return the literal type of a JSON scalar other than null, or None when it has none."""
    if isinstance(value, str):
        return Literal(quoted(value), "string")
    if isinstance(value, bool):
        return Literal("true" if value else "false", "boolean")
    text = number_text(value)
    if text is None:
        return None
    return Literal(text, "integer" if text.lstrip("-").isdigit() else "number")
