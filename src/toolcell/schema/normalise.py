"""Owns the input schema as model providers accept it; the original stays for validation.

Above: providers' payloads in direct mode. Below: `schema.{plain,positions,refs}`.
"""

from __future__ import annotations

from typing import Any

from toolcell.errors import SchemaError
from toolcell.schema.plain import as_names, copy_plain
from toolcell.schema.positions import rewrite
from toolcell.schema.refs import resolve

_MAX_HOPS = 16
_MAX_BRANCHES = 256
_REFUSED_AT_ROOT = (
    *("oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "const"),
    *("dependentSchemas", "$ref", "unevaluatedProperties"),
)
# Providers take booleans here.
_BOOLEAN_PLACES = frozenset(
    {"additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties"}
)


def provider_schema(schema: Any) -> dict[str, Any]:
    """Return a fresh schema that is an object at its root, without combinators there.

    PP-03: root `oneOf`, `anyOf`, `allOf` and `$ref` are merged: all properties, required only what
    every variant requires. PP-05: `properties` at the root and `items` of arrays are there. TS-09:
    boolean subschemas become `{}` or `{"not": {}}`. Nothing else changes. What is wider here than
    the original is caught when the call is checked against the original.

    A schema that cannot be copied (a cycle, no JSON) becomes an object with any members.
    """
    try:
        plain = copy_plain(schema)
    except SchemaError:
        plain = {}
    root = plain if isinstance(plain, dict) else {}
    merged = _Merger(root).merge(root)
    out = {key: value for key, value in root.items() if key not in _REFUSED_AT_ROOT}
    out |= {"type": "object", "properties": merged.properties}
    if merged.required or "required" in root:
        out["required"] = merged.required
    if merged.closed:
        out["additionalProperties"] = False
    return dict(rewrite(out, _with_items, _boolean))


def _with_items(members: dict[str, Any]) -> dict[str, Any]:
    kinds = members.get("type")
    is_array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
    if is_array and "items" not in members and "prefixItems" not in members:
        members["items"] = {}
    return members


def _boolean(keyword: str, value: bool) -> Any:
    if keyword in _BOOLEAN_PLACES:
        return value
    return {} if value else {"not": {}}


class _Merged:
    """What an object schema and its root combinators say together."""

    def __init__(self, properties: dict[str, Any], required: list[str], *, closed: bool) -> None:
        self.properties = properties
        self.required = required
        self.closed = closed


class _Merger:
    """Merges root combinators, wider rather than narrower."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.branches = _MAX_BRANCHES

    def merge(self, schema: Any, hops: int = 0) -> _Merged:
        """Return the members of a schema, its references and combinators included."""
        self.branches -= 1
        if not isinstance(schema, dict) or hops > _MAX_HOPS or self.branches < 0:
            return _Merged({}, [], closed=False)
        own = schema.get("properties")
        out = _Merged(
            dict(own) if isinstance(own, dict) else {},
            as_names(schema.get("required")),
            closed=schema.get("additionalProperties") is False,
        )
        together = list(schema["allOf"]) if isinstance(schema.get("allOf"), list) else []
        target = resolve(self.root, schema.get("$ref"))
        if target is not None:
            together.append(target.schema)
        for branch in together:
            self._add(out, self.merge(branch, hops + 1))
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                self._add(out, self._either([self.merge(b, hops + 1) for b in schema[key]]))
        return out

    def _add(self, out: _Merged, other: _Merged) -> None:
        for name, schema in other.properties.items():
            out.properties.setdefault(name, schema)
        out.required = list(dict.fromkeys([*out.required, *other.required]))
        out.closed = out.closed or other.closed

    def _either(self, variants: list[_Merged]) -> _Merged:
        shapes: dict[str, list[Any]] = {}
        for variant in variants:
            for name, schema in variant.properties.items():
                seen = shapes.setdefault(name, [])
                if schema not in seen:
                    seen.append(schema)
        properties = {n: s[0] if len(s) == 1 else {"anyOf": s} for n, s in shapes.items()}
        required = [n for n in variants[0].required if all(n in v.required for v in variants)]
        return _Merged(properties, required, closed=all(v.closed for v in variants))
