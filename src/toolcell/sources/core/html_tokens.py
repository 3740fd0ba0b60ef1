"""Owns reading HTML as a row of tags and texts, in time linear in its length.

Above: readable. Below: `re`, `html`. Refuses to know: what tags mean. The standard library's parser
takes quadratic time for unclosed comments and tags in some of the versions we run on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

MAX_TAG: Final = 16_384
"""A longer tag is taken as text."""

_NO_CHARACTER: Final = re.compile(r"&#[0-9]{10,};?")
_TAG: Final = re.compile(r"<([A-Za-z][^\s/>]{0,63})((?:[^>\"']|\"[^\"]*\"|'[^']*')*+)>")
_END: Final = re.compile(r"</([A-Za-z][^\s/>]{0,63})")
_ATTRIBUTE: Final = re.compile(r"([^\s=>\"'/]+)(?:\s*+=\s*+(\"[^\"]*\"|'[^']*'|[^\s>]+))?")
_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "noscript", "iframe", "xmp")
}
"""Elements whose content is text up to their end tag."""


@dataclass(frozen=True, slots=True)
class StartTag:
    """An element begins. Attributes are read when asked for."""

    name: str
    source: str

    def attributes(self) -> dict[str, str]:
        """Return them by lower-case name; of equal ones the first."""
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.source):
            value = match.group(2) or ""
            if value[:1] in {'"', "'"}:
                value = value[1:-1]
            found.setdefault(match.group(1).lower(), unescaped(value))
        return found


def unescaped(text: str) -> str:
    """Return text with its character references replaced."""
    try:
        return unescape(text)
    except ValueError:  # a number of more digits than Python reads
        return unescape(_NO_CHARACTER.sub("\ufffd", text))


@dataclass(frozen=True, slots=True)
class EndTag:
    """An element ends."""

    name: str


def tokens(html: str) -> Iterator[StartTag | EndTag | str]:
    """Yield tags, and texts with their entities replaced; comments are left out."""
    position = 0
    while position < len(html):
        at = html.find("<", position)
        if at < 0:
            at = len(html)
        if at > position:
            yield unescaped(html[position:at])
        if at == len(html):
            return
        position = at
        following = html[at + 1 : at + 2]
        if following in {"!", "?"}:
            position = _behind_comment(html, at)
        elif following == "/" and (ended := _END.match(html, at)) is not None:
            yield EndTag(ended.group(1).lower())
            position = _behind(html, ">", at)
        elif (started := _TAG.match(html, at, at + MAX_TAG)) is not None:
            name = started.group(1).lower()
            yield StartTag(name, started.group(2))
            position = started.end()
            if name in _RAW and not started.group(2).endswith("/"):
                end = _RAW[name].search(html, position)
                stop = len(html) if end is None else end.start()
                yield html[position:stop]
                position = stop
        else:
            yield "<"
            position = at + 1


def _behind_comment(html: str, at: int) -> int:
    if html.startswith("<!--", at):
        return _behind(html, "-->", at + 2)
    return _behind(html, ">", at)


def _behind(html: str, mark: str, at: int) -> int:
    """Return the index behind the next `mark`; the end when there is none."""
    found = html.find(mark, at)
    return len(html) if found < 0 else found + len(mark)
