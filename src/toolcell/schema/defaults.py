"""Owns what an MCP call fills in before it is sent: top-level defaults (BEHAVIOURS 227 to 229).

Above: the MCP namespace. Below: `schema.plain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcell.errors import SchemaError
from toolcell.schema.plain import as_names, as_object, copy_plain


def _defaults(schema: Any) -> dict[str, Any]:
    properties = as_object((as_object(schema) or {}).get("properties")) or {}
    found: dict[str, Any] = {}
    for name, member in properties.items():
        members = as_object(member)
        if isinstance(name, str) and members is not None and "default" in members:
            found[name] = members["default"]
    return found


def missing_required(schema: Any, arguments: Mapping[str, Any]) -> list[str]:
    """Return required names that are neither given nor have a default, in the schema's order."""
    required = as_names((as_object(schema) or {}).get("required"))
    absent = [name for name in required if name not in arguments]
    if not absent:
        return []
    defaults = _defaults(schema)
    return [name for name in absent if name not in defaults]


def fill_defaults(schema: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with absent top-level members set to fresh copies of their defaults.

    `null` is a value and stays. A default that is no plain JSON is left out.
    """
    out = dict(arguments)
    for name, default in _defaults(schema).items():
        if name in out:
            continue
        try:
            out[name] = copy_plain(default)
        except SchemaError:
            continue
    return out
