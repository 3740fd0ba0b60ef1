"""Owns the quick index: the trusted tools a model reads in the description of `exec` (rule 4.6).

Above: code mode. Below: `catalog.entry`, `catalog.order`. Refuses to know: descriptions, schemas,
and everything that came from a server or a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from toolcell.base.jsontext import dumps
from toolcell.catalog.entry import Entry
from toolcell.catalog.order import sort_key
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


class _Line:
    """One tool of the index. Its hints are asked for only when there may be room for them."""

    def __init__(self, name: str, printed: str, entry: Entry) -> None:
        self.printed = printed
        self.order = sort_key(name)
        self.entry = entry
        self.output = entry.output

    @property
    def shortest(self) -> int:
        """A lower bound of `length`, known without the input hint."""
        return len(f"- {self.printed} {{}} -> {UNKNOWN_OUTPUT}\n")

    @property
    def length(self) -> int:
        """Characters of the line without its output hint, line end included."""
        return self.shortest - len("{}") + len(self.entry.input)

    @property
    def cost(self) -> int:
        """Characters that its output hint takes beyond `?`."""
        return 0 if self.output is None else len(self.output) - len(UNKNOWN_OUTPUT)

    def text(self, *, with_output: bool) -> str:
        output = self.output if with_output and self.output is not None else UNKNOWN_OUTPUT
        return f"- {self.printed} {self.entry.input} -> {output}"


def quick_index(
    snapshot: CatalogSnapshot, entries: Iterable[Entry], *, api: Api, budget: int = 8000
) -> str:
    """Return the index of those of `entries` that are trusted, or an empty text without any.

    Tools with a declared output come first, then by name. Over `budget` characters, output hints
    give way first, the longest before the others; then tools that do not fit are left out and
    counted in the last line. Equal sets of tools give equal bytes.
    """
    lines = [
        _Line(name, printed, entry)
        for entry in entries
        if entry.sourced.trusted and snapshot.get(entry.id) is entry
        for name, printed in _named(entry, api)
    ]
    if not lines:
        return ""
    lines.sort(key=lambda line: (line.output is None, line.order))
    room = budget - len(_HEADING)
    kept = lines
    if not _fit(lines, room):
        # The footer is at most as long as when it counts every tool.
        room -= len(_FOOTER[api].format(count=len(lines))) + 1
        kept = _fitting(lines, room)
    shown = _shown_outputs(kept, room - sum(line.length for line in kept))
    kept = sorted(kept, key=lambda line: (line not in shown, line.order))
    parts = [_HEADING, *(line.text(with_output=line in shown) for line in kept)]
    if len(kept) < len(lines):
        parts.append(_FOOTER[api].format(count=len(lines) - len(kept)))
    return "\n".join(parts)


def _named(entry: Entry, api: Api) -> Iterator[tuple[str, str]]:
    """Yield the name to sort by and its printed form; nothing for a tool that has none."""
    if api == "tools":
        yield entry.id, dumps(entry.id)
    elif entry.callable_name is not None:
        yield entry.callable_name, entry.callable_name


def _fit(lines: list[_Line], room: int) -> bool:
    """Whether all lines fit without their output hints."""
    if sum(line.shortest for line in lines) > room:
        return False
    return sum(line.length for line in lines) <= room


def _fitting(lines: list[_Line], room: int) -> list[_Line]:
    """Return the lines that fit without output hints, taken in order; the others are skipped."""
    kept: list[_Line] = []
    for line in lines:
        if line.shortest <= room and line.length <= room:
            room -= line.length
            kept.append(line)
    return kept


def _shown_outputs(lines: list[_Line], room: int) -> set[_Line]:
    """Return the lines whose output hint fits beside all `lines`, the shortest hints first."""
    shown: set[_Line] = set()
    for line in sorted(lines, key=lambda line: (line.cost, line.order)):
        if line.output is not None and line.cost <= room:
            room -= line.cost
            shown.add(line)
    return shown
