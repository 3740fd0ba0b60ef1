"""Owns turning HTML into text a model can read: headings, lists, links, tables, code; no chrome.

Above: web_fetch. Below: `html_tokens`. Refuses to know: the network.

What a browser would not show is left out too: hidden text is a way to give a model orders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from toolcell.sources.core.html_tokens import EndTag, StartTag, tokens
from toolcell.sources.core.work import Stop


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CHECK_EVERY: Final = 256
_DROPPED: Final = _words(
    "script style noscript template svg math iframe object canvas select textarea button "
    "dialog audio video"
)
_CHROME: Final = _words("nav aside footer")
_MAIN: Final = _words("main article")
_VOID: Final = _words("area base br col embed hr img input link meta param source track wbr")
_SELF_CLOSING: Final = _words("p li td th tr dt dd option")
_BLOCKS: Final = _words(
    "address article blockquote dd div dl dt fieldset figcaption figure form h1 h2 h3 h4 "
    "h5 h6 header hr li main ol p pre section table tr ul body html caption details "
    "summary"
)
_HEADING: Final = re.compile(r"h[1-6]")
_HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACE: Final = re.compile(r"[ \t\r\n\f\v\u00a0]+")
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*\n){2,}")
_TOLD: Final = frozenset({"a", "img"})
"""Tags whose attributes say something a reader wants."""

_ENOUGH: Final = 200
"""Characters of `<main>` or `<article>` that make it the page; fewer may be a teaser."""


@dataclass(frozen=True, slots=True)
class Readable:
    """What a page says. `complete` is false when there was no time for the rest."""

    title: str | None
    text: str
    complete: bool


def readable(html: str, base: str, stop: Stop) -> Readable:
    """Return the text of a page; links are made absolute from `base`."""
    page, complete = _parsed(_Page(base, chrome=False), html, stop)
    text = page.text(main=True)
    if len(text) < _ENOUGH:
        text = page.text(main=False)
    if not text:
        page, complete = _parsed(_Page(base, chrome=True), html, stop)
        text = page.text(main=False)
    title = _SPACE.sub(" ", "".join(page.title)).strip()
    return Readable(title or None, text, complete)


def _parsed(page: _Page, html: str, stop: Stop) -> tuple[_Page, bool]:
    for count, token in enumerate(tokens(html)):
        if count % _CHECK_EVERY == 0 and stop.check():
            return page, False
        match token:
            case StartTag():
                page.start(token)
            case EndTag(name):
                page.end(name)
            case text:
                page.data(text)
    return page, True


@dataclass(slots=True)
class _Skip:
    """An element that is left out, and how many of its own name are open inside."""

    tag: str
    depth: int = field(default=1)


class _Page:
    def __init__(self, base: str, *, chrome: bool) -> None:
        self.title: list[str] = []
        self._base = base
        self._left_out = _DROPPED if chrome else _DROPPED | _CHROME
        self._pieces: list[tuple[bool, str]] = []
        self._skip: _Skip | None = None
        self._main = 0
        self._pre = 0
        self._in_title = False
        self._links: list[str] = []

    def text(self, *, main: bool) -> str:
        text = "".join(piece for inside, piece in self._pieces if inside or not main)
        lines = "\n".join(line.rstrip() for line in text.split("\n"))
        return _BLANK_LINES.sub("\n\n", lines).strip()

    def start(self, token: StartTag) -> None:
        tag = token.name
        if self._skip is not None:
            if tag != self._skip.tag:
                return
            if tag not in _SELF_CLOSING:
                self._skip.depth += 1
                return
            self._skip = None
        source = token.source
        told = tag in _TOLD or "hidden" in source or "style" in source
        found = token.attributes() if told and source else {}
        if tag in _VOID:
            self._void(tag, found)
            return
        if tag in self._left_out or _hidden(found):
            self._skip = _Skip(tag)
            return
        self._main += tag in _MAIN
        self._open(tag, found)

    def end(self, tag: str) -> None:
        if self._skip is not None:
            if tag == self._skip.tag:
                self._skip.depth -= 1
                if self._skip.depth == 0:
                    self._skip = None
            return
        match tag:
            case "title":
                self._in_title = False
            case "a" if self._links:
                href = self._links.pop()
                self._add(f"]({href})" if href else "")
            case "pre" if self._pre:
                self._pre -= 1
                self._add("\n```\n")
            case "td" | "th":
                self._add(" | ")
            case _ if tag in _BLOCKS:
                self._add("\n" if tag in {"li", "tr", "dt", "dd"} else "\n\n")
        if tag in _MAIN and self._main:
            self._main -= 1

    def data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data[:500])
        elif self._skip is None:
            self._add(data if self._pre else _SPACE.sub(" ", data))

    def _open(self, tag: str, found: dict[str, str]) -> None:
        if _HEADING.fullmatch(tag):
            self._add(f"\n\n{'#' * int(tag[1])} ")
            return
        match tag:
            case "title":
                self._in_title = not self.title
            case "a":
                href = self._absolute(found.get("href"))
                self._links.append(href)
                self._add("[" if href else "")
            case "li":
                self._add("\n- ")
            case "pre":
                self._pre += 1
                self._add("\n\n```\n")
            case _ if tag in _BLOCKS:
                self._add("\n")

    def _void(self, tag: str, found: dict[str, str]) -> None:
        match tag:
            case "br":
                self._add("\n")
            case "hr":
                self._add("\n\n---\n\n")
            case "img" if alt := found.get("alt", "").strip():
                self._add(f"[image: {_SPACE.sub(' ', alt)[:200]}]")

    def _absolute(self, href: str | None) -> str:
        if not href or href.startswith(("#", "javascript:", "data:")):
            return ""
        try:
            joined = urljoin(self._base, href.strip())
        except ValueError:
            return ""
        return joined if joined.startswith(("http://", "https://")) else ""

    def _add(self, piece: str) -> None:
        if piece == " " and self._pieces and self._pieces[-1][1][-1:] in {" ", "\n"}:
            return
        if piece:
            self._pieces.append((self._main > 0, piece))


def _hidden(found: dict[str, str]) -> bool:
    if "hidden" in found or found.get("aria-hidden") == "true":
        return True
    style = found.get("style")
    return bool(style and _HIDDEN_STYLE.search(style))
