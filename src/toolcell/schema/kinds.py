"""Owns which kinds of JSON value a schema can admit, before its details are read.

Above: the reader. Below: `schema.{algebra,model,plain,refs}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from toolcell.schema.algebra import union
from toolcell.schema.model import UNKNOWN, Primitive, Type
from toolcell.schema.plain import as_list, as_object
from toolcell.schema.refs import resolve

Kinds: TypeAlias = frozenset[str]

OBJECT = "object"
ARRAY = "array"
NULL = "null"
_ALL = ("string", "number", "integer", "boolean", OBJECT, ARRAY, NULL)
_MAX_CHAIN = 6
_MAX_BRANCHES = 16
_LEGACY = ("draft-03", "draft-04", "draft-06", "draft-07")
_OBJECT_WORDS = ("properties", "additionalProperties", "patternProperties")
_ARRAY_WORDS = ("items", "prefixItems")


def is_legacy(members: dict[Any, Any]) -> bool:
    """Whether the document is of a draft in which `$ref` hides the keywords beside it."""
    dialect = members.get("$schema")
    return isinstance(dialect, str) and any(draft in dialect for draft in _LEGACY)


def common(a: Kinds | None, b: Kinds | None) -> Kinds | None:
    """Return the kinds both admit; None admits every kind."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def kind_of_value(value: Any) -> Kinds:
    """Return the kind of a JSON value; a whole number is a number and an integer, NaN none."""
    if value is None:
        return frozenset({NULL})
    if isinstance(value, str):
        return frozenset({"string"})
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"number", "integer"})
    if isinstance(value, float):
        return frozenset({"number"}) if math.isfinite(value) else frozenset()
    return frozenset({ARRAY if as_list(value) is not None else OBJECT})


def stated(members: dict[Any, Any]) -> Kinds | None:
    """Return the kinds that `type` and `nullable` name, or None when they name none."""
    names = members.get("type")
    listed = [names] if isinstance(names, str) else as_list(names)
    if not listed or not all(isinstance(n, str) and n in _ALL for n in listed):
        return None
    kinds = set(listed)
    if "number" in kinds:
        kinds.add("integer")
    if members.get("nullable") is True:
        kinds.add(NULL)
    return frozenset(kinds)


def guess(members: dict[Any, Any]) -> Kinds | None:
    """Return the kind that keywords beside a missing `type` speak of."""
    if any(word in members for word in _OBJECT_WORDS):
        return frozenset({OBJECT})
    if any(word in members for word in _ARRAY_WORDS):
        return frozenset({ARRAY})
    return None


def ordered(members: dict[Any, Any], kinds: Kinds) -> list[str]:
    """Return kinds in the order the schema lists them; `integer` only where `number` is not."""
    names = members.get("type")
    listed = [n for n in (as_list(names) or ()) if isinstance(n, str)]
    out = [name for name in dict.fromkeys((*listed, *_ALL)) if name in kinds]
    return [name for name in out if name != "integer" or "number" not in kinds]


def primitives_of(values: Sequence[Any], kinds: Kinds | None) -> Type:
    """Return the union of the primitive types of many values, or unknown for containers."""
    found: set[str] = set()
    for value in values:
        own = kind_of_value(value)
        if kinds is None or own & kinds:
            found |= {"number"} if "number" in own else own
    if found & {OBJECT, ARRAY}:
        return UNKNOWN
    return union(Primitive(name) for name in _ALL if name in found)


def kinds_of(
    members: dict[Any, Any], root: Any, *, legacy: bool, chain: int = _MAX_CHAIN
) -> Kinds | None:
    """Return the kinds a schema admits by itself and by what it refers to; None for every kind.

    Only a chain of references is followed, and the members of the first `allOf`: a cheap look
    whose cost does not multiply. Seeing less than there is only makes the answer wider.
    """
    kinds = None if legacy and "$ref" in members else stated(members)
    if "$ref" in members and chain:
        target = resolve(root, members["$ref"])
        there = as_object(target.schema) if target is not None else None
        if target is not None and there is not None:
            further = kinds_of(there, target.root, legacy=legacy, chain=chain - 1)
            kinds = common(kinds, further)
    if kinds is None and chain == _MAX_CHAIN:
        for branch in (as_list(members.get("allOf")) or ())[:_MAX_BRANCHES]:
            there = as_object(branch)
            if there is not None:
                own = kinds_of(there, root, legacy=legacy, chain=_MAX_CHAIN - 1)
                kinds = common(kinds, own)
    return kinds
