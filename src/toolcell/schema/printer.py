"""Owns types as full TypeScript text: members on lines of their own, valid under `--strict`.

Above: declarations. Below: `schema.{algebra,literals,model}`.
Refuses to know: JSON Schema.
"""

from __future__ import annotations

from dataclasses import replace

from toolcell.schema.algebra import union
from toolcell.schema.literals import property_name
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

STEP = "  "

# To TypeScript an object without such a member has the one of `Object.prototype`, so that `{}`
# would not be a `{ constructor?: string }`.
_INHERITED = frozenset(
    (
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    )
)


def print_type(kind: Type, indent: int) -> str:  # noqa: PLR0911 - one return for each kind
    """Return a type as TypeScript; lines after the first stand at `indent` steps."""
    match kind:
        case Primitive(name):
            return "number" if name == "integer" else name
        case Literal(text):
            return text
        case ListOf(item):
            return f"Array<{print_type(item, indent)}>"
        case Tuple():
            return _tuple(kind, indent)
        case Union(members):
            return " | ".join(print_type(member, indent) for member in members)
        case Object():
            return _object(kind, indent)
        case Never():
            return "never"
        case _:
            return "unknown"


def _tuple(kind: Tuple, indent: int) -> str:
    parts = []
    for index, item in enumerate(kind.items):
        text = print_type(item, indent)
        parts.append(text if index < kind.required else f"({text})?")
    if kind.rest is not None:
        parts.append(f"...Array<{print_type(kind.rest, indent)}>")
    return f"[{', '.join(parts)}]"


def _object(kind: Object, indent: int) -> str:
    if not kind.properties and not kind.required:
        return f"Record<string, {print_type(kind.extra, indent)}>"
    kind = _without_inherited(kind)
    inner = STEP * (indent + 1)
    lines = []
    undeclared = sorted(kind.required - kind.properties.keys())
    members = {**kind.properties, **dict.fromkeys(undeclared, kind.extra)}
    for name in sorted(members, key=lambda name: name not in kind.required):
        mark = "" if name in kind.required else "?"
        text = print_type(members[name], indent + 1)
        lines.append(f"{inner}{property_name(name)}{mark}: {text};")
    if kind.extra != NEVER:
        index = print_type(_index_type(kind), indent + 1)
        lines.append(f"{inner}[key: string]: {index};")
    return "\n".join(["{", *lines, STEP * indent + "}"])


def _without_inherited(kind: Object) -> Object:
    """Return an object whose members that may be left out and are inherited are unknown."""
    odd = (_INHERITED & kind.properties.keys()) - kind.required
    if not odd:
        return kind
    return replace(kind, properties={**kind.properties, **dict.fromkeys(odd, UNKNOWN)})


def _index_type(kind: Object) -> Type:
    """Return the index signature: TypeScript wants it to hold every declared member too."""
    index = union((kind.extra, *kind.properties.values()))
    if isinstance(index, Unknown) or kind.properties.keys() <= kind.required:
        return index
    return union((index, Primitive("undefined"))) if index != NEVER else UNKNOWN
