"""Owns `.gitignore` rules: which entries of a tree a search passes over.

Above: the walk. Below: `sources.core.globs`. Refuses to know: descriptors, results.
Rules are those of gitignore(5): later lines win, deeper files win, `!` takes back, a trailing slash
means directories only, a slash elsewhere anchors to the file's own directory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from toolcell.sources.core.globs import segment_regex

MAX_FILE_BYTES: Final = 256 * 1024
MAX_RULES: Final = 5_000
_MAX_DEEP_STARS: Final = 4
_SIGNS: Final = frozenset("*?[\\")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line: a plain text as `build` or `/dist`, the ending of `*.log`, or a regex."""

    negated: bool
    only_directories: bool
    anchored: bool
    text: str | None = None
    ending: str | None = None
    pattern: _Pattern | None = None


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A rule with signs. `depth` is how many directories its paths go through, if that is fixed."""

    regex: re.Pattern[str]
    anchored: bool
    only_directories: bool
    start: str
    depth: int | None

    def named(self, names: list[str], place: str) -> list[str]:
        """Return the names it is about."""
        if not self.anchored:
            return [name for name in names if self.regex.fullmatch(name)]
        if not place.startswith(self.start) or self.depth not in {None, place.count("/")}:
            return []
        return [name for name in names if self.regex.fullmatch(place + name)]


class _Group:
    """Rules next to one another that say the same, so that their order has no meaning.

    What names things without a sign is a look into a set, `*.log` an ending; a regex is the rest.
    """

    __slots__ = ("_directories", "_endings", "_files", "_patterns", "negated")

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self.negated = rules[0].negated
        self._files = _Plain([each for each in rules if not each.only_directories])
        self._directories = _Plain(rules)
        self._endings = {f"{each.ending}/" for each in rules if each.ending is not None}
        self._patterns = [each.pattern for each in rules if each.pattern is not None]

    def named(self, names: list[str], joined: str, place: str, *, directories: bool) -> list[str]:
        """Return the entries of a directory that one of the rules is about.

        Args:
            names: Their names.
            joined: The names, and a slash after each.
            place: The path of their directory below that of the ignore file, `""` or `a/b/`.
            directories: Whether they are directories.
        """
        plain = self._directories if directories else self._files
        found = list(plain.names.intersection(names))
        for ending in self._endings:
            if ending in joined:
                found += [name for name in names if name.endswith(ending[:-1])]
        here = plain.paths.get(place)
        if here:
            found += here.intersection(names)
        for pattern in self._patterns:
            if directories or not pattern.only_directories:
                found += pattern.named(names, place)
        return found


class _Plain:
    """Rules without a sign: names that count anywhere, and names by the path before them."""

    __slots__ = ("names", "paths")

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self.names = {each.text for each in rules if each.text is not None and not each.anchored}
        self.paths: dict[str, set[str]] = {}
        for each in rules:
            if each.text is not None and each.anchored:
                above, slash, name = each.text.rpartition("/")
                self.paths.setdefault(above + slash, set()).add(name)


class IgnoreFile:
    """The rules of one `.gitignore`.

    Attributes:
        groups: What it says; the first one that is about an entry counts.
    """

    __slots__ = ("_prefix", "_way", "groups")

    def __init__(self, prefix: str, text: str, *, way: str = "") -> None:
        """Read the rules.

        Args:
            prefix: The path of its directory below the start of the walk, `""` or `a/b/`.
            text: What it says.
            way: The path from its directory to the start, when it lies above.
        """
        self._prefix = len(prefix)
        self._way = way
        lines = [_read(line) for line in text.split("\n")[:MAX_RULES]]
        rules = [each for each in reversed(lines) if each is not None]
        self.groups = [
            _Group(list(group)) for _, group in groupby(rules, key=lambda each: each.negated)
        ]

    def place(self, prefix: str) -> str:
        """Return the path of a directory of the walk below that of this file."""
        return self._way + prefix[self._prefix :]


def kept(
    chain: Sequence[IgnoreFile], prefix: str, names: list[str], *, directories: bool = False
) -> list[str]:
    """Return the entries of a directory that are not passed over.

    Args:
        chain: The ignore files that count there, from the root down.
        prefix: The path of the directory below the start of the walk, `""` or `a/b/`.
        names: The names of the entries.
        directories: Whether they are directories.
    """
    if not names:
        return names
    ignored: set[str] = set()
    open_names, joined = names, "/".join(names) + "/"
    for file in reversed(chain):
        place = file.place(prefix)
        for group in file.groups:
            named = group.named(open_names, joined, place, directories=directories)
            if not named:
                continue
            decided = set(named)
            if not group.negated:
                ignored |= decided
            open_names = [name for name in open_names if name not in decided]
    return [name for name in names if name not in ignored] if ignored else names


def _read(line: str) -> _Rule | None:
    """Return the rule of a line; None for blank lines, comments and what makes no sense."""
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    segments = [each for each in text.split("/") if each]
    if not segments or segments.count("**") > _MAX_DEEP_STARS:
        return None
    if not _SIGNS.intersection(text):
        return _Rule(negated, only_directories, anchored, text="/".join(segments))
    if text[0] == "*" and not (anchored or only_directories or _SIGNS.intersection(text[1:])):
        return _Rule(negated, only_directories, anchored, ending=text[1:])
    try:
        regex = re.compile(_path_regex(segments), re.DOTALL)
    except (re.error, RecursionError, OverflowError):
        return None
    start = "" if len(segments) == 1 or _SIGNS.intersection(segments[0]) else f"{segments[0]}/"
    depth = None if "**" in segments else len(segments) - 1
    pattern = _Pattern(regex, anchored, only_directories, start, depth)
    return _Rule(negated, only_directories, anchored, pattern=pattern)


def _path_regex(segments: list[str]) -> str:
    out = ""
    last = len(segments) - 1
    for index, segment in enumerate(segments):
        if segment == "**":
            out += "(?:[^/]+/)*" if index != last else ".+"
        else:
            out += segment_regex(segment) + ("/" if index != last else "")
    return out
