"""Owns the judgement of a remote input schema: good enough to publish, or not and why.

Above: the listing. Below: `jsonschema_rs`, `base.jsontext`.
Refuses to know: hints and validation of arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from toolcell.base import jsontext
from toolcell.sources.mcp.text import one_line

MAX_SCHEMA_BYTES = 256 << 10
MAX_SCHEMA_DEPTH = 128

# Any other `$schema` would make the validator fetch it: a request of the server's choosing.
_DRAFTS = frozenset(
    f"{scheme}://json-schema.org/{draft}"
    for scheme in ("http", "https")
    for draft in (
        "draft-04/schema",
        "draft-06/schema",
        "draft-07/schema",
        "draft/2019-09/schema",
        "draft/2020-12/schema",
    )
)


def schema_problem(schema: Any) -> str | None:
    """Return what is wrong with an `inputSchema`, or None. Nothing is ever fetched.

    Depth and size are checked first, so a hostile schema cannot exhaust a recursive reader.
    """
    if not isinstance(schema, Mapping):
        return f"inputSchema is {_kind(schema)}, not an object"
    if schema.get("type") != "object":
        return f"inputSchema has type {one_line(repr(schema.get('type')), 60)}, not 'object'"
    if _deeper_than(schema, MAX_SCHEMA_DEPTH):
        return f"inputSchema is nested more than {MAX_SCHEMA_DEPTH} levels deep"
    try:
        size = jsontext.utf8_length(jsontext.dumps(schema))
    except ValueError:
        return "inputSchema holds a number JSON cannot carry"
    if size > MAX_SCHEMA_BYTES:
        return f"inputSchema has {size} bytes, more than {MAX_SCHEMA_BYTES}"
    return _meta_problem(schema) or _reference_problem(schema)


def _meta_problem(schema: Mapping[str, Any]) -> str | None:
    draft = schema.get("$schema")
    known = isinstance(draft, str) and draft.rstrip("#") in _DRAFTS
    checked = {key: value for key, value in schema.items() if known or key != "$schema"}
    try:
        jsonschema_rs.meta.validate(checked)
    except jsonschema_rs.ValidationError as error:
        return f"inputSchema is not JSON Schema: {one_line(error.message, 200)}"
    return None


def _reference_problem(schema: Mapping[str, Any]) -> str | None:
    for value in _walk(schema):
        ref = value.get("$ref")
        if isinstance(ref, str) and not ref.startswith("#"):
            return f"inputSchema refers to another document: {one_line(ref, 100)}"
    return None


def _walk(root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    stack: list[Any] = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            yield value
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)


def _deeper_than(root: Any, limit: int) -> bool:
    layer: list[Any] = [root]
    for _ in range(limit):
        below: list[Any] = []
        for value in layer:
            if isinstance(value, Mapping):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return False
        layer = below
    return True


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "missing"}.get(
        type(value), type(value).__name__
    )
