"""Owns compact TypeScript hints: what a model reads about a tool before it asks for more.

Above: the catalog. Below: `schema.reader` and its types.
Refuses to know: whom a schema comes from; hints are asked for trusted tools only (rule 4.3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolcell.schema.algebra import union
from toolcell.schema.literals import property_name
from toolcell.schema.model import (
    NEVER,
    UNKNOWN,
    ListOf,
    Literal,
    Never,
    Object,
    Primitive,
    Tuple,
    Type,
    Union,
    complete,
)
from toolcell.schema.reader import Bounds, Reader

# The numbers are BEHAVIOURS 271, 272 and 277 to 279.
MAX_INPUT = 300
MAX_OUTPUT = 800
INPUT_BOUNDS = Bounds(
    depth=4,
    properties=16,
    literals=8,
    variants=5,
    literal_text=96,
    steps=600,
    alphabetical=True,
    infer=True,
    integer_bounds=True,
)
OUTPUT_BOUNDS = Bounds(
    depth=6,
    properties=22,
    literals=8,
    variants=5,
    literal_text=96,
    steps=1200,
    alphabetical=True,
)


def input_hint(schema: Any) -> str:
    """Return a compact type for a tool's input, at most 300 characters.

    Deep parts give way first: a hint that is too long is made again with fewer levels, down to
    the names of the members; a single level that is still too long is `unknown`.

    Args:
        schema: A JSON Schema: a mapping, a boolean or None. Anything else is unknown too.

    Returns:
        Such as `{ id: string; mode?: "drip" | "flood" }`, or `unknown`.
    """
    for depth in range(INPUT_BOUNDS.depth, 0, -1):
        bounds = INPUT_BOUNDS if depth == INPUT_BOUNDS.depth else replace(INPUT_BOUNDS, depth=depth)
        text = _text(Reader(schema, bounds).type_of(), bounds.properties)
        if len(text) <= MAX_INPUT:
            return text
    return "unknown"


def output_hint(schema: Any) -> str | None:
    """Return a complete compact type for a tool's `details`, at most 800 characters, or None.

    It is never shortened: an open object, a cycle, a construct that does not resolve to a closed
    type, or one that is too large gives None (rule 7.2).
    """
    if schema is None:
        return None
    reader = Reader(schema, OUTPUT_BOUNDS)
    kind = reader.type_of()
    if reader.lossy or not complete(kind) or not _fits(kind):
        return None
    text = _text(kind, OUTPUT_BOUNDS.properties)
    return text if len(text) <= MAX_OUTPUT else None


def _fits(kind: Type) -> bool:
    """Whether no object, merged ones included, has too many members."""
    match kind:
        case ListOf(item):
            return _fits(item)
        case Tuple(items):
            return all(map(_fits, items))
        case Union(members):
            return all(map(_fits, members))
        case Object(properties):
            return len(properties) <= OUTPUT_BOUNDS.properties and all(
                map(_fits, properties.values())
            )
        case _:
            return True


def _text(kind: Type, most: int) -> str:  # noqa: PLR0911 - one return for each kind of type
    """Return a type on one line; objects show at most `most` members."""
    match kind:
        case Primitive("integer", bounds):
            return f"number /* integer, {bounds} */" if bounds else "number /* integer */"
        case Primitive(name):
            return name
        case Literal(text):
            return text
        case ListOf(item):
            return f"Array<{_text(item, most)}>"
        case Tuple():
            return _tuple(kind, most)
        case Union(members):
            return " | ".join(_text(member, most) for member in members)
        case Object():
            return _object(kind, most)
        case Never():
            return "never"
        case _:
            return "unknown"


def _tuple(kind: Tuple, most: int) -> str:
    parts = []
    for index, item in enumerate(kind.items):
        text = _text(item, most)
        if index >= kind.required:
            text = f"({text})?" if isinstance(item, Union) else f"{text}?"
        parts.append(text)
    if kind.rest is not None:
        parts.append(f"...Array<{_text(kind.rest, most)}>")
    return f"[{', '.join(parts)}]"


def _object(kind: Object, most: int) -> str:
    names = sorted(kind.properties, key=lambda name: (name not in kind.required, name))
    parts = []
    for name in names[:most]:
        mark = "" if name in kind.required else "?"
        parts.append(f"{property_name(name)}{mark}: {_text(kind.properties[name], most)}")
    partial = kind.partial or len(names) > most or not kind.required <= kind.properties.keys()
    if not names and not partial:
        if kind.extra == NEVER:
            return "{}"
        return "{ ... }" if kind.extra == UNKNOWN else f"Record<string, {_text(kind.extra, most)}>"
    if partial:
        parts.append("...")
    elif kind.extra not in {UNKNOWN, NEVER}:
        extra = union((kind.extra, *kind.properties.values()))
        parts.append(f"[key: string]: {_text(extra, most)}")
    return f"{{ {'; '.join(parts)} }}"
