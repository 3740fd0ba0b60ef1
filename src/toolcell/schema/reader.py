"""Owns reading a JSON Schema as a type: bounded, cycle-safe, never narrower than the schema.

Above: hints, declarations. Below: `schema.{algebra,dialect,kinds,literals,model,plain,refs}`.
Refuses to know: how a type is printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from toolcell.schema import kinds as kind_sets
from toolcell.schema.algebra import intersect, union
from toolcell.schema.dialect import dialect_of
from toolcell.schema.kinds import ARRAY, NULL, OBJECT, Kinds
from toolcell.schema.literals import literal, number_text
from toolcell.schema.model import (
    NEVER,
    UNKNOWN,
    ListOf,
    Literal,
    Object,
    Primitive,
    Tuple,
    Type,
    Union,
    Unknown,
)
from toolcell.schema.plain import as_list, as_names, as_object
from toolcell.schema.refs import is_document, resolve

MAX_HOPS = 64
"""References and combinators on the way from the root; together with the depth it bounds how deep
the reader itself recurses."""
MAX_NAME = 128
"""Characters of a property name that is shown (BEHAVIOURS 279)."""
MAX_TUPLE = 12
MAX_MEMBERS = 64
"""Members of one combinator that are looked at."""
NAMES_PER_STEP = 64
"""Names or values that cost as much as one subschema."""

# `if` and its kind may add members; what they add cannot be said.
_UNSAYABLE = ("not", "if", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef")

_SAYING = frozenset(
    (
        *("type", "nullable", "const", "enum", "properties", "required", "additionalProperties"),
        *("patternProperties", "unevaluatedProperties", "items", "prefixItems"),
        *("allOf", "anyOf", "oneOf", *_UNSAYABLE),
    )
)
"""Keywords that say something about a type beside a `$ref`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of a schema is read.

    Attributes:
        depth: Nested containers.
        properties: Members of one object.
        literals: Literal members of one union.
        variants: Other members of one union.
        literal_text: Characters of one literal.
        steps: Subschemas in all.
        alphabetical: Members sorted (BEHAVIOURS 266), else in the order of `required`, then of
            `properties` (BEHAVIOURS 237).
        widen: Too many literals become their primitive types, else unknown (BEHAVIOURS 238, 271).
        infer: A missing `type` is guessed from the keywords beside it.
        integer_bounds: Keep integers and their limits apart (BEHAVIOURS 268).
    """

    depth: int
    properties: int
    literals: int
    variants: int
    literal_text: int
    steps: int
    alphabetical: bool = False
    widen: bool = False
    infer: bool = False
    integer_bounds: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reader stands."""

    root: Any
    depth: int = 0
    hops: int = 0
    refs: frozenset[tuple[int, str]] = frozenset()

    def inside(self) -> Place:
        """Return the place of a member or an item."""
        return Place(self.root, self.depth + 1, self.hops, self.refs)

    def beside(self) -> Place:
        """Return the place of a subschema for the same value."""
        return Place(self.root, self.depth, self.hops + 1, self.refs)


class Reader:
    """Reads one schema once; `lossy` afterwards says that something could not be said."""

    def __init__(self, schema: Any, bounds: Bounds) -> None:
        self.bounds = bounds
        self.lossy = False
        self._schema = schema
        self._steps = bounds.steps
        self._dialect = dialect_of(as_object(schema))
        self._refs_stand_alone = self._dialect == "draft-07"

    def type_of(self, allowed: Kinds | None = None) -> Type:
        """Return the type of the whole schema; `allowed` are the kinds it may be anyway."""
        return self._read(self._schema, Place(self._schema), allowed)

    def _lose(self) -> Type:
        self.lossy = True
        return UNKNOWN

    def _read(self, schema: Any, at: Place, allowed: Kinds | None = None) -> Type:
        self._steps -= 1
        if schema is False:
            return NEVER
        members = {} if schema is True else as_object(schema)
        if members is None or self._steps < 0 or at.hops > MAX_HOPS:
            return self._lose()
        if schema is not at.root and is_document(members):
            at = replace(at, root=schema)
        if "$ref" in members and (self._refs_stand_alone or not _SAYING & members.keys()):
            return self._reference(members, at, allowed)
        found = kind_sets.kinds_of(members, at.root, legacy=self._refs_stand_alone)
        if found is None and allowed is None and self.bounds.infer:
            found = kind_sets.guess(members)
        return self._combined(members, at, kind_sets.common(found, allowed))

    def _combined(self, members: dict[Any, Any], at: Place, kinds: Kinds | None) -> Type:
        lossy, self.lossy = self.lossy, any(key in members for key in _UNSAYABLE)
        out = self._own(members, at, kinds)
        if "$ref" in members:
            out = intersect(out, self._reference(members, at, kinds))
        for schema in self._branches(members, "allOf"):
            out = intersect(out, self._read(schema, at.beside(), kinds))
        for key in ("anyOf", "oneOf"):
            if key in members:
                either = union(
                    self._read(s, at.beside(), kinds) for s in self._branches(members, key)
                )
                out = self._limited(intersect(out, either), fallback=out)
        if self._closes(members) and not self.lossy:
            out = _closed(out)
        self.lossy = self.lossy or lossy
        return out

    def _closes(self, members: dict[Any, Any]) -> bool:
        return self._dialect != "draft-07" and members.get("unevaluatedProperties") is False

    def _branches(self, members: dict[Any, Any], key: str) -> Iterable[Any]:
        if key not in members:
            return ()
        branches = as_list(members[key])
        if not branches or len(branches) > MAX_MEMBERS:
            self.lossy = True
            return () if key == "allOf" else (True,)
        return branches

    def _reference(self, members: dict[Any, Any], at: Place, kinds: Kinds | None) -> Type:
        reference = members["$ref"]
        target = resolve(at.root, reference)
        key = (id(at.root), str(reference))
        if target is None or key in at.refs:
            return self._lose()
        beside = at.beside()
        there = Place(target.root, beside.depth, beside.hops, beside.refs | {key})
        return self._read(target.schema, there, kinds)

    def _limited(self, kind: Type, *, fallback: Type) -> Type:
        """Keep unions within bounds: 8 literals, 5 or 8 other members (BEHAVIOURS 271, 272)."""
        if not isinstance(kind, Union):
            return kind
        literals = [m for m in _members(kind) if isinstance(m, Literal)]
        others = [m for m in _members(kind) if not isinstance(m, Literal)]
        if len(literals) > self.bounds.literals:
            self.lossy = True
            if not self.bounds.widen:
                return fallback
            kind = union([*others, *(Primitive(m.kind) for m in literals)])
            others = [m for m in _members(kind) if not isinstance(m, Literal)]
        if sum(m != Primitive(NULL) for m in others) > self.bounds.variants:
            self.lossy = True
            return fallback
        return kind

    def _own(self, members: dict[Any, Any], at: Place, kinds: Kinds | None) -> Type:
        """Return what the schema says by itself, its references and combinators apart."""
        if "const" in members:
            return self._constant(members["const"], kinds, at.depth)
        if "enum" in members:
            return self._enumeration(members["enum"], kinds, at.depth)
        if kinds is None:
            return UNKNOWN
        return self._limited(
            union(self._kind(name, members, at) for name in kind_sets.ordered(members, kinds)),
            fallback=UNKNOWN,
        )

    def _kind(self, name: str, members: dict[Any, Any], at: Place) -> Type:
        if name == OBJECT:
            return self._object(members, at)
        if name == ARRAY:
            return self._array(members, at)
        if name == "integer" and self.bounds.integer_bounds:
            return Primitive("integer", _integer_bounds(members))
        return Primitive("number" if name == "integer" else name)

    def _constant(self, value: Any, kinds: Kinds | None, depth: int) -> Type:
        self._steps -= 1
        if kinds is not None and not kind_sets.kind_of_value(value) & kinds:
            return NEVER
        if value is None:
            return Primitive(NULL)
        if isinstance(value, str | bool | int | float):
            return self._scalar(value)
        return self._constant_container(value, depth)

    def _scalar(self, value: str | float) -> Type:
        found = literal(value)
        if found is not None and len(found.text) <= self.bounds.literal_text + 2:
            return found
        self.lossy = True
        if not self.bounds.widen:
            return UNKNOWN
        return Primitive("string" if isinstance(value, str) else "number")

    def _constant_container(self, value: Any, depth: int) -> Type:
        if depth >= self.bounds.depth or self._steps < 0:
            return self._lose()
        items = as_list(value)
        if items is not None and len(items) <= MAX_TUPLE:
            parts = tuple(self._constant(item, None, depth + 1) for item in items)
            return Tuple(parts, len(parts), None)
        fields = as_object(value)
        if fields is None or len(fields) > self.bounds.properties:
            return self._lose()
        if not all(isinstance(name, str) and len(name) <= MAX_NAME for name in fields):
            return self._lose()
        properties = {name: self._constant(v, None, depth + 1) for name, v in fields.items()}
        return Object(properties, frozenset(properties), NEVER)

    def _enumeration(self, values: Any, kinds: Kinds | None, depth: int) -> Type:
        items = as_list(values)
        if not items or (len(items) > self.bounds.literals and not self.bounds.widen):
            return self._lose()
        self._steps -= len(items) // NAMES_PER_STEP
        if len(items) > MAX_MEMBERS:
            self.lossy = True
            return kind_sets.primitives_of(items, kinds)
        return self._limited(
            union(self._constant(value, kinds, depth) for value in items), fallback=UNKNOWN
        )

    def _object(self, members: dict[Any, Any], at: Place) -> Type:
        if at.depth >= self.bounds.depth:
            return self._lose()
        declared = as_object(members.get("properties")) or {}
        required = as_names(members.get("required"))
        self._steps -= (len(declared) + len(required)) // NAMES_PER_STEP
        names = [n for n in required if n in declared]
        mandatory = set(names)
        names += [n for n in declared if isinstance(n, str) and n not in mandatory]
        if self.bounds.alphabetical:
            names.sort(key=lambda name: (name not in mandatory, name))
        shown = [n for n in names if len(n) <= MAX_NAME][: self.bounds.properties]
        cut = len(shown) < len(declared)
        extra = UNKNOWN if cut else self._extra(members, at)
        self.lossy = self.lossy or cut
        return Object(
            properties={name: self._read(declared[name], at.inside()) for name in shown},
            required=frozenset(required),
            extra=extra,
            unspecified="additionalProperties" not in members and not cut,
            partial=cut or bool(members.get("patternProperties")),
        )

    def _extra(self, members: dict[Any, Any], at: Place) -> Type:
        others = members.get("additionalProperties", True)
        patterns = as_object(members.get("patternProperties")) or {}
        if len(patterns) > self.bounds.variants:
            return self._lose()
        return union(self._read(s, at.inside()) for s in (others, *patterns.values()))

    def _array(self, members: dict[Any, Any], at: Place) -> Type:
        if at.depth >= self.bounds.depth:
            return self._lose()
        items = members.get("items", True)
        modern = self._dialect == "2020-12"
        prefix = as_list(members.get("prefixItems")) or () if modern else ()
        if as_list(items) is not None:
            prefix, items = items, members.get("additionalItems", True)
        if not prefix:
            most = members.get("maxItems")
            if items is False or (type(most) is int and most == 0):
                return Tuple((), 0, None)
            return ListOf(self._read(items, at.inside()))
        if len(prefix) > MAX_TUPLE:
            self.lossy = True
            return ListOf(UNKNOWN)
        most = members.get("maxItems")
        closed = items is False or (type(most) is int and most <= len(prefix))
        if type(most) is int:
            prefix = prefix[: max(most, 0)]
        least = members.get("minItems")
        return Tuple(
            tuple(self._read(item, at.inside()) for item in prefix),
            min(max(least, 0), len(prefix)) if type(least) is int else 0,
            None if closed else self._read(items, at.inside()),
        )


def _integer_bounds(members: dict[Any, Any]) -> str:
    """Return `>= 1, <= 50` from the limits of an integer (BEHAVIOURS 268, TS-11)."""
    limits = (
        (">=", "minimum", "exclusiveMinimum"),
        ("<=", "maximum", "exclusiveMaximum"),
    )
    parts = []
    for sign, inclusive, exclusive in limits:
        value = number_text(members.get(inclusive))
        if value is not None:
            # Draft 4 writes `exclusiveMinimum: true` beside the limit.
            parts.append(f"{sign[0] if members.get(exclusive) is True else sign} {value}")
        value = number_text(members.get(exclusive))
        if value is not None:
            parts.append(f"{sign[0]} {value}")
    return ", ".join(parts)


def _members(kind: Type) -> tuple[Type, ...]:
    return kind.members if isinstance(kind, Union) else (kind,)


def _closed(kind: Type) -> Type:
    """Close objects that no part of their schema left open (`unevaluatedProperties: false`)."""
    if isinstance(kind, Union):
        return union(_closed(member) for member in kind.members)
    if isinstance(kind, Object) and kind.unspecified and isinstance(kind.extra, Unknown):
        return replace(kind, extra=NEVER)
    return kind
