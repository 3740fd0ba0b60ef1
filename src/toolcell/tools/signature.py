"""Owns the reading of a function: its parameters as a JSON Schema, its docstring, its return type.

Above: `tools.decorator`. Below: `tools.typeschema`, `docstring_parser`. Refuses to know: calls.
"""

from __future__ import annotations

import copy
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typing_extensions
from pydantic import ConfigDict, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python

from toolcell.base.jsontext import JsonObject, dumps
from toolcell.errors import ToolDefinitionError
from toolcell.tools.content import ImageContent, OtherContent, TextContent, ToolResult
from toolcell.tools.tool import ToolContext
from toolcell.tools.typeschema import (
    TYPE_ERRORS,
    adapter_for,
    first_line,
    make_typed_dict,
    readable,
    says_nothing,
    schema_for,
)

if TYPE_CHECKING:
    import docstring_parser

_RESULT_TYPES = (ToolResult, TextContent, ImageContent, OtherContent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter the model fills in."""

    name: str
    annotation: Any
    positional_only: bool
    has_default: bool
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What was read from a function.

    Attributes:
        parameters: Closed JSON Schema of the arguments.
        arguments: Turns plain JSON arguments into Python values, by parameter name.
        positional: Names (and defaults) of positional-only parameters, in order.
        context: Name of the parameter that takes the `ToolContext`, or None.
        description: The docstring without its sections.
        output_schema: Schema of the return type; None where it tells nothing.
        returns: Checks and writes the return value; None for undeclared types.
    """

    parameters: JsonObject
    arguments: TypeAdapter[Any]
    positional: tuple[Parameter, ...]
    context: str | None
    description: str
    output_schema: JsonObject | None
    returns: TypeAdapter[Any] | None


def read_signature(
    function: Callable[..., Any], *, local_names: Mapping[str, Any], typed_return: bool
) -> Signature:
    """Read a function.

    Args:
        function: A plain or async function, a bound method or a callable object.
        local_names: Names the annotations may use besides the function's globals.
        typed_return: Whether the return annotation must be one that JSON can carry; False when
            the author gives a schema for it.

    Raises:
        ToolDefinitionError: it cannot be called with one object of named JSON arguments; the
            message names the function and the parameter.
    """
    where = f"tool function {_qualified_name(function)!r}"
    hints = _hints(function, local_names, where)
    parameters, context = _parameters(function, hints, where)
    docs = _docs(function)
    schema, adapter = _arguments_schema(parameters, docs, where)
    output_schema, returns = _returns(hints.get("return", Any), where, must=typed_return)
    return Signature(
        parameters=schema,
        arguments=adapter,
        positional=tuple(each for each in parameters if each.positional_only),
        context=context,
        description=_description(docs),
        output_schema=output_schema,
        returns=returns,
    )


def _qualified_name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _hints(function: Any, local_names: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return resolved annotations of the function, or of the `__call__` of an object."""
    target = inspect.unwrap(function)
    while hasattr(target, "func"):  # functools.partial
        target = inspect.unwrap(target.func)
    if not isinstance(target, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        target = type(target).__call__
    names = {**local_names, **_closure(target)}
    try:
        return typing.get_type_hints(target, localns=names, include_extras=True)
    except NameError as error:
        message = (
            f"{where}: an annotation names {error.name!r}, which is not defined where the tool "
            "is made. Import or define it above the function (not under TYPE_CHECKING)."
        )
        raise ToolDefinitionError(message) from error
    except (TypeError, SyntaxError, AttributeError) as error:
        message = f"{where}: an annotation cannot be read: {first_line(error)}"
        raise ToolDefinitionError(message) from error


def _closure(target: Any) -> dict[str, Any]:
    try:
        return dict(inspect.getclosurevars(target).nonlocals)
    except (TypeError, ValueError):
        return {}


def _parameters(
    function: Callable[..., Any], hints: Mapping[str, Any], where: str
) -> tuple[list[Parameter], str | None]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        msg = f"{where} has no readable signature: {error}"
        raise ToolDefinitionError(msg) from error
    found: list[Parameter] = []
    context: str | None = None
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        _refuse_kind(parameter, index, where, annotated=name in hints)
        annotation = hints.get(name, Any)
        if _is_context(annotation):
            if context is not None:
                message = f"{where}: {context!r} and {name!r} both take the ToolContext; keep one."
                raise ToolDefinitionError(message)
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                message = f"{where}: parameter {name!r} takes the ToolContext: move it after '/'."
                raise ToolDefinitionError(message)
            context = name
            continue
        found.append(_read_parameter(parameter, annotation))
    return found, context


def _refuse_kind(parameter: inspect.Parameter, index: int, where: str, *, annotated: bool) -> None:
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        message = (
            f"{where}: parameter {stars + parameter.name!r} takes any number of arguments, which a "
            "tool's schema cannot say. Name each one, or take one list or dict."
        )
        raise ToolDefinitionError(message)
    if index == 0 and parameter.name in {"self", "cls"} and not annotated:
        message = (
            f"{where}: parameter {parameter.name!r} is that of an unbound method. Make the tool "
            "from an object: tool(thing.method)."
        )
        raise ToolDefinitionError(message)


def _is_context(annotation: Any) -> bool:
    if annotation is ToolContext:
        return True
    options = typing.get_args(annotation)
    return ToolContext in options and set(options) <= {ToolContext, type(None)}


def _read_parameter(parameter: inspect.Parameter, annotation: Any) -> Parameter:
    """Read a parameter; a pydantic `Field(...)` as its default is taken apart."""
    default = parameter.default
    has_default = default is not inspect.Parameter.empty
    if isinstance(default, FieldInfo):
        info = default
        default = info.get_default(call_default_factory=True)
        has_default = default is not PydanticUndefined
        bare = copy.copy(info)
        bare.default = PydanticUndefined
        bare.default_factory = None
        annotation = Annotated[annotation, bare]
    return Parameter(
        name=parameter.name,
        annotation=annotation,
        positional_only=parameter.kind is inspect.Parameter.POSITIONAL_ONLY,
        has_default=has_default,
        default=default if has_default else None,
    )


def _arguments_schema(
    parameters: list[Parameter], docs: docstring_parser.Docstring, where: str
) -> tuple[JsonObject, TypeAdapter[Any]]:
    """Return the closed schema of the arguments and the adapter that converts them."""
    fields: dict[str, Any] = {}
    try:
        for each in parameters:
            hint = readable(each.annotation)
            fields[each.name] = typing_extensions.NotRequired[hint] if each.has_default else hint
        made = make_typed_dict("Arguments", fields)
        made.__pydantic_config__ = ConfigDict(extra="forbid")
        adapter: TypeAdapter[Any] = TypeAdapter(made)
        schema = schema_for(adapter, "validation")
    except TYPE_ERRORS as error:
        raise _parameter_error(parameters, where, error) from error
    _annotate(schema, parameters, docs)
    return schema, adapter


def _parameter_error(
    parameters: list[Parameter], where: str, error: BaseException
) -> ToolDefinitionError:
    """Find the parameter that cannot be read; only then is each one tried alone."""
    for each in parameters:
        try:
            schema_for(adapter_for(each.annotation), "validation")
        except TYPE_ERRORS as found:
            return ToolDefinitionError(
                f"{where}: parameter {each.name!r} has no JSON Schema: {first_line(found)}. "
                "Use types JSON can carry, a pydantic model, a dataclass or a TypedDict."
            )
    return ToolDefinitionError(f"{where}: the parameters have no JSON Schema: {first_line(error)}")


def _annotate(
    schema: JsonObject, parameters: list[Parameter], docs: docstring_parser.Docstring
) -> None:
    """Add defaults, and descriptions from the docstring where the type gives none."""
    schema["additionalProperties"] = False
    told = {param.arg_name.lstrip("*"): param.description for param in docs.params}
    properties: JsonObject = schema.setdefault("properties", {})
    # Aliases rename properties; the order of both is the order of the parameters.
    for each, inner in zip(parameters, properties.values(), strict=True):
        description = told.get(each.name)
        if description and "description" not in inner:
            inner["description"] = " ".join(description.split())
        if each.has_default:
            shown = _json_default(each.default)
            if shown is not None:
                inner["default"] = shown[0]


def _json_default(value: Any) -> tuple[Any] | None:
    """Return the default as JSON in a tuple; None when JSON has no form for it."""
    try:
        plain = to_jsonable_python(value)
        dumps(plain)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return None
    return (plain,)


def _docs(function: Callable[..., Any]) -> docstring_parser.Docstring:
    import docstring_parser  # noqa: PLC0415 - for functions only

    return docstring_parser.parse(inspect.getdoc(function) or "")


def _description(docs: docstring_parser.Docstring) -> str:
    parts = [docs.short_description, docs.long_description]
    return "\n\n".join(part.strip() for part in parts if part and part.strip())


def _returns(
    annotation: Any, where: str, *, must: bool
) -> tuple[JsonObject | None, TypeAdapter[Any] | None]:
    """Return the output schema and the adapter of a return annotation."""
    if annotation in {Any, object, inspect.Parameter.empty} or _is_result(annotation):
        return None, None
    origin = typing.get_origin(annotation)
    name = getattr(origin or annotation, "__name__", "")
    if name in {"Iterator", "Generator", "AsyncIterator", "AsyncGenerator", "Iterable"}:
        message = f"{where} returns {annotation!r}: a result is one value. Return a list."
        raise ToolDefinitionError(message)
    try:
        adapter = adapter_for(annotation)
        schema = schema_for(adapter, "serialization")
    except TYPE_ERRORS as error:
        if not must:
            return None, None
        message = (
            f"{where} returns {annotation!r}, which has no JSON Schema: {first_line(error)}. "
            "Return plain data, a pydantic model, a dataclass or a TypedDict, or annotate Any."
        )
        raise ToolDefinitionError(message) from error
    return (None if says_nothing(schema) else schema), adapter


def _is_result(annotation: Any) -> bool:
    options = typing.get_args(annotation) or (annotation,)
    return any(isinstance(each, type) and issubclass(each, _RESULT_TYPES) for each in options)
