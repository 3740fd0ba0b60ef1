"""Owns what changed in a text: replaced spans as a unified patch and as a numbered diff.

Above: edit. Below: nothing. Refuses to know: files. Works from the spans, so it costs one pass,
where comparing two texts line by line can cost their product.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

CONTEXT: Final = 3
"""Unchanged lines around a change, as `diff -u` shows them."""

NO_NEWLINE: Final = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Span:
    """`old[start:end]` becomes `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines that changed; `first` counts from 0, in the old text."""

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def end(self) -> int:
        """The old line behind it."""
        return self.first + len(self.old)


class Changes:
    """The changes of one text. `spans` are in order and do not overlap."""

    def __init__(self, old: str, spans: Sequence[Span]) -> None:
        self._lines = lines_of(old)
        self._blocks = _blocks(old, self._lines, spans)

    @property
    def first_line(self) -> int | None:
        """The first changed line, from 1; None when nothing changed."""
        return self._blocks[0].first + 1 if self._blocks else None

    def patch(self, path: str) -> str:
        """Return a unified patch, empty when nothing changed."""
        if not self._blocks:
            return ""
        out = [f"--- a/{path}", f"+++ b/{path}"]
        shift = 0
        for group in self._groups():
            start = max(0, group[0].first - CONTEXT)
            end = min(len(self._lines), group[-1].end + CONTEXT)
            grown = sum(len(each.new) - len(each.old) for each in group)
            before = _range(start, end - start)
            after = _range(start + shift, end - start + grown)
            out.append(f"@@ -{before} +{after} @@")
            out.extend(self._body(group, start, end))
            shift += grown
        return "\n".join(out) + "\n"

    def diff(self) -> str:
        """Return the changed lines with their numbers, for people: `-12 old`, `+12 new`."""
        out: list[str] = []
        shift = 0
        for block in self._blocks:
            out += [f"-{block.first + i + 1} {_bare(s)}" for i, s in enumerate(block.old)]
            at = block.first + shift
            out += [f"+{at + i + 1} {_bare(s)}" for i, s in enumerate(block.new)]
            shift += len(block.new) - len(block.old)
        return "\n".join(out)

    def _groups(self) -> Iterator[list[Block]]:
        group: list[Block] = []
        for block in self._blocks:
            if group and block.first - group[-1].end > 2 * CONTEXT:
                yield group
                group = []
            group.append(block)
        if group:
            yield group

    def _body(self, group: list[Block], start: int, end: int) -> Iterator[str]:
        position = start
        for block in group:
            yield from _signed(" ", self._lines[position : block.first])
            yield from _signed("-", block.old)
            yield from _signed("+", block.new)
            position = block.end
        yield from _signed(" ", self._lines[position:end])


def lines_of(text: str) -> list[str]:
    """Return lines with their line feeds; only a line feed ends a line."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _blocks(old: str, lines: list[str], spans: Sequence[Span]) -> list[Block]:
    starts = [0, *accumulate(map(len, lines))]
    found: list[Block] = []
    index = 0
    while index < len(spans):
        first = max(0, bisect_right(starts, spans[index].start) - 1)
        end, position = first, starts[first]
        parts: list[str] = []
        while index < len(spans) and (not parts or spans[index].start < starts[end]):
            span = spans[index]
            parts += [old[position : span.start], span.text]
            position = span.end
            # The whole last line; one more when its line feed was taken and none put back.
            end = max(end, min(len(lines), bisect_right(starts, position)))
            index += 1
        parts.append(old[position : starts[end]])
        block = _trimmed(first, lines[first:end], lines_of("".join(parts)))
        if block is not None:
            found.append(block)
    return found


def _trimmed(first: int, old: list[str], new: list[str]) -> Block | None:
    """Leave out equal lines at both ends; None when all are equal."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before = tuple(old[start : len(old) - end])
    after = tuple(new[start : len(new) - end])
    return Block(first + start, before, after) if before or after else None


def _signed(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield sign + _bare(line)
        if not line.endswith("\n"):
            yield NO_NEWLINE


def _bare(line: str) -> str:
    return line.removesuffix("\n")


def _range(start: int, count: int) -> str:
    """Return a range as `diff -u` writes it: an empty one names the line before it."""
    return f"{start + 1 if count else start},{count}"
