"""Owns `Violation`: one way a value departs from its schema, in toolcell's own words.

Above: the call gate, which shows them. Below: `base.jsontext`, `schema.literals`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolcell.base.jsontext import clip_utf8, utf8_length
from toolcell.schema.literals import property_name, quoted

MAX_LINES = 5
MAX_LINE_BYTES = 256
TRUNCATED = " [truncated]"
_MAX_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Path:
    """Where in a value: as it is, and without names that only the value knows."""

    shown: str = ""
    safe: str = ""

    def index(self, position: int) -> Path:
        """Return the path of an item."""
        return Path(f"{self.shown}[{position}]", f"{self.safe}[{position}]")

    def member(self, name: str, *, declared: bool) -> Path:
        """Return the path of a member; an undeclared name is data and shown as `[*]` when safe."""
        safe = _joined(self.safe, name) if declared else f"{self.safe}[*]"
        return Path(_joined(self.shown, name), safe)


def _joined(path: str, name: str) -> str:
    clipped_name = name[:MAX_LINE_BYTES]
    written = property_name(clipped_name)
    if written == clipped_name:
        return f"{path}.{name}" if path else name
    return f"{path}[{written}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One departure.

    Attributes:
        kind: `missing` or `unknown` property, or a value that is not as `expected`.
        path: Where; for `missing` and `unknown` the property itself.
        expected: What the schema asks for, such as `a number >= 1`.
        got: The kind of value found, such as `a string`.
        value: The value found as text, when it is a short scalar.
        suggestion: For `unknown`, the declared name that is probably meant.
    """

    kind: Literal["missing", "unknown", "mismatch"]
    path: Path
    expected: str = ""
    got: str = ""
    value: str | None = None
    suggestion: str | None = None

    def text(self, *, show_value: bool) -> str:
        """Return one line; without `show_value` nothing of the value is in it."""
        where = self.path.shown if show_value else self.path.safe
        if self.kind == "missing":
            return f"missing property {where}"
        if self.kind == "unknown":
            return f"unknown property {where}" if show_value else f"{where}: unknown property"
        got = self.value if show_value and self.value is not None else self.got
        said = f"expected {self.expected}" + (f", got {got}" if got else "")
        return f"{where}: {said}" if where else said


def describe_kind(value: Any) -> str:
    """Return `a string`, `an array`, … for a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


def describe_value(value: Any) -> str | None:
    """Return a short scalar as JSON text, or None."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() if len(value) <= _MAX_SHOWN:
            return quoted(value)
        case int() if abs(value) < 10**20:
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else "a number that JSON does not have"
        case _:
            return None


def violation_lines(violations: Sequence[Violation], *, show_value: bool) -> list[str]:
    """Return at most five lines of at most 256 bytes each (BEHAVIOURS 284)."""
    lines = [violation.text(show_value=show_value) for violation in violations]
    return [clipped(line) for line in list(dict.fromkeys(lines))[:MAX_LINES]]


def clipped(line: str) -> str:
    """Return a line of at most 256 UTF-8 bytes; a cut one ends in ` [truncated]`."""
    if utf8_length(line) <= MAX_LINE_BYTES:
        return line
    return clip_utf8(line, MAX_LINE_BYTES - len(TRUNCATED)) + TRUNCATED


def did_you_mean(violations: Sequence[Violation]) -> str:
    """Return `Did you mean: x, y?` for unknown properties with a near name, or nothing."""
    names = dict.fromkeys(v.suggestion for v in violations if v.suggestion is not None)
    return f"Did you mean: {', '.join(list(names)[:3])}?" if names else ""
