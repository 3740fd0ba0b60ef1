"""Owns TypeScript declarations of tools: functions and namespaces for `.d.ts` files.

Above: the declaration files of code mode. Below: `schema.{comments,printer,reader}`.
Refuses to know: how names are made; they arrive as identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from toolcell.schema.comments import doc_comment, one_line, param_tags
from toolcell.schema.kinds import OBJECT
from toolcell.schema.model import UNKNOWN, Object, Type, Union
from toolcell.schema.plain import as_object
from toolcell.schema.printer import STEP, print_type
from toolcell.schema.reader import Bounds, Reader

MAX_DECLARATION = 32_768
"""Characters of one function or type (BEHAVIOURS 282)."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)
# ECMAScript's reserved words, strict mode included, and the two names it may not bind.
_RESERVED_WORDS = """
arguments await break case catch class const continue debugger default delete do else enum
eval export extends false finally for function if implements import in instanceof interface
let new null package private protected public return static super switch this throw true
try typeof var void while with yield
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_ANY_OBJECT = Object({}, frozenset(), UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How much is declared, and whether the callee fills in defaults itself."""

    bounds: Bounds
    fills_defaults: bool


_TOOL_BOUNDS = Bounds(
    depth=12, properties=256, literals=16, variants=8, literal_text=256, steps=6_000, widen=True
)
TOOL_STYLE = Style(bounds=_TOOL_BOUNDS, fills_defaults=False)
"""For tools of the catalog (BEHAVIOURS 282)."""
MCP_STYLE = Style(bounds=replace(_TOOL_BOUNDS, depth=8), fills_defaults=True)
"""For MCP methods: eight levels, and a member with a default need not be given
(BEHAVIOURS 227, 237, 240)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """One function to declare.

    Attributes:
        name: Its identifier; a reserved word is declared under another name and exported as this.
        description: Its text, of any origin.
        input_schema: JSON Schema of its one object argument.
        output: The type it promises, as TypeScript.
        parameters: The text between its brackets, instead of one made from `input_schema`.
        notes: Further lines of its doc comment, of any origin.
    """

    name: str
    description: str = ""
    input_schema: Any = None
    output: str = "unknown"
    parameters: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSpec:
    """A namespace inside another one: `resources`."""

    name: str
    members: tuple[FunctionSpec | NamespaceSpec, ...]


Member: TypeAlias = FunctionSpec | NamespaceSpec


def type_text(schema: Any, *, indent: int = 0, style: Style = TOOL_STYLE) -> str:
    """Return a schema as a TypeScript type that holds every value valid under it.

    Args:
        schema: A JSON Schema of any quality.
        indent: Steps of two blanks at which lines after the first stand.
        style: How much is said; never more than 32,768 characters.
    """
    for depth in (style.bounds.depth, 4, 2, 1):
        kind = Reader(schema, replace(style.bounds, depth=depth)).type_of()
        text = print_type(kind, indent)
        if len(text) <= MAX_DECLARATION:
            return text
    return "unknown"


def function_declaration(
    name: str,
    description: str,
    input_schema: Any,
    *,
    output: str,
    style: Style = TOOL_STYLE,
    notes: Sequence[str] = (),
) -> str:
    """Return `function name(input: {…}): Promise<output>;` with its doc comment.

    A name that is a reserved word gives a function of another name and an `export { … as name }`.
    It is meant for the top level of a file and starts with `declare`.

    Raises:
        ValueError: `name` is no identifier.
    """
    spec = FunctionSpec(
        name=name,
        description=description,
        input_schema=input_schema,
        output=output,
        notes=tuple(notes),
    )
    local, alias = local_name(name, frozenset())
    text = _function(spec, local, 0, style)
    return text + f"\n{alias}" if alias else text


def namespace_declaration(
    path: str, members: Sequence[Member], *, description: str = "", style: Style = MCP_STYLE
) -> str:
    """Return `declare namespace <path> { … }`, ending in a line break.

    Args:
        path: Identifiers joined by dots: `MCP.github`.
        members: Functions and inner namespaces, in the order to print.
        description: A doc comment of the whole.
        style: How much is said of each function.

    Raises:
        ValueError: a name is no identifier, or a namespace is named by a reserved word.
    """
    for part in path.split("."):
        _check_namespace(part)
    body = _body(members, 1, style)
    return f"{doc_comment(description, (), '')}declare namespace {path} {{\n{body}}}\n"


def local_name(name: str, taken: frozenset[str]) -> tuple[str, str | None]:
    """Return the name to declare a function under, and the line that exports it as `name`.

    Args:
        name: What callers write.
        taken: Names that are declared beside it.

    Returns:
        `(name, None)`, or for a reserved word `("delete_", "export { delete_ as delete };")`.

    Raises:
        ValueError: `name` is no identifier.
    """
    if not _IDENTIFIER.fullmatch(name):
        msg = f"{name!r} is no identifier; make names safe before declaring them"
        raise ValueError(msg)
    if name not in _RESERVED:
        return name, None
    local = f"{name}_"
    while local in taken:
        local += "_"
    return local, f"export {{ {local} as {name} }};"


def _check_namespace(name: str) -> None:
    if not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        msg = f"{name!r} cannot name a namespace; make names safe before declaring them"
        raise ValueError(msg)


def _body(members: Sequence[Member], indent: int, style: Style) -> str:
    taken = {member.name for member in members}
    # One export line makes TypeScript export nothing else by itself.
    explicit = any(isinstance(m, FunctionSpec) and m.name in _RESERVED for m in members)
    parts = []
    for member in members:
        if isinstance(member, NamespaceSpec):
            _check_namespace(member.name)
            word = "export namespace" if explicit else "namespace"
            inner = _body(member.members, indent + 1, style)
            prefix = STEP * indent
            parts.append(f"{prefix}{word} {member.name} {{\n{inner}{prefix}}}\n")
            continue
        local, alias = local_name(member.name, frozenset(taken))
        taken.add(local)
        text = _function(member, local, indent, style, exported=explicit and alias is None)
        parts.append(f"{text}\n{STEP * indent}{alias}\n" if alias else f"{text}\n")
    return "\n".join(parts)


def _function(
    spec: FunctionSpec, local: str, indent: int, style: Style, *, exported: bool = False
) -> str:
    prefix = STEP * indent
    word = "export function" if exported else "function" if indent else "declare function"
    head, tail = f"{prefix}{word} {local}(", f"): Promise<{spec.output}>;"
    if spec.parameters is not None:
        return doc_comment(spec.description, (), prefix) + head + spec.parameters + tail
    text = ""
    for depth in (style.bounds.depth, 4, 2, 1, 0):
        kind = _input_type(spec.input_schema, style, depth)
        properties = _properties(spec.input_schema)
        shown = [n for n in _names(kind) if n in properties]
        tags = param_tags(shown, properties, _needed(kind)) if depth > 1 else []
        tags = [*map(one_line, spec.notes), *tags] if depth > 1 else tags
        mark = ":" if _must_be_given(kind) else "?:"
        signature = f"{head}input{mark} {print_type(kind, indent)}{tail}"
        text = doc_comment(spec.description, tags, prefix) + signature
        if len(text) <= MAX_DECLARATION:
            break
    return text


def _properties(schema: Any) -> dict[Any, Any]:
    return as_object((as_object(schema) or {}).get("properties")) or {}


def _input_type(schema: Any, style: Style, depth: int) -> Type:
    """Return the type of the one argument; it is an object whatever the schema forgets to say."""
    if depth == 0:
        return _ANY_OBJECT
    reader = Reader(schema, replace(style.bounds, depth=depth))
    kind = reader.type_of(frozenset({OBJECT}))
    objects = kind.members if isinstance(kind, Union) else (kind,)
    if not all(isinstance(member, Object) for member in objects):
        return _ANY_OBJECT
    if not style.fills_defaults:
        return kind
    properties = _properties(schema)
    filled = frozenset(n for n, s in properties.items() if "default" in (as_object(s) or {}))
    relaxed = tuple(_relaxed(m, filled, properties) for m in objects if isinstance(m, Object))
    return Union(relaxed) if isinstance(kind, Union) else relaxed[0]


def _relaxed(kind: Object, filled: frozenset[str], properties: dict[Any, Any]) -> Object:
    """Return an object whose defaulted members need not be given, needed ones first."""
    required = kind.required - filled
    order = {name: index for index, name in enumerate(properties)}
    rest = [name for name in kind.properties if name not in required]
    rest.sort(key=lambda name: order.get(name, len(order)))
    names = [*(name for name in kind.properties if name in required), *rest]
    return replace(kind, properties={n: kind.properties[n] for n in names}, required=required)


def _names(kind: Type) -> list[str]:
    objects = kind.members if isinstance(kind, Union) else (kind,)
    return list(dict.fromkeys(n for m in objects if isinstance(m, Object) for n in m.properties))


def _needed(kind: Type) -> frozenset[str]:
    objects = kind.members if isinstance(kind, Union) else (kind,)
    needed = [m.required for m in objects if isinstance(m, Object)]
    return frozenset.intersection(*needed) if needed else frozenset()


def _must_be_given(kind: Type) -> bool:
    objects = kind.members if isinstance(kind, Union) else (kind,)
    return all(isinstance(m, Object) and bool(m.required) for m in objects)
