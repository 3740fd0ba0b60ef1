"""Owns reading a patch: the `*** Begin Patch` envelope, and the unified diff of git.

Above: patching. Below: nothing. Refuses to know: files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from toolcell.errors import CallError
from toolcell.sources.core.work import refused

BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
_ACTIONS: Final[dict[str, Literal["add", "delete", "update"]]] = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_RANGE: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_UNABLE: Final = ("GIT binary patch", "Binary files ", "rename from ", "copy from ")
_NULL: Final = "/dev/null"

Sign = Literal[" ", "-", "+"]


@dataclass(slots=True)
class Hunk:
    """Some lines in a row.

    Attributes:
        anchors: Lines to look for first, each behind the one before.
        lines: Sign and text of each; the text without a line end.
        near: The old line it says it starts at, from 0; None when it does not say.
        at_end: Whether it must reach the end of the file.
        open_end: Whether the last new line is to have no line feed.
    """

    anchors: list[str] = field(default_factory=list)
    lines: list[tuple[Sign, str]] = field(default_factory=list)
    near: int | None = None
    at_end: bool = False
    open_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines it expects."""
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(slots=True)
class FileChange:
    """What is to happen to one file."""

    action: Literal["add", "delete", "update"]
    path: str
    move_to: str | None = None
    hunks: list[Hunk] = field(default_factory=list)


def read_patch(text: str) -> list[FileChange]:
    """Return the changes of a patch in either form.

    Raises:
        CallError: it is no patch; says in which line.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    start = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    if start < len(lines) and lines[start].strip() == BEGIN:
        found = _Envelope(lines, start).changes()
    else:
        found = _Unified(lines, start).changes()
    if not found:
        message = (
            f"The patch changes no file. Write it as {BEGIN!r} … {END!r}, or as a unified diff."
        )
        raise refused(message)
    return found


class _Envelope:
    """Reads the `*** Begin Patch` form."""

    def __init__(self, lines: list[str], start: int) -> None:
        self._lines = lines
        self._at = start + 1

    def changes(self) -> list[FileChange]:
        found: list[FileChange] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() == END:
                if self._at + 1 < len(self._lines):
                    raise _wrong(self._at + 1, f"nothing may follow {END!r}")
                return found
            found.append(self._file(line))
        raise _wrong(self._at, f"the patch does not end with {END!r}")

    def _file(self, line: str) -> FileChange:
        for head, action in _ACTIONS.items():
            if line.startswith(head):
                change = FileChange(action, line.removeprefix(head).strip())
                break
        else:
            raise _wrong(self._at, f"expected one of {', '.join(map(repr, _ACTIONS))}")
        first = self._at
        self._at += 1
        if change.action == "update" and self._here().startswith(_MOVE):
            change.move_to = self._here().removeprefix(_MOVE).strip()
            self._at += 1
        self._body(change)
        if change.action == "update" and not change.hunks and change.move_to is None:
            raise _wrong(first, "an update without changes")
        if change.action == "delete" and change.hunks:
            raise _wrong(first, "a deleted file has no lines of its own")
        return change

    def _here(self) -> str:
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _body(self, change: FileChange) -> None:
        hunk: Hunk | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.rstrip() == _END_OF_FILE and hunk is not None:
                hunk.at_end = True
                hunk = None
            elif line.startswith("*** "):
                return
            elif change.action == "update" and line.startswith("@@"):
                if hunk is None or hunk.lines:
                    hunk = Hunk()
                    change.hunks.append(hunk)
                if anchor := line[2:].removesuffix("@@").strip():
                    hunk.anchors.append(anchor)
            else:
                if hunk is None:
                    hunk = Hunk()
                    change.hunks.append(hunk)
                hunk.lines.append(self._line(line, change))
            self._at += 1

    def _line(self, line: str, change: FileChange) -> tuple[Sign, str]:
        if change.action == "add" and not line.startswith("+"):
            raise _wrong(self._at, "each line of an added file starts with '+'")
        if not line:
            return " ", ""  # an empty line of context, whose blank was lost
        match line[0]:
            case " " | "-" | "+" as sign:
                return sign, line[1:]
            case _:
                raise _wrong(self._at, "a line of a change starts with ' ', '-' or '+'")


class _Unified:
    """Reads unified diffs."""

    def __init__(self, lines: list[str], start: int) -> None:
        self._lines = lines
        self._at = start

    def changes(self) -> list[FileChange]:
        found: list[FileChange] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_UNABLE):
                raise _wrong(self._at, f"{line[:40]!r} is not supported")
            if line.startswith("--- ") and self._next().startswith("+++ "):
                found.append(self._file())
            elif line.startswith("@@ "):
                raise _wrong(self._at, "lines of a file that no '---' and '+++' names")
            else:
                self._at += 1  # a header such as `diff --git` or `index`
        return found

    def _next(self) -> str:
        return self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""

    def _file(self) -> FileChange:
        old, new = _name(self._lines[self._at], "a/"), _name(self._next(), "b/")
        start = self._at
        self._at += 2
        match old, new:
            case (_path, "/dev/null") if _path != _NULL:
                change = FileChange("delete", old)
            case ("/dev/null", _path) if _path != _NULL:
                change = FileChange("add", new)
            case _ if old == new:
                change = FileChange("update", old)
            case _:
                change = FileChange("update", old, move_to=new)
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            change.hunks.append(self._hunk())
        if not change.hunks:
            raise _wrong(start, "a file without changes")
        return change

    def _hunk(self) -> Hunk:
        matched = _RANGE.match(self._lines[self._at])
        if matched is None:
            raise _wrong(self._at, "expected '@@ -line,count +line,count @@'")
        start, old, _, new = (1 if each is None else int(each) for each in matched.groups())
        hunk = Hunk(near=start if old == 0 else start - 1)
        self._at += 1
        for sign, text in self._signed(old, new):
            hunk.lines.append((sign, text))
            if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
                self._at += 1
                hunk.open_end = hunk.open_end or sign != "-"
                hunk.at_end = True
        return hunk

    def _signed(self, old: int, new: int) -> Iterator[tuple[Sign, str]]:
        """Yield as many lines as the range counts."""
        while old > 0 or new > 0:
            line = self._lines[self._at] if self._at < len(self._lines) else None
            sign = " " if line == "" else (line or "x")[0]
            self._at += 1
            match sign:
                case " ":
                    old, new = old - 1, new - 1
                case "-":
                    old -= 1
                case "+":
                    new -= 1
                case _:
                    raise _wrong(self._at - 1, "a line of a change starts with ' ', '-' or '+'")
            if old < 0 or new < 0:
                raise _wrong(self._at - 1, "more lines than the '@@' line counts")
            yield sign, (line or " ")[1:]


def _name(line: str, prefix: str) -> str:
    path = line[4:].split("\t", 1)[0].strip()
    return path if path == _NULL else path.removeprefix(prefix)


def _wrong(index: int, what: str) -> CallError:
    return refused(f"The patch is wrong in line {index + 1}: {what}.")
