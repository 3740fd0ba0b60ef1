"""Owns putting the hunks of a patch into a text.

Above: patching. Below: `patch_text`, `changes`. Refuses to know: files.

A hunk that says a line goes where its lines are found nearest to it. One that does not must be
found once behind the one before, or behind its `@@` line: a guess could change the wrong place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

from toolcell.sources.core.changes import lines_of
from toolcell.sources.core.patch_text import FileChange, Hunk
from toolcell.sources.core.work import Stop, failed, refused

_SHOWN: Final = 80
_MAX_LOOKS: Final = 3_000_000
"""Comparisons of lines for one file, about a second; what needs more is refused."""


def added_text(change: FileChange) -> str:
    """Return the text of a file that is added."""
    lines = [text for hunk in change.hunks for sign, text in hunk.lines if sign == "+"]
    text = "".join(f"{line}\n" for line in lines)
    open_end = bool(change.hunks) and change.hunks[-1].open_end
    return text.removesuffix("\n") if open_end else text


def patched_text(text: str, change: FileChange, stop: Stop) -> str:
    """Return the text with every hunk applied.

    Raises:
        CallError: a hunk's lines are not found, or found more than once.
    """
    lines = lines_of(text)
    found = _Places([_bare(line) for line in lines], change.path, stop)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    out: list[str] = []
    position = 0
    for hunk in change.hunks:
        at = found.place(hunk, position)
        out += lines[position:at]
        position = at
        for sign, line in hunk.lines:
            if sign == "+":
                _close(out, end)
                out.append(line + end)
                continue
            if sign == " ":
                out.append(lines[position])
            position += 1
        if hunk.open_end and position == len(lines) and out:
            out[-1] = _bare(out[-1])
    if position < len(lines):
        _close(out, end)
    return "".join([*out, *lines[position:]])


class _Places:
    """Finds lines in a file. `bare` are its lines without their ends."""

    def __init__(self, bare: Sequence[str], path: str, stop: Stop) -> None:
        self._bare = bare
        self._path = path
        self._stop = stop
        self._shift = 0
        self._exact: dict[str, list[int]] | None = None
        self._loose: dict[str, list[int]] | None = None
        self._looks = 0

    def place(self, hunk: Hunk, start: int) -> int:
        """Return the line a hunk goes to, not before `start`."""
        for anchor in hunk.anchors:
            start = self._anchor(anchor, start)
        old = hunk.old
        if not old:
            return self._without_lines(hunk, start)
        at = self._found(hunk, old, start, lambda line: line)
        if at is None:
            at = self._found(hunk, old, start, str.rstrip)
        if at is None:
            raise self._missing(old, start)
        if hunk.near is not None:
            self._shift = at - hunk.near
        return at

    def _without_lines(self, hunk: Hunk, start: int) -> int:
        if hunk.near is not None:
            return max(start, min(hunk.near + self._shift, len(self._bare)))
        return start if hunk.anchors else len(self._bare)

    def _anchor(self, anchor: str, start: int) -> int:
        for index in range(start, len(self._bare)):
            if self._bare[index].strip() == anchor:
                return index + 1
        message = f"{self._path!r}: the line {anchor[:_SHOWN]!r} of '@@' is not found."
        raise refused(message)

    def _found(
        self, hunk: Hunk, old: list[str], start: int, form: Callable[[str], str]
    ) -> int | None:
        """Return where the lines are; None when nowhere."""
        self._stop.check()
        wanted = [form(line) for line in old]
        size = len(wanted)
        # The rarest line says soonest where the others can be.
        where = [self._where(line, form) for line in wanted]
        rarest = min(range(size), key=lambda index: len(where[index]))
        starts = where[rarest]
        hits = [
            at
            for at in (each - rarest for each in starts[bisect_left(starts, start + rarest) :])
            if (not hunk.at_end or at + size == len(self._bare)) and self._same(at, wanted, form)
        ]
        if not hits:
            return None
        if hunk.near is not None:
            target = hunk.near + self._shift
            return min(hits, key=lambda at: abs(at - target))
        if len(hits) > 1 and not hunk.anchors:
            lines = ", ".join(str(at + 1) for at in hits[:5])
            message = (
                f"{self._path!r}: the lines from {old[0][:_SHOWN]!r} on are found {len(hits)} "
                f"times, in lines {lines}. Add lines around them, or an '@@' line above."
            )
            raise refused(message)
        return hits[0]

    def _same(self, at: int, wanted: list[str], form: Callable[[str], str]) -> bool:
        for index, line in enumerate(wanted):
            self._looks += 1
            if self._looks > _MAX_LOOKS:
                message = f"{self._path!r}: finding the lines of the patch takes too long."
                raise failed(message)
            if at + index >= len(self._bare) or form(self._bare[at + index]) != line:
                return False
        return True

    def _where(self, line: str, form: Callable[[str], str]) -> list[int]:
        """Return the lines equal to `line`, from an index made once for each form."""
        loose = form is str.rstrip
        index = self._loose if loose else self._exact
        if index is None:
            index = {}
            for number, each in enumerate(self._bare):
                index.setdefault(form(each), []).append(number)
            if loose:
                self._loose = index
            else:
                self._exact = index
        return index.get(line, [])

    def _missing(self, old: list[str], start: int) -> Exception:
        first = next((line for line in old if line.strip()), old[0])
        behind = f" from line {start + 1} on" if start else ""
        message = (
            f"{self._path!r}: the lines of the patch from {first[:_SHOWN]!r} on are not found"
            f"{behind}. Read the file and copy its lines exactly. Nothing was changed."
        )
        return refused(message)


def _close(out: list[str], end: str) -> None:
    """Give the last line an end, now that one follows it."""
    if out and not out[-1].endswith("\n"):
        out[-1] += end


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")
