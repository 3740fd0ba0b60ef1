"""Owns glob patterns: a segment is a regex without backtracking, a path a small automaton.

Above: find, grep, ignore files. Below: `re`. Refuses to know: the file system.

A path pattern is matched while the tree is walked: each directory carries the positions in the
pattern that its path can stand at. So a hostile pattern costs at most its length per entry, and
directories that cannot lead to a match are never opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from operator import methodcaller
from typing import Final, TypeAlias

from toolcell.sources.core.work import refused

MAX_PATTERN: Final = 1024
MAX_ALTERNATIVES: Final = 64
_MAX_TESTS: Final = 1_000
_SPECIAL: Final = frozenset("*?[\\")

NameTest: TypeAlias = Callable[[str], object]
"""Whether a name matches: what it gives is true or false."""


def segment_regex(segment: str) -> str:
    """Return a regex for one path segment: `*`, `?`, `[...]` and backslash escapes.

    Each star but the last takes the shortest text in an atomic group, so matching is linear in the
    text for each star (the leftmost match of what follows a star is never worse than a later one).
    """
    pieces = _star_pieces(segment)
    head, *rest = pieces
    if not rest:
        return head
    middle = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1])
    return f"{head}{middle}[^/]*{rest[-1]}"


def _star_pieces(segment: str) -> list[str]:
    """Return regexes of what stands between the stars."""
    pieces = [""]
    index = 0
    while index < len(segment):
        char = segment[index]
        index += 1
        if char == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[":
            found, index = _char_class(segment, index)
            pieces[-1] += found
        elif char == "\\" and index < len(segment):
            pieces[-1] += re.escape(segment[index])
            index += 1
        else:
            pieces[-1] += re.escape(char)
    return pieces


def _char_class(segment: str, index: int) -> tuple[str, int]:
    """Return the regex of the class that starts after `[`, and the index after it."""
    end = index + 1 if segment[index : index + 1] in {"!", "^"} else index
    end = segment.find("]", end + 1)
    if end < 0:
        return re.escape("["), index
    body = segment[index:end]
    negated = body[0] in "!^"
    inner = re.sub(r"([\\\[\]&~|^])", r"\\\1", body[1:] if negated else body)
    text = f"(?!/)[^{inner}]" if negated else f"(?!/)[{inner}]"
    try:
        re.compile(text)
    except re.error:
        return re.escape(f"[{body}]"), end + 1
    return text, end + 1


@lru_cache(maxsize=512)
def _segment(segment: str, flags: int) -> NameTest:
    if not flags:
        if not _SPECIAL.intersection(segment):
            return segment.__eq__
        if segment[0] == "*" and not _SPECIAL.intersection(segment[1:]):
            return methodcaller("endswith", segment[1:])
    return re.compile(segment_regex(segment), re.DOTALL | flags).fullmatch


class Glob:
    """A path pattern: `*.py` matches at any depth, `src/**/*.py` from the start of the search.

    Braces give alternatives: `*.{ts,tsx}`. A leading `!` has no meaning.
    """

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        """Read the pattern; raises `CallError` for one that is empty or far too large."""
        if not pattern or len(pattern) > MAX_PATTERN or "\0" in pattern:
            msg = f"pattern {pattern[:80]!r} must be text of 1 to {MAX_PATTERN} characters."
            raise refused(msg)
        flags = int(re.IGNORECASE) if ignore_case else 0
        self._programs = [_program(each, flags) for each in _alternatives(pattern)]
        self._tests: dict[tuple[int, ...], NameTest | None] = {}

    def start(self) -> tuple[int, ...]:
        """Return the state before any segment: for each alternative a bit set of positions."""
        return tuple(_skip(program, 1) for program in self._programs)

    def step(self, state: tuple[int, ...], name: str) -> tuple[int, ...]:
        """Return the state after one more segment; all zero when nothing below can match."""
        return tuple(
            _step(program, positions, name) if positions else 0
            for program, positions in zip(self._programs, state, strict=True)
        )

    def accepts(self, state: tuple[int, ...]) -> bool:
        """Whether a path that led to this state matches."""
        return any(
            positions >> len(program) & 1
            for program, positions in zip(self._programs, state, strict=True)
        )

    def last(self, state: tuple[int, ...]) -> NameTest | None:
        """Return whether a name that ends the path is accepted; None when none is.

        Gives the same as `step` and `accepts`. Most entries of a tree are files, which lead no
        further, so that this is the one test they need.
        """
        try:
            return self._tests[state]
        except KeyError:
            pass
        if len(self._tests) >= _MAX_TESTS:
            self._tests.clear()
        tests = [
            test
            for program, positions in zip(self._programs, state, strict=True)
            if program and positions >> len(program) - 1 & 1 and (test := program[-1])
        ]
        found = _any_of(tests) if tests else None
        self._tests[state] = found
        return found

    def matches(self, path: str) -> bool:
        """Whether a whole path matches; for single paths and tests."""
        state = self.start()
        for name in path.split("/"):
            state = self.step(state, name)
        return self.accepts(state)


_Program: TypeAlias = tuple[NameTest | None, ...]
"""One test for each segment; None stands for `**`, which is never the last one."""


def _any_of(tests: list[NameTest]) -> NameTest:
    if len(tests) == 1:
        return tests[0]
    return lambda name: any(test(name) for test in tests)


def _program(pattern: str, flags: int) -> _Program:
    anchored = "/" in pattern.rstrip("/")
    segments = [each for each in pattern.split("/") if each not in {"", "."}]
    if not anchored:
        segments.insert(0, "**")
    collapsed = [
        each
        for index, each in enumerate(segments)
        if each != "**" or index == 0 or segments[index - 1] != "**"
    ]
    if collapsed and collapsed[-1] == "**":
        collapsed.append("*")
    return tuple(None if each == "**" else _segment(each, flags) for each in collapsed)


def _skip(program: _Program, positions: int) -> int:
    """Add the positions reached by letting `**` match nothing."""
    for index, test in enumerate(program):
        if test is None and positions >> index & 1:
            positions |= 1 << index + 1
    return positions


def _step(program: _Program, positions: int, name: str) -> int:
    after = 0
    for index, test in enumerate(program):
        if not positions >> index & 1:
            continue
        if test is None:
            after |= 1 << index
        elif test(name):
            after |= 1 << index + 1
    return _skip(program, after)


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns a pattern with braces stands for."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        current = pending.pop()
        opened = _innermost(current)
        if opened is None:
            done.append(current)
        else:
            start, end = opened
            options = current[start + 1 : end].split(",")
            pending.extend(current[:start] + each + current[end + 1 :] for each in options)
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            message = f"pattern {pattern[:80]!r} has more than {MAX_ALTERNATIVES} alternatives."
            raise refused(message)
    return list(dict.fromkeys(done))


def _innermost(pattern: str) -> tuple[int, int] | None:
    """Return where the first closed brace with a comma in it starts and ends."""
    start = -1
    for index, char in enumerate(pattern):
        if char == "{":
            start = index
        elif char == "}" and start >= 0:
            if "," in pattern[start:index]:
                return start, index
            start = -1
    return None
