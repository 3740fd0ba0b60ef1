"""Owns `.gitignore` rules: which entries of a tree a search passes over.

Above: the walk. Below: `sources.core.globs`. Refuses to know: descriptors, results.
Rules are those of gitignore(5): later lines win, deeper files win, `!` takes back, a trailing slash
means directories only, a slash elsewhere anchors to the file's own directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolcell.sources.core.globs import segment_regex

MAX_FILE_BYTES: Final = 256 * 1024
MAX_RULES: Final = 5_000
_MAX_DEEP_STARS: Final = 4


@dataclass(frozen=True, slots=True)
class _Rule:
    negated: bool
    only_directories: bool
    anchored: bool
    matches: re.Pattern[str]


class IgnoreFile:
    """The rules of one `.gitignore`; `prefix` is the path of its directory, `""` or `a/b/`."""

    __slots__ = ("_literal", "_plain", "_rules", "prefix")

    def __init__(self, prefix: str, text: str) -> None:
        self.prefix = prefix
        rules = [_read(line) for line in text.splitlines()[:MAX_RULES]]
        self._rules = [each for each in reversed(rules) if each is not None]
        self._literal = _literal_names(text) if not any(r.negated for r in self._rules) else None
        if self._literal is not None:
            names, rest = self._literal
            self._plain = names
            self._rules = [each for each in (_read(line) for line in rest) if each is not None]
        else:
            self._plain = frozenset()

    def decide(self, name: str, path: str, *, is_directory: bool) -> bool | None:
        """Return True to pass over an entry, False to keep it, None to leave it to files above.

        Args:
            name: The entry's own name.
            path: Its path below the directory of this file.
            is_directory: Whether it is a directory.
        """
        if name in self._plain:
            return True
        for rule in self._rules:
            if rule.only_directories and not is_directory:
                continue
            if rule.matches.fullmatch(path if rule.anchored else name):
                return not rule.negated
        return None


def is_ignored(chain: tuple[IgnoreFile, ...], name: str, path: str, *, is_directory: bool) -> bool:
    """Return whether an entry is passed over; `chain` goes from the root down."""
    for file in reversed(chain):
        decision = file.decide(name, path[len(file.prefix) :], is_directory=is_directory)
        if decision is not None:
            return decision
    return False


def _literal_names(text: str) -> tuple[frozenset[str], list[str]]:
    """Part plain names, which a set answers, from lines that need a regex. No line is negated."""
    names: set[str] = set()
    rest: list[str] = []
    for line in text.splitlines()[:MAX_RULES]:
        bare = line.rstrip()
        if bare and not any(char in bare for char in "*?[\\/#! "):
            names.add(bare)
        else:
            rest.append(line)
    return frozenset(names), rest


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
    try:
        pattern = re.compile(_path_regex(segments), re.DOTALL)
    except (re.error, RecursionError, OverflowError):
        return None
    return _Rule(negated, only_directories, anchored, pattern)


def _path_regex(segments: list[str]) -> str:
    out = ""
    last = len(segments) - 1
    for index, segment in enumerate(segments):
        if segment == "**":
            out += "(?:[^/]+/)*" if index != last else ".+"
        else:
            out += segment_regex(segment) + ("/" if index != last else "")
    return out
