"""Owns where subschemas stand inside a schema, and rewriting every one of them.

Above: dialects, provider schemas, the validator's guards. Below: nothing.
Works on plain copies (`schema.plain.copy_plain`), whose depth is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties")
_NAMED = ("properties", *_MAPS)
DEFINITIONS = frozenset({"$defs", "definitions"})


def subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each direct subschema with the keyword it stands under."""
    for key in _ONE:
        if isinstance(schema.get(key), dict | bool):
            yield key, schema[key]
    for key in _LISTS:
        if isinstance(schema.get(key), list):
            for item in schema[key]:
                yield key, item
    for key in _NAMED:
        if isinstance(schema.get(key), dict):
            for member in schema[key].values():
                if isinstance(member, dict | bool):
                    yield key, member


def walk(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all subschemas inside it; references are not followed."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting.extend(child for _, child in subschemas(here))


def rewrite(
    schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]], boolean: Any = None
) -> Any:
    """Return a schema in which `change` was applied to every subschema, innermost first.

    Args:
        schema: A plain schema; it is not changed.
        change: Gets a fresh shallow copy each time and may change it.
        boolean: A function `(keyword, value)` for boolean subschemas; None leaves them.
    """
    if not isinstance(schema, dict):
        return schema

    def inner(key: str, child: Any) -> Any:
        if isinstance(child, bool):
            return boolean(key, child) if boolean is not None else child
        return rewrite(child, change, boolean)

    out = dict(schema)
    for key in _ONE:
        if isinstance(out.get(key), dict | bool):
            out[key] = inner(key, out[key])
    for key in _LISTS:
        if isinstance(out.get(key), list):
            out[key] = [inner(key, item) for item in out[key]]
    for key in _NAMED:
        if isinstance(out.get(key), dict):
            out[key] = {
                name: inner(key, member) if isinstance(member, dict | bool) else member
                for name, member in out[key].items()
            }
    return change(out)
