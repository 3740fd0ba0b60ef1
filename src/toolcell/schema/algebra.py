"""Owns union and intersection of types. Both may widen, neither ever narrows wrongly.

Above: the reader. Below: `schema.model`.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    Unknown,
)

MAX_PRODUCT = 64
"""Pairs that the intersection of two unions may make before it keeps the narrower side whole."""


def union(types: Iterable[Type]) -> Type:
    """Return the union, flat, each member once, wider ones swallowing literals, `null` last."""
    members: list[Type] = []
    for kind in types:
        for member in kind.members if isinstance(kind, Union) else (kind,):
            if isinstance(member, Unknown):
                return UNKNOWN
            if not isinstance(member, Never) and member not in members:
                members.append(member)
    wide = {m.kind for m in members if isinstance(m, Primitive)}
    if "number" in wide:
        wide.add("integer")
    members = [m for m in members if not (isinstance(m, Literal) and m.kind in wide)]
    if "number" in wide:
        members = [m for m in members if not (isinstance(m, Primitive) and m.kind == "integer")]
    members = _whole_boolean(members)
    members.sort(key=lambda m: isinstance(m, Primitive) and m.kind == "null")
    if not members:
        return NEVER
    return members[0] if len(members) == 1 else Union(tuple(members))


def _whole_boolean(members: list[Type]) -> list[Type]:
    both = {Literal("true", "boolean"), Literal("false", "boolean")}
    if sum(1 for m in members if isinstance(m, Literal) and m in both) < len(both):
        return members
    out: list[Type] = []
    for member in members:
        if not (isinstance(member, Literal) and member.kind == "boolean"):
            out.append(member)
        elif Primitive("boolean") not in out:
            out.append(Primitive("boolean"))
    return out


def intersect(a: Type, b: Type) -> Type:  # noqa: PLR0911 - one return for each pair of shapes
    """Return a type that holds every value both hold."""
    if isinstance(a, Unknown) or a == b:
        return b
    if isinstance(b, Unknown):
        return a
    if isinstance(a, Never) or isinstance(b, Never):
        return NEVER
    if isinstance(a, Union) or isinstance(b, Union):
        return _distribute(a, b)
    if isinstance(a, Literal | Primitive) and isinstance(b, Literal | Primitive):
        return _scalars(a, b)
    if isinstance(a, Object) and isinstance(b, Object):
        return _objects(a, b)
    if isinstance(a, ListOf | Tuple) and isinstance(b, ListOf | Tuple):
        return _arrays(a, b)
    return NEVER


def _distribute(a: Type, b: Type) -> Type:
    left = a.members if isinstance(a, Union) else (a,)
    right = b.members if isinstance(b, Union) else (b,)
    if len(left) * len(right) > MAX_PRODUCT:
        return a if len(left) <= len(right) else b
    return union(intersect(x, y) for x in left for y in right)


def _scalars(a: Literal | Primitive, b: Literal | Primitive) -> Type:
    if isinstance(a, Literal) and isinstance(b, Literal):
        return NEVER  # equal ones were handled before
    narrow, wide = (a, b) if isinstance(a, Literal) or a.kind == "integer" else (b, a)
    if narrow.kind == wide.kind:
        if isinstance(narrow, Primitive) and not narrow.bounds:
            return wide
        return narrow
    return narrow if (narrow.kind, wide.kind) == ("integer", "number") else NEVER


def _objects(a: Object, b: Object) -> Type:
    required = a.required | b.required
    properties: dict[str, Type] = {}
    for name in (*a.properties, *(n for n in b.properties if n not in a.properties)):
        kind = intersect(a.properties.get(name, a.extra), b.properties.get(name, b.extra))
        if isinstance(kind, Never):
            if name in required:
                return NEVER
            if name not in a.properties or name not in b.properties:
                continue  # a closed side forbids it, and the result is closed too
        properties[name] = kind
    return Object(
        properties=properties,
        required=required,
        extra=intersect(a.extra, b.extra),
        unspecified=a.unspecified and b.unspecified,
        partial=a.partial or b.partial,
    )


def _arrays(a: ListOf | Tuple, b: ListOf | Tuple) -> Type:
    if isinstance(a, ListOf) and isinstance(b, ListOf):
        return ListOf(intersect(a.item, b.item))
    if isinstance(a, Tuple) and isinstance(b, ListOf):
        rest = None if a.rest is None else intersect(a.rest, b.item)
        return Tuple(tuple(intersect(x, b.item) for x in a.items), a.required, rest)
    if isinstance(a, ListOf):
        return _arrays(b, a)
    return a
