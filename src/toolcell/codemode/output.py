"""Owns the output budget of a cell: one cap over output, value and error, resumes included.

Rule 3.11, BEHAVIOURS 124 to 129, REPORTS LM-01 to LM-07.

Sizes are UTF-8 bytes of compact JSON. With the catalog API what does not fit is cut and says so;
with the tools API it is an error.

Above: cells. Below: `output_cut`, `execution.contract`. Refuses to know: why a cell ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from toolcell.base.jsontext import Json, clip_utf8, dumps, loads, utf8_length
from toolcell.codemode.output_cut import MARKER_BYTES, Piece, clipped_error, cut, keep
from toolcell.errors import CellError
from toolcell.execution.contract import OutputFrame

TOO_DEEP: Final = "the returned value is nested too deeply for JSON; return a flatter one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one `exec` or `wait` gives back of a cell."""

    output: tuple[dict[str, Any], ...] = ()
    value: Json = None
    error: str = ""
    omitted_bytes: int = 0
    value_cut: bool = False


class Ledger(Protocol):
    """Keeps a cell's output and bounds what leaves."""

    def add(self, frames: Iterable[OutputFrame]) -> None:
        """Take what a step emitted.

        Raises:
            CellError: `output_limit_exceeded`, where the cap is an error.
        """
        ...

    def reply(self, *, value: str | None = None, error: str | None = None) -> Reply:
        """Return the entries that are due, with the value (JSON text) or the error.

        Raises:
            CellError: `output_limit_exceeded`, where the cap is an error.
        """
        ...


class CuttingLedger:
    """The catalog API: new entries only, cut at the cap."""

    __slots__ = ("_bytes", "_left", "_limit", "_lost_bytes", "_lost_entries", "_pieces")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit
        self._pieces: list[Piece] = []
        self._bytes = 0
        self._lost_bytes = 0
        self._lost_entries = 0

    def add(self, frames: Iterable[OutputFrame]) -> None:
        """Take what a step emitted; beyond the cap only its size is kept."""
        for frame in frames:
            content = frame.text if frame.type == "json" else dumps(frame.text)
            size = utf8_length(content)
            if self._bytes > self._left:
                self._lost_bytes += size
                self._lost_entries += 1
                continue
            if size > self._limit:
                content = clip_utf8(content, self._limit)
            piece = Piece(frame.type, content, size)
            self._pieces.append(piece)
            self._bytes += piece.entry_bytes + 1

    def reply(self, *, value: str | None = None, error: str | None = None) -> Reply:
        """Return the new entries with the value or the error, within what is left."""
        tail_text = value if value is not None else dumps(error) if error is not None else None
        tail = 0 if tail_text is None else utf8_length(tail_text)
        output = self._bytes + 1 if self._pieces else 0
        if output + tail <= self._left and not self._lost_entries:
            entries = tuple(piece.entry() for piece in self._pieces)
            self._spend(output + tail)
            whole = None if value is None else _parsed(value)
            return Reply(output=entries, value=whole, error=error or "")
        return self._cut_reply(value, error, output, tail)

    def _cut_reply(self, value: str | None, error: str | None, output: int, tail: int) -> Reply:
        # Room is left for the envelope, so that a cut result is within the cap as a whole.
        room = max(self._left - min(1024, self._limit // 8), 0)
        share = max(room // 2, room - output - self._lost_bytes, MARKER_BYTES)
        shown: Json = None
        message = ""
        omitted = 0
        if value is not None and tail > share:
            shown = cut(value, share)
            omitted += shown["omittedBytes"]
            tail = utf8_length(dumps(shown))
        elif value is not None:
            shown = _parsed(value)
        elif error is not None:
            message = clipped_error(error, share)
            tail = utf8_length(dumps(message))
        kept = keep(self._pieces, max(room - tail, 0), lost=(self._lost_entries, self._lost_bytes))
        self._spend(kept.size + tail)
        return Reply(
            output=kept.entries,
            value=shown,
            error=message,
            omitted_bytes=omitted + kept.omitted,
            value_cut=omitted > 0,
        )

    def _spend(self, size: int) -> None:
        self._left = max(self._left - size, 0)
        self._pieces = []
        self._bytes = self._lost_bytes = self._lost_entries = 0


class RefusingLedger:
    """The tools API: everything since the start of the cell, and over the cap it fails."""

    __slots__ = ("_bytes", "_entries", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: list[dict[str, Any]] = []
        self._bytes = 0

    def add(self, frames: Iterable[OutputFrame]) -> None:
        """Take what a step emitted; raises CellError over the cap."""
        for frame in frames:
            content = frame.text if frame.type == "json" else dumps(frame.text)
            piece = Piece(frame.type, content, utf8_length(content))
            if self._bytes + piece.entry_bytes + 2 > self._limit:
                raise self._over()
            self._bytes += piece.entry_bytes + 1
            self._entries.append(piece.entry())

    def reply(self, *, value: str | None = None, error: str | None = None) -> Reply:
        """Return every entry with the value or the error; raises CellError over the cap."""
        used = self._bytes + 1 if self._entries else 0
        if value is not None and used + utf8_length(value) > self._limit:
            raise self._over()
        message = "" if error is None else clipped_error(error, max(self._limit - used, 256))
        shown = None if value is None else _parsed(value)
        return Reply(output=tuple(self._entries), value=shown, error=message)

    def _over(self) -> CellError:
        return CellError(
            f"code mode output limit exceeded ({self._limit} bytes for output and value of a cell "
            "together); return or print less.",
            code="output_limit_exceeded",
            phase="guest",
        )


def _parsed(text: str) -> Json:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        raise CellError(TOO_DEEP, code="internal_error", phase="guest") from None
