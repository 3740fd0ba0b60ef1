"""Owns the small type language between JSON Schema and TypeScript text.

Above: the reader, which makes types; the printers, which write them. Below: nothing.
Every type is at least as wide as the schema it was read from: what cannot be said is `UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any value."""


@dataclass(frozen=True, slots=True)
class Never:
    """No value."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """`string`, `number`, `integer`, `boolean` or `null`; `bounds` such as `>= 1, <= 5`."""

    kind: str
    bounds: str = ""


@dataclass(frozen=True, slots=True)
class Literal:
    """One scalar value, as TypeScript text; `kind` as in `Primitive`."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """An array whose items are all of one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class Tuple:
    """An array with typed places, the first `required` of them present; then `rest`, or no more."""

    items: tuple[Type, ...]
    required: int
    rest: Type | None


@dataclass(frozen=True, slots=True)
class Object:
    """An object.

    Attributes:
        properties: Declared members, in the order to print.
        required: Names that must be present; some may not be declared.
        extra: The type of undeclared members; `NEVER` closes the object.
        unspecified: The schema is silent about undeclared members.
        partial: Something about its members could not be said (too many, patterns, bad names).
    """

    properties: Mapping[str, Type]
    required: frozenset[str]
    extra: Type
    unspecified: bool = False
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """One of several types: at least two, none of them a union."""

    members: tuple[Type, ...]


Type: TypeAlias = Unknown | Never | Primitive | Literal | ListOf | Tuple | Object | Union

UNKNOWN: Final = Unknown()
NEVER: Final = Never()


def complete(kind: Type) -> bool:
    """Whether a type says everything: no unknown, no open or partly known object (rule 7.2)."""
    match kind:
        case Primitive() | Literal():
            return True
        case ListOf(item):
            return complete(item)
        case Tuple(items, _, rest):
            return rest is None and all(map(complete, items))
        case Union(members):
            return all(map(complete, members))
        case Object():
            return (
                kind.extra == NEVER
                and not kind.partial
                and kind.required <= kind.properties.keys()
                and all(complete(t) or t == NEVER for t in kind.properties.values())
            )
        case _:
            return False
