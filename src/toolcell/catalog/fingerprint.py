"""Owns the content hash of a tool: equal content gives an equal hash, whatever the objects.

Above: snapshot. Below: `base.jsontext`, `schema.plain`. Refuses to know: entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from toolcell.base.jsontext import canonical, utf8
from toolcell.schema.plain import within_bounds
from toolcell.tools.tool import SourcedTool


def fingerprint(sourced: SourcedTool) -> str:
    """Return a SHA-256 over everything the catalog shows of a tool; its executor is not part."""
    tool = sourced.tool
    hasher = hashlib.sha256()
    head = [sourced.id, sourced.source, sourced.owner, sourced.group.value, tool.name]
    head += [tool.description, tool.label or "", tool.execution_mode, str(tool.replay_safe)]
    if sourced.mcp is not None:
        head += [sourced.mcp.server, sourced.mcp.tool, sourced.mcp.operation]
    hasher.update(utf8(canonical(head)))
    hasher.update(_schema_text(tool.parameters))
    if tool.output_schema is not None:
        hasher.update(b"\0")
        hasher.update(_schema_text(tool.output_schema))
    return hasher.hexdigest()


def _schema_text(schema: Any) -> bytes:
    try:
        # Shared objects can make a small schema an endless text.
        return utf8(canonical(schema)) if within_bounds(schema) else b"\1".join(_tokens(schema))
    except (TypeError, ValueError, RecursionError):
        return b"\1".join(_tokens(schema))


def _tokens(schema: Any) -> list[bytes]:
    """Walk what JSON text cannot carry: too deep, cyclic, or with values JSON does not know.

    The walk keeps its own stack; an object met again is the number it was first met as.
    """
    out: list[bytes] = []
    stack: list[Any] = [schema]
    met: dict[int, int] = {}
    while stack:
        value = stack.pop()
        if not isinstance(value, Mapping | list | tuple):
            out.append(_leaf(value))
        elif id(value) in met:
            out.append(b"again:%d" % met[id(value)])
        else:
            met[id(value)] = len(met)
            out.append(b"%s:%d" % (b"{" if isinstance(value, Mapping) else b"[", len(value)))
            stack.extend(_parts(value))
    return out


def _parts(value: Any) -> list[Any]:
    if not isinstance(value, Mapping):
        return list(value)
    return [part for key in sorted(value, key=str) for part in (value[key], str(key))]


def _leaf(value: Any) -> bytes:
    if value is None or isinstance(value, str | int | float):
        return f"{type(value).__name__}:{value!r}".encode()
    return type(value).__qualname__.encode()
