"""Owns the text patterns of `grep`: linear in the text and bounded in memory, whoever wrote them.

Above: `sources.core.grepping`. Below: `re2`, the one file that imports it. Python's own `re` can
neither be bounded nor stopped, and holds the interpreter while it backtracks.
"""

from __future__ import annotations

from typing import Final, Protocol

import re2  # type: ignore[import-untyped]

from toolcell.sources.core.work import refused

MAX_MEMORY: Final = 32 << 20


class Matcher(Protocol):
    """Finds the next match in a buffer of whole lines."""

    def __call__(self, buffer: bytes, position: int, /) -> int:
        """Return where a match starts at or after `position`, or -1."""
        ...


def matcher(pattern: str, *, literal: bool, ignore_case: bool) -> Matcher:
    """Return the matcher of a pattern; a match never spans lines.

    Raises:
        CallError: the pattern is no RE2 expression, or holds a line break.
    """
    if "\n" in pattern or "\0" in pattern:
        raise refused("pattern holds a line break or NUL; lines are searched one by one.")
    if literal and not ignore_case:
        wanted = pattern.encode("utf-8", "surrogateescape")
        return lambda buffer, position: buffer.find(wanted, position)
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.literal = literal
    options.case_sensitive = not ignore_case
    options.max_mem = MAX_MEMORY
    try:
        # (?m) makes ^ and $ those of lines; an option of that name exists for POSIX syntax only.
        compiled = re2.compile(pattern if literal else f"(?m){pattern}", options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        message = (
            f"pattern {pattern[:200]!r} is not valid: {text}. RE2 syntax: no look-around, no back "
            "references; set `literal: true` for plain text."
        )
        raise refused(message) from None

    def find(buffer: bytes, position: int, /) -> int:
        found = compiled.search(buffer, position)
        return -1 if found is None else int(found.start())

    return find
