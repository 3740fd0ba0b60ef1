"""Owns the parsers: tree-sitter trees of a cell, made only when a cheap look gives reason to.

Nothing here executes. A grammar is no engine: whether a program parses is the engine's word, a tree
is only used to find what a pattern over text could not tell apart (rule 3.2).

Above: the other files of this package. Below: `tree_sitter`. Refuses to know: what is forbidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser, Tree

from toolcell.base.clock import SYSTEM_CLOCK

# Error recovery is slower than linear on hostile text: beyond a size that is always quick, reading
# is given up after a while. Nothing depends on it for safety: no engine has a module loader.
_SURE_BYTES: Final = 2048
_MAX_SECONDS: Final = 0.15
_PIECE_BYTES: Final = 65536
_ADVICE_CHARACTERS: Final = 65536


@cache
def _javascript() -> Language:
    return Language(tree_sitter_javascript.language())


@cache
def _typescript() -> Language:
    import tree_sitter_typescript  # noqa: PLC0415 - only loaded for a cell that is no JavaScript

    return Language(tree_sitter_typescript.language_typescript())


def parse(source: str) -> Tree | None:
    """Return the tree of `source` read as JavaScript, or None when reading it takes too long."""
    return _bounded(_javascript(), source)


def only_typescript(source: str) -> bool:
    """Whether `source` is whole when read as TypeScript and is not when read as JavaScript.

    A grammar lets pass what an engine refuses (`super` outside a method): that is no TypeScript.
    A long source is not read for this: it would only choose between two pieces of advice.
    """
    if len(source) > _ADVICE_CHARACTERS:
        return False
    typescript = _bounded(_typescript(), source)
    if typescript is None or typescript.root_node.has_error:
        return False
    javascript = parse(source)
    return javascript is None or javascript.root_node.has_error


def _bounded(language: Language, source: str) -> Tree | None:
    # A parser of one's own (5 microseconds), because long sources are read in other threads.
    parser = Parser(language)
    data = source.encode("utf-8", "replace")
    if len(data) <= _SURE_BYTES:
        return parser.parse(data)
    ends_at = SYSTEM_CLOCK.monotonic() + _MAX_SECONDS

    def read(offset: int, _point: object) -> bytes:
        return data[offset : offset + _PIECE_BYTES]

    def late(_offset: int, _failed: bool) -> bool:
        return SYSTEM_CLOCK.monotonic() > ends_at

    try:
        return parser.parse(read, encoding="utf8", progress_callback=late)
    except ValueError:
        parser.reset()
        return None


def walk(root: Node) -> Iterator[Node]:
    """Yield `root` and all below it, in source order, without recursion."""
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None:
            yield node
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def text_of(node: Node) -> str:
    """Return the source text of `node`."""
    return (node.text or b"").decode("utf-8", "replace")
