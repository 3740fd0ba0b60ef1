"""Owns what of a tool is searched: five bounded texts, read without running anything of the tool.

Above: the index. Below: `catalog.entry`. Refuses to know: terms and weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from toolcell.catalog.entry import Entry

MAX_TEXT: Final = 2_000
MAX_DEPTH: Final = 4
_MAX_NODES: Final = 400
_BRANCHES: Final = ("anyOf", "oneOf", "allOf")


class DocumentText(NamedTuple):
    """The searched texts of one tool. Content only: equal tools of two snapshots are equal."""

    name: str
    owner: str
    description: str
    parameters: str
    parameter_texts: str


def document_text(entry: Entry) -> DocumentText:
    """Return the texts of `entry`; parameters of every source count, in bounds (rule 4.5)."""
    tool = entry.sourced.tool
    owner = "" if entry.sourced.owner == "core" else entry.sourced.owner
    names: list[str] = []
    texts: list[str] = []
    for name, text in _parameters(tool.parameters):
        names.append(name)
        texts.append(text)
    description = tool.description if not tool.label else f"{tool.description}\n{tool.label}"
    return DocumentText(
        name=tool.name[:MAX_TEXT],
        owner=owner[:MAX_TEXT],
        description=description[:MAX_TEXT],
        parameters=" ".join(names)[:MAX_TEXT],
        parameter_texts=" ".join(filter(None, texts))[:MAX_TEXT],
    )


def _parameters(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield `(name, description)` of each parameter, breadth first, at most `MAX_DEPTH` deep.

    Only plain dicts, lists and strings are touched: a schema that came from elsewhere can neither
    run code here nor cost more than its first nodes.
    """
    queue: list[tuple[Any, int]] = [(schema, 1)]
    room = MAX_TEXT
    for node, depth in queue:
        if not _is_object(node):
            continue
        properties = node.get("properties")
        if depth <= MAX_DEPTH and _is_object(properties):
            for name, part in properties.items():
                if type(name) is not str:
                    continue
                text = part.get("description") if _is_object(part) else None
                yield name[:MAX_TEXT], text[:MAX_TEXT] if type(text) is str else ""
                room -= len(name) + 1
                if room <= 0 or len(queue) >= _MAX_NODES:
                    return
                queue.append((part, depth + 1))
        queue.extend((part, depth) for part in _nested(node) if len(queue) < _MAX_NODES)


def _nested(node: Any) -> Iterator[Any]:
    """Yield the schemas inside `node` that describe the same value or its items."""
    items = node.get("items")
    if _is_object(items):
        yield items
    for key in _BRANCHES:
        branch = node.get(key)
        if type(branch) is list:
            yield from branch


def _is_object(value: Any) -> bool:
    return type(value) is dict or type(value) is MappingProxyType
