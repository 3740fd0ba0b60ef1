"""Owns the tool builder a plugin is handed: a tool from a name, schemas and an `execute` function.

Above: `plugin_sdk.define`. Below: `tools`. Refuses to know: loading, catalogs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypedDict, Unpack, cast

from pydantic import TypeAdapter, ValidationError

from toolcell.errors import ToolDefinitionError
from toolcell.tools.content import ToolResult
from toolcell.tools.decorator import ToolOptions, argument_error, check_name, choice, tool
from toolcell.tools.returned import to_result
from toolcell.tools.running import run_function
from toolcell.tools.tool import Tool, ToolContext
from toolcell.tools.typeschema import adapter_for, schema_of

_EMPTY: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}


class BuilderOptions(TypedDict, total=False):
    """What the builder takes. `name` and `execute` are required.

    `parameters` and `output_schema` are a JSON Schema or a Python type (a pydantic model, a
    dataclass, a `TypedDict`); a type for `parameters` also converts the arguments. Without
    `parameters` the schema is read from the signature of `execute`, as `@tool` does.
    """

    name: str
    description: str
    parameters: Any
    output_schema: Any
    execute: Callable[..., Any]
    label: str | None
    catalog_mode: Literal["catalog", "direct-only"]
    execution_mode: Literal["parallel", "sequential"]
    replay_safe: bool


class ToolBuilder(Protocol):
    """Makes one tool of a plugin."""

    def __call__(self, **options: Unpack[BuilderOptions]) -> Tool:
        """Return the tool; see `BuilderOptions`."""
        ...


def build_tool(**options: Unpack[BuilderOptions]) -> Tool:
    """Make a tool from its parts.

    With `parameters`, `execute` takes nothing, the arguments, or the arguments and the
    `ToolContext`; it is sync or async and returns plain data, a model or a `ToolResult`.

    Raises:
        ToolDefinitionError: a part is missing or makes no sense.
    """
    unknown = sorted(set(options) - set(BuilderOptions.__annotations__))
    if unknown:
        known = ", ".join(BuilderOptions.__annotations__)
        message = f"tool(...) has no option {unknown[0]!r}. Its options are {known}."
        raise ToolDefinitionError(message)
    name = check_name(options.get("name"), "tool(...)")
    execute = options.get("execute")
    if not callable(execute):
        message = f"tool {name!r}: execute must be a function, not {execute!r}."
        raise ToolDefinitionError(message)
    described = options.get("parameters")
    if described is None:
        rest = {
            key: value for key, value in options.items() if key not in {"execute", "parameters"}
        }
        return tool(execute, **cast("ToolOptions", rest))
    return _described_tool(name, execute, described, options)


def _described_tool(
    name: str, execute: Callable[..., Any], described: Any, options: BuilderOptions
) -> Tool:
    parameters = schema_of(described, "validation", where=f"parameters of tool {name!r}")
    if parameters.get("type", "object") != "object":
        kind = parameters["type"]
        message = f"parameters of tool {name!r} describe {kind!r}; a tool takes one object."
        raise ToolDefinitionError(message)
    if not isinstance(described, Mapping):
        parameters.pop("description", None)  # of the class; the tool has its own
    if not parameters:
        parameters = dict(_EMPTY)
    declared = options.get("output_schema")
    output_schema, returns = None, None
    if declared is not None:
        output_schema = schema_of(declared, "serialization", where=f"output_schema of {name!r}")
        returns = None if isinstance(declared, Mapping) else adapter_for(declared)
    converter = None if isinstance(described, Mapping) else adapter_for(described)
    return Tool(
        name=name,
        description=options.get("description", "") or inspect.getdoc(execute) or "",
        parameters=parameters,
        execute=_Execute(name, execute, converter, returns),
        label=options.get("label"),
        output_schema=output_schema,
        catalog_mode=choice(name, "catalog_mode", options.get("catalog_mode", "catalog")),
        execution_mode=choice(name, "execution_mode", options.get("execution_mode", "parallel")),
        replay_safe=bool(options.get("replay_safe", False)),
    )


class _Execute:
    """`Tool.execute` of a plugin's function."""

    __slots__ = ("_arity", "_converter", "_function", "_name", "_returns")

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        converter: TypeAdapter[Any] | None,
        returns: TypeAdapter[Any] | None,
    ) -> None:
        self._name = name
        self._function = function
        self._converter = converter
        self._returns = returns
        self._arity = _arity(name, function)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        taken: Any = dict(arguments)
        if self._converter is not None:
            try:
                taken = self._converter.validate_python(taken)
            except ValidationError as error:
                raise argument_error(self._name, error) from None
        given = (taken, context)[: self._arity]
        value = await run_function(self._name, self._function, given, {})
        return await to_result(self._name, value, self._returns)


def _arity(name: str, function: Callable[..., Any]) -> int:
    """Return how many of (arguments, context) the function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        message = f"tool {name!r}: the signature of execute cannot be read: {error}"
        raise ToolDefinitionError(message) from error
    kinds = inspect.Parameter
    if any(each.kind is kinds.VAR_POSITIONAL for each in parameters):
        return 2
    positional = [
        each
        for each in parameters
        if each.kind in {kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD}
    ]
    required = [each for each in positional if each.default is kinds.empty]
    forced = [
        each
        for each in parameters
        if each.kind is kinds.KEYWORD_ONLY and each.default is kinds.empty
    ]
    if len(required) > 2 or forced:
        message = (
            f"tool {name!r}: execute must take (), (arguments) or (arguments, context). "
            "To name the arguments in its signature, leave `parameters` out."
        )
        raise ToolDefinitionError(message)
    return min(len(positional), 2)
