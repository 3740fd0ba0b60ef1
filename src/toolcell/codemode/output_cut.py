"""Owns cutting: the marker that stands for what did not fit, and prefixes that count exactly.

`prefix` is a prefix of the original compact JSON text, and its bytes plus `omittedBytes` are the
bytes of the original (BEHAVIOURS 127, REPORTS LM-03).

Above: `codemode.output`. Below: `base.jsontext`. Refuses to know: budgets over several replies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolcell.base.jsontext import clip_utf8, dumps, loads, utf8_length

GUIDANCE: Final = "Output truncated; rerun with narrower args."
ERROR_CUT: Final = " [error truncated]"
MARKER_BYTES: Final = 160
"""A marker without a prefix; what is smaller than it is never replaced by it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One output entry: its content as JSON text (maybe clipped) and the bytes of all of it."""

    type: Literal["text", "json"]
    content: str
    size: int

    @property
    def entry_bytes(self) -> int:
        """Bytes of the entry as JSON: `{"type":"text","text":…}`."""
        return self.size + (23 if self.type == "text" else 24)

    def entry(self) -> dict[str, Any]:
        """Return the entry; only for a piece that is whole."""
        key = "text" if self.type == "text" else "value"
        return {"type": self.type, key: _content(self.content)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Entries that fit, in order, with a marker for the rest."""

    entries: tuple[dict[str, Any], ...]
    size: int
    omitted: int


def cut(original: str, room: int, *, size: int | None = None) -> dict[str, Any]:
    """Return a marker of at most `room` bytes for `original`, the JSON text or the start of it.

    Args:
        original: JSON text.
        room: Bytes the marker may take; a marker without a prefix is the least.
        size: Bytes of the whole text when `original` is only the start of it.
    """
    total = utf8_length(original) if size is None else size
    prefix = _fitting_prefix(original, room - MARKER_BYTES)
    return {
        "truncated": True,
        "omittedBytes": total - utf8_length(prefix),
        "guidance": GUIDANCE,
        "prefix": prefix,
    }


def clipped_error(error: str, room: int) -> str:
    """Return `error`, or its start with a note when its JSON takes more than `room` bytes."""
    if utf8_length(dumps(error)) <= room:
        return error
    return _fitting_prefix(error, room - len(ERROR_CUT) - 2) + ERROR_CUT


def keep(pieces: Sequence[Piece], room: int, *, lost: tuple[int, int]) -> Kept:
    """Return the longest run of whole entries that fits in `room` bytes, then a marker.

    `lost` are entries and bytes that followed and were never kept.
    """
    lost_entries, lost_bytes = lost
    total = sum(piece.entry_bytes + 1 for piece in pieces) + 1 if pieces else 0
    if total <= room and not lost_entries:
        return Kept(entries=tuple(piece.entry() for piece in pieces), size=total, omitted=0)
    entries: list[dict[str, Any]] = []
    used = 2
    index = 0
    for index, piece in enumerate(pieces):  # noqa: B007 - the index of the first that is cut
        if used + piece.entry_bytes + 1 + MARKER_BYTES + 26 > room:
            break
        entries.append(piece.entry())
        used += piece.entry_bytes + 1
    else:
        index = len(pieces)
    rest = pieces[index:]
    left_out = sum(piece.size for piece in rest) + lost_bytes
    first = rest[0].content if rest else ""
    marker = cut(first, room - used - 26 - 24, size=left_out)
    if len(rest) + lost_entries > 1:
        marker["omittedEntries"] = len(rest) + lost_entries - 1
    entry = {"type": "json", "value": marker}
    entries.append(entry)
    size = used + utf8_length(dumps(entry))
    return Kept(entries=tuple(entries), size=size, omitted=marker["omittedBytes"])


def _fitting_prefix(text: str, room: int) -> str:
    """Return the longest prefix of `text` whose JSON string takes at most `room` bytes."""
    if room <= 0:
        return ""
    whole = clip_utf8(text, room)
    low, high = 0, len(whole)
    while low < high:
        middle = (low + high + 1) // 2
        if utf8_length(dumps(whole[:middle])) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    return whole[:low]


def _content(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return "[a value nested too deeply for JSON]"
