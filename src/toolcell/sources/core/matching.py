"""Owns the text patterns of `grep`: linear in the text and bounded in memory, whoever wrote them.

Above: `sources.core.grepping`. Below: `re2`, the one file that imports it. Python's own `re` can
neither be bounded nor stopped, and holds the interpreter while it backtracks.
"""

from __future__ import annotations

import re
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from toolcell.sources.core.work import refused

MAX_MEMORY: Final = 32 << 20
_WHOLE_TEXT: Final = re.compile(r"\\[AzC]|\(\?[a-zA-Z]*-")
"""What may say something about the text as a whole: `\\A`, `\\z`, or `(?m)` taken back."""


class Matcher:
    """Finds the next match in a buffer of whole lines.

    Attributes:
        joinable: Whether files can be searched one behind the other, with a line break between
            them. Not so a pattern that asks where the text begins or ends.
    """

    __slots__ = ("_search", "joinable")

    def __init__(self, compiled: Any, *, joinable: bool) -> None:
        self._search = compiled.search
        self.joinable = joinable

    def __call__(self, buffer: bytes | bytearray, position: int, end: int, /) -> int:
        """Return where a match in `buffer[position:end]` starts, or -1. What is before counts."""
        found = self._search(buffer, position, end)
        return -1 if found is None else int(found.start())


def matcher(pattern: str, *, literal: bool, ignore_case: bool) -> Matcher:
    """Return the matcher of a pattern; a match never spans lines.

    Raises:
        CallError: the pattern is no RE2 expression, or holds a line break.
    """
    if "\n" in pattern or "\0" in pattern:
        raise refused("pattern holds a line break or NUL; lines are searched one by one.")
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.literal = literal
    options.case_sensitive = not ignore_case
    options.max_mem = MAX_MEMORY
    # (?m) makes ^ and $ those of lines; an option of that name exists for POSIX syntax only.
    text = pattern if literal else f"(?m){pattern}"
    try:
        compiled = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0]
        told = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        message = (
            f"pattern {pattern[:200]!r} is not valid: {told}. RE2 syntax: no look-around, no back "
            "references; set `literal: true` for plain text."
        )
        raise refused(message) from None
    return Matcher(compiled, joinable=literal or _WHOLE_TEXT.search(pattern) is None)
