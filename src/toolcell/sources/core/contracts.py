"""Owns how core tools write down their output: closed object schemas that give complete hints.

Above: the core tools. Below: nothing. Refuses to know: the tools.
"""

from __future__ import annotations

from typing import Any

from toolcell.base.jsontext import JsonObject

STRING: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}
BOOLEAN: JsonObject = {"type": "boolean"}


def closed(properties: JsonObject, *, optional: tuple[str, ...] = ()) -> JsonObject:
    """Return a closed object schema in which all but `optional` are required (rule 7.2)."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def array(items: JsonObject) -> JsonObject:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def nullable(kind: str) -> JsonObject:
    """Return the schema of a scalar that may be null."""
    return {"type": [kind, "null"]}


def constant(value: Any) -> JsonObject:
    """Return the schema of one value."""
    return {"const": value}
