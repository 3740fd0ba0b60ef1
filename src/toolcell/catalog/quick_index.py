"""Owns the quick index: the trusted tools a model reads in the description of `exec` (rule 4.6).

Above: code mode. Below: `catalog.entry`, `catalog.order`. Refuses to know: descriptions, schemas,
and everything that came from a server or a client.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from toolcell.base.jsontext import dumps
from toolcell.catalog.entry import Entry
from toolcell.catalog.order import SortKey, sort_key
from toolcell.catalog.snapshot import CatalogSnapshot

Api = Literal["catalog", "tools"]

UNKNOWN_OUTPUT: Final = "?"
_HEADING: Final = "Tools of this run, each as `name input -> output` (`?`: output unknown):"
_FOOTER: Final[dict[Api, str]] = {
    "catalog": "{count} additional tools omitted from this prompt index. Find them inside the "
    'program with `await catalog.search("what you want to do")`; `catalog.all()` lists all native '
    "tools.",
    "tools": "{count} additional OpenClaw/plugin tools omitted from this prompt index. Find them "
    'inside the program with `await tools.search("what you want to do")` or read `ALL_TOOLS`.',
}


@dataclass(frozen=True, slots=True)
class _Line:
    head: str
    output: str | None
    order: SortKey

    @property
    def saving(self) -> int:
        """How many characters giving up the output hint frees."""
        return len(self.output) - len(UNKNOWN_OUTPUT) if self.output is not None else 0

    def length(self) -> int:
        return len(self.head) + len(" -> ") + len(self.output or UNKNOWN_OUTPUT) + 1

    def without_output(self) -> _Line:
        return _Line(self.head, None, self.order)

    def __str__(self) -> str:
        return f"{self.head} -> {self.output or UNKNOWN_OUTPUT}"


def quick_index(
    snapshot: CatalogSnapshot, entries: Iterable[Entry], *, api: Api, budget: int = 8000
) -> str:
    """Return the index of those of `entries` that are trusted, or an empty text without any.

    Tools with a declared output come first, then by name. Over `budget` characters, output hints
    give way first, the longest before the others; then tools that do not fit are left out and
    counted in the last line. Equal sets of tools give equal bytes.
    """
    lines = [
        line
        for entry in entries
        if entry.sourced.trusted
        and snapshot.get(entry.id) is entry
        and (line := _line(entry, api)) is not None
    ]
    if not lines:
        return ""
    room = budget - len(_HEADING)
    kept = _shed_outputs(lines, room)
    if sum(line.length() for line in kept) > room:
        # The footer is at most as long as when it counts every tool.
        room -= len(_FOOTER[api].format(count=len(lines))) + 1
        kept = _restore_outputs(_fitting(lines, room), room)
    kept.sort(key=lambda line: (line.output is None, line.order))
    parts = [_HEADING, *map(str, kept)]
    if len(kept) < len(lines):
        parts.append(_FOOTER[api].format(count=len(lines) - len(kept)))
    return "\n".join(parts)


def _line(entry: Entry, api: Api) -> _Line | None:
    if api == "tools":
        return _Line(f"- {dumps(entry.id)} {entry.input}", entry.output, sort_key(entry.id))
    name = entry.callable_name
    return None if name is None else _Line(f"- {name} {entry.input}", entry.output, sort_key(name))


def _shed_outputs(lines: list[_Line], room: int) -> list[_Line]:
    """Give up output hints, the longest first, until all lines fit or no hint is left."""
    excess = sum(line.length() for line in lines) - room
    kept: list[_Line] = []
    for line in sorted(lines, key=lambda line: (-line.saving, line.order)):
        if excess > 0 and line.saving > 0:
            excess -= line.saving
            kept.append(line.without_output())
        else:
            kept.append(line)
    return kept


def _fitting(lines: list[_Line], room: int) -> list[_Line]:
    """Return the lines that fit without output hints, taken in index order; others are skipped."""
    kept: list[_Line] = []
    for line in sorted(lines, key=lambda line: (line.output is None, line.order)):
        length = line.length() - line.saving
        if length <= room:
            room -= length
            kept.append(line)
    return kept


def _restore_outputs(lines: list[_Line], room: int) -> list[_Line]:
    """Keep the output hints that still fit beside all `lines`, the shortest first."""
    room -= sum(line.length() - line.saving for line in lines)
    kept: list[_Line] = []
    for line in sorted(lines, key=lambda line: (line.saving, line.order)):
        if line.saving <= room:
            room -= line.saving
            kept.append(line)
        else:
            kept.append(line.without_output())
    return kept
