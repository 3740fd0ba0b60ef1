"""Owns TypeScript cells (tools API): to JavaScript and back, so that positions are the user's own.

The transformer is lent by the host and started for the first TypeScript cell only (rule 9.5). It
checks no types and loads no modules.

Above: the runtime. Below: `execution.node.typescript` for the shape of an outcome, `errors`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import anyio

from toolcell.base.jsontext import loads
from toolcell.errors import CellError
from toolcell.execution.node.typescript import TransformOutcome

FILENAME: Final = "openclaw-code-mode:user.ts"
_PLACE: Final = re.compile(re.escape(FILENAME) + r":(\d+):(\d+)")
_DIGITS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES: Final = {digit: value for value, digit in enumerate(_DIGITS)}

Transform: TypeAlias = Callable[[str, str], Awaitable[TransformOutcome]]
"""Given a source and its name, returns JavaScript; raises RuntimeUnavailableError."""


@dataclass(frozen=True, slots=True)
class Transformed:
    """The JavaScript of a TypeScript cell, and how to put its positions right."""

    code: str
    remap: Callable[[str], str]


async def to_javascript(source: str, transform: Transform, seconds: float) -> Transformed:
    """Return the JavaScript of a TypeScript cell.

    Raises:
        CellError: `invalid_input` with the place of the fault, or `timeout`.
        RuntimeUnavailableError: there is no working transformer.
    """
    outcome = None
    with anyio.move_on_after(seconds):
        outcome = await transform(source, FILENAME)
    if outcome is None:
        msg = (
            f"code mode timeout exceeded ({seconds * 1000:.0f} ms) before the cell was transformed."
        )
        raise CellError(msg, code="timeout", phase="host")
    if outcome.error is not None or outcome.code is None:
        raise CellError(_diagnostic(outcome), code="invalid_input", phase="input")
    if outcome.source_map is None:
        return Transformed(outcome.code, _as_it_is)
    return Transformed(outcome.code, SourceMap(outcome).remap)


def _as_it_is(text: str) -> str:
    return text


def _diagnostic(outcome: TransformOutcome) -> str:
    error = outcome.error
    said = " ".join(error.message.split())[:240] if error is not None else "no code came back"
    place = ""
    if error is not None and error.line is not None and error.column is not None:
        place = f" at {FILENAME}:{error.line}:{error.column}"
    return (
        f"SyntaxError{place}: {said}. No tools were dispatched; correct the TypeScript source and "
        "submit it again."
    )


class SourceMap:
    """Positions of transformed code in the source (source map version 3)."""

    def __init__(self, outcome: TransformOutcome) -> None:
        mappings = loads(outcome.source_map or "{}").get("mappings", "")
        self._lines = [list(line) for line in _decoded(mappings)]
        self._map_prefix = outcome.map_prefix
        self._source_prefix = outcome.source_prefix

    def remap(self, text: str) -> str:
        """Return `text` with the places of the cell's code as places of its source."""
        return _PLACE.sub(self._place, text)

    def _place(self, match: re.Match[str]) -> str:
        line, column = int(match.group(1)), int(match.group(2))
        found = self._find(line, column)
        return match.group(0) if found is None else f"{FILENAME}:{found[0]}:{found[1]}"

    def _find(self, line: int, column: int) -> tuple[int, int] | None:
        """Return the 1-based source place of a 1-based place in the code."""
        offset = self._map_prefix if line == 1 else 0
        segments = self._lines[line - 1] if 0 < line <= len(self._lines) else []
        index = bisect_right(segments, (column - 1 + offset, 1 << 30, 1 << 30)) - 1
        if index < 0:
            return None
        _, source_line, source_column = segments[index]
        back = self._source_prefix if source_line == 0 else 0
        return source_line + 1, max(source_column - back, 0) + 1


def _decoded(mappings: str) -> Iterator[list[tuple[int, int, int]]]:
    """Yield for each line its segments: column, source line, source column, all 0-based."""
    source_line = source_column = 0
    for line in mappings.split(";"):
        column = 0
        segments = []
        for segment in line.split(","):
            fields = _vlq(segment)
            if not fields:
                continue
            column += fields[0]
            if len(fields) >= 4:
                source_line += fields[2]
                source_column += fields[3]
                segments.append((column, source_line, source_column))
        yield segments


def _vlq(segment: str) -> list[int]:
    """Decode base64 VLQ numbers: five bits a digit, the sixth says that more follow."""
    numbers, value, shift = [], 0, 0
    for digit in segment:
        bits = _VALUES[digit]
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return numbers
