"""Owns JSON Schema made from Python types: closed, free of noise, with references written out.

Above: `tools.signature`, the plugin door. Below: `pydantic`. Refuses to know: functions, tools.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, Literal

import typing_extensions
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from toolcell.base.jsontext import JsonObject
from toolcell.errors import ToolDefinitionError

Mode = Literal["validation", "serialization"]

TYPE_ERRORS: Final = (
    PydanticSchemaGenerationError,
    PydanticUserError,
    PydanticInvalidForJsonSchema,
    NameError,
    TypeError,
)
"""What pydantic raises for a type it cannot read; each carries a text that names the type."""

_INLINE_NODES: Final = 5_000
"""Written-out references may not grow a schema beyond this many nodes; above it they stay."""

_MAPS: Final = ("properties", "patternProperties", "$defs")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES: Final = ("items", "additionalProperties", "not", "contains", "propertyNames")


class SchemaMaker(GenerateJsonSchema):
    """Pydantic's generator, but a field that is always written is always required."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        """Count a default as present where values are written out (never for a `TypedDict`)."""
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return field.get("serialization_exclude_if") is None
        return super().field_is_required(field, total)


def adapter_for(annotation: Any) -> TypeAdapter[Any]:
    """Return the pydantic adapter of a type; raises one of `TYPE_ERRORS`."""
    return TypeAdapter(readable(annotation))


def schema_for(adapter: TypeAdapter[Any], mode: Mode) -> JsonObject:
    """Return the JSON Schema of an adapter.

    Objects are closed unless their type says otherwise, titles are dropped, references that do
    not recur are written out. Raises one of `TYPE_ERRORS`, also for raw bytes, which JSON cannot
    carry.
    """
    raw = adapter.json_schema(mode=mode, schema_generator=SchemaMaker)
    return inline(tidy(raw))


def schema_of(described: Mapping[str, Any] | Any, mode: Mode, *, where: str) -> JsonObject:
    """Return a JSON Schema given as one, or made from a Python type.

    Raises:
        ToolDefinitionError: it is neither; `where` names the place.
    """
    if isinstance(described, Mapping):
        return dict(described)
    if described is None or isinstance(described, str | int | float | list | tuple):
        message = f"{where} is {described!r}: give a JSON Schema object or a Python type."
        raise ToolDefinitionError(message)
    try:
        return schema_for(adapter_for(described), mode)
    except TYPE_ERRORS as error:
        message = f"{where}: no JSON Schema can be made from {described!r}: {first_line(error)}"
        raise ToolDefinitionError(message) from error


def first_line(error: BaseException) -> str:
    """Return the first sentence of an error's text, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__


def tidy(schema: Any) -> Any:
    """Return a copy without titles, with objects closed and simple nullables written short."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "binary":
        raise TypeError("bytes have no JSON form; use str (base64 text)")
    out: JsonObject = {}
    for key, value in schema.items():
        if key in {"title", "discriminator"} and not isinstance(value, bool):
            continue
        if key in _MAPS and isinstance(value, dict):
            out[key] = {name: tidy(inner) for name, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            out[key] = [tidy(inner) for inner in value]
        elif key in _SINGLES:
            out[key] = tidy(value)
        else:
            out[key] = value
    if "properties" in out and "additionalProperties" not in out:
        out["additionalProperties"] = False
    elif out.get("type") == "object" and set(out) <= {"type", "description"}:
        out["additionalProperties"] = "properties" not in schema
    return _without_absent(_short_nullable(out))


def _without_absent(schema: JsonObject) -> JsonObject:
    """Write `anyOf` of one type as that type, and drop a null default the type does not allow.

    Both are what pydantic leaves of `T | SkipJsonSchema[None]`: may be left out, is never null.
    """
    branches = schema.get("anyOf")
    if isinstance(branches, list) and len(branches) == 1 and isinstance(branches[0], dict):
        schema = {**branches[0], **{k: v for k, v in schema.items() if k != "anyOf"}}
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds != "null" and schema.get("default", ...) is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    return schema


def _short_nullable(schema: JsonObject) -> JsonObject:
    """Write `anyOf: [{type: T}, {type: null}]` as `type: [T, null]`."""
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or len(branches) != 2 or branches[1] != {"type": "null"}:
        return schema
    first = branches[0]
    simple = isinstance(first, dict) and first.get("type") in {
        "string",
        "integer",
        "number",
        "boolean",
    }
    if not simple or "enum" in first or "const" in first:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**first, "type": [first["type"], "null"], **rest}


def inline(schema: JsonObject) -> JsonObject:
    """Write out `$ref`s to `$defs`; types that recur, and schemas that would explode, keep them."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return schema
    body = {key: value for key, value in schema.items() if key != "$defs"}
    inliner = _Inliner(definitions)
    try:
        out: JsonObject = inliner.write(body)
        kept = {name: inliner.write(definitions[name]) for name in sorted(inliner.recurring)}
    except RecursionError:
        return schema
    return {"$defs": kept, **out} if kept else out


class _Inliner:
    """One walk that writes references out; raises RecursionError when that would explode."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._nodes = 0
        uses = {name: _references(body) for name, body in definitions.items()}
        self.recurring = {name for name in uses if name in _reachable(name, uses)}

    def write(self, node: Any) -> Any:
        self._nodes += 1
        if self._nodes > _INLINE_NODES:
            raise RecursionError
        if isinstance(node, list):
            return [self.write(item) for item in node]
        if not isinstance(node, dict):
            return node
        name = _reference(node)
        if name is None or name in self.recurring or name not in self._definitions:
            return {key: self.write(value) for key, value in node.items()}
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return {**self.write(self._definitions[name]), **siblings}


def _reference(node: Mapping[str, Any]) -> str | None:
    """Return the name of the definition a `$ref` node refers to."""
    reference = node.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return None
    return reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")


def _references(node: Any) -> set[str]:
    """Return the names of all definitions below a node."""
    if isinstance(node, list):
        return set().union(*map(_references, node))
    if not isinstance(node, dict):
        return set()
    name = _reference(node)
    below: set[str] = set().union(*map(_references, node.values()))
    return below if name is None else below | {name}


def _reachable(start: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Return the definitions one gets to from another."""
    seen: set[str] = set()
    pending = list(uses[start])
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending.extend(uses.get(name, ()))
    return seen


def says_nothing(schema: Mapping[str, Any]) -> bool:
    """Whether a schema accepts any value, or any object: nothing a caller could rely on."""
    told = {key for key in schema if key not in {"description", "default"}}
    if not told:
        return True
    return told <= {"type", "additionalProperties"} and (
        schema.get("type") == "object" and schema.get("additionalProperties") in (True, {}, None)
    )


def make_typed_dict(name: str, fields: dict[str, Any]) -> Any:
    """Return a `TypedDict` class made at run time."""
    factory: Any = typing_extensions.TypedDict
    return factory(name, fields)


def readable(annotation: Any) -> Any:
    """Return the annotation with `typing.TypedDict` classes in a form pydantic reads.

    Before Python 3.12 `typing.TypedDict` does not keep what pydantic needs, so it refuses them;
    they are made again with `typing_extensions`.
    """
    if sys.version_info >= (3, 12):
        return annotation
    return _reread(annotation, {})


def _reread(annotation: Any, seen: dict[type, Any]) -> Any:
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _remade_typed_dict(annotation, seen)
    arguments = typing.get_args(annotation)
    if not arguments or typing.get_origin(annotation) is typing.Literal:
        return annotation
    fresh = tuple(_reread(argument, seen) for argument in arguments)
    if all(new is old for new, old in zip(fresh, arguments, strict=True)):
        return annotation
    return _with_arguments(annotation, fresh)


def _with_arguments(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    """Return a generic annotation with other arguments."""
    origin = typing.get_origin(annotation)
    if origin is types.UnionType:
        return typing.Union[arguments]  # noqa: UP007 - made from a tuple of types
    if origin is typing.Annotated:
        return typing.Annotated[arguments]
    if isinstance(annotation, types.GenericAlias):
        return origin[arguments]
    return annotation.copy_with(arguments)


def _remade_typed_dict(source: Any, seen: dict[type, Any]) -> Any:
    if source in seen:
        message = f"{source.__name__} refers to itself: import TypedDict from typing_extensions"
        raise TypeError(message)
    seen[source] = None
    fields: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(source, include_extras=True).items():
        origin = typing.get_origin(hint)
        if origin in {typing.Required, typing.NotRequired}:
            inner, needed = typing.get_args(hint)[0], origin is typing.Required
        else:
            inner, needed = hint, name in source.__required_keys__
        inner = _reread(inner, seen)
        fields[name] = inner if needed else typing_extensions.NotRequired[inner]
    made = make_typed_dict(source.__name__, fields)
    made.__doc__ = source.__doc__
    made.__module__ = source.__module__
    config = getattr(source, "__pydantic_config__", None)
    if config is not None:
        made.__pydantic_config__ = config
    del seen[source]
    return made
