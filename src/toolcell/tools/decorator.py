"""Owns `@tool`: a Python function becomes a `Tool`: schemas, conversion, threads.

Above: the public face, sources, the plugin door. Below: `tools.signature`, `tools.returned`.
Refuses to know: how a call is guarded.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

from pydantic import ValidationError

from toolcell.base.jsontext import JsonObject
from toolcell.errors import CallError, ToolDefinitionError
from toolcell.tools.content import ToolResult
from toolcell.tools.returned import to_result
from toolcell.tools.running import run_function
from toolcell.tools.signature import Signature, read_signature
from toolcell.tools.tool import Tool, ToolContext
from toolcell.tools.typeschema import schema_of

P = ParamSpec("P")
R = TypeVar("R")

MAX_NAME: typing.Final = 128

CatalogMode = Literal["catalog", "direct-only"]
ExecutionMode = Literal["parallel", "sequential"]


class ToolOptions(TypedDict, total=False):
    """What `@tool(...)` takes; see `Tool` for what each means.

    `name` defaults to the function's, `description` to its docstring, `output_schema` (a JSON
    Schema or a type) to its return type.
    """

    name: str | None
    description: str | None
    label: str | None
    output_schema: Any
    catalog_mode: CatalogMode
    execution_mode: ExecutionMode
    replay_safe: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionTool(Tool, Generic[P, R]):
    """A tool made from a function; calling it calls the function, as if it were not decorated."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: no schema, no conversion, no thread."""
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    function: None = None, /, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> FunctionTool[P, R]: ...
def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function: `@tool`, `@tool(name=...)` or `tool(thing.method)`.

    The parameters become a closed JSON Schema: types from the annotations (pydantic types, models,
    dataclasses, `TypedDict`, `Literal`, `Enum`, `Annotated[..., Field(...)]`), descriptions from
    the docstring (Google, NumPy or Sphinx style). A parameter annotated `ToolContext` is filled in
    by toolcell and not shown. The return type becomes `outputSchema` where JSON can say it.

    Arguments are converted to the annotated types before the call, what is returned to plain JSON
    after it. Sync functions run in threads of their own.

    Raises:
        ToolDefinitionError: the function cannot be a tool; the message names the parameter.
    """
    frame = inspect.currentframe()
    local_names = _names_around(frame.f_back if frame else None)
    del frame
    if function is None:
        return functools.partial(_make, options=options, local_names=local_names)
    return _make(function, options=options, local_names=local_names)


def _names_around(frame: FrameType | None) -> dict[str, Any]:
    """Return the local names where the decorator stands: string annotations may use them."""
    if frame is None or frame.f_code.co_name == "<module>":
        return {}
    return dict(frame.f_locals)


def _make(
    function: Callable[..., Any], *, options: ToolOptions, local_names: Mapping[str, Any]
) -> FunctionTool[..., Any]:
    if not callable(function) or isinstance(function, Tool | type):
        message = f"@tool takes a function, a bound method or a callable object, not {function!r}."
        raise ToolDefinitionError(message)
    unknown = sorted(set(options) - set(ToolOptions.__annotations__))
    if unknown:
        known = ", ".join(ToolOptions.__annotations__)
        msg = f"@tool has no option {unknown[0]!r}. Its options are {known}."
        raise ToolDefinitionError(msg)
    name = _name(function, options.get("name"))
    _refuse_generators(function, name)
    declared = options.get("output_schema")
    signature = read_signature(function, local_names=local_names, typed_return=declared is None)
    output_schema = (
        signature.output_schema
        if declared is None
        else schema_of(declared, "serialization", where=f"output_schema of tool {name!r}")
    )
    description = options.get("description")
    return FunctionTool(
        name=name,
        description=signature.description if description is None else description,
        parameters=signature.parameters,
        execute=_Body(name, function, signature),
        label=options.get("label"),
        output_schema=output_schema,
        catalog_mode=choice(name, "catalog_mode", options.get("catalog_mode", "catalog")),
        execution_mode=choice(name, "execution_mode", options.get("execution_mode", "parallel")),
        replay_safe=bool(options.get("replay_safe", False)),
        function=function,
    )


def check_name(name: Any, where: str) -> str:
    """Return a tool's name: any text of 1 to 128 characters; raises `ToolDefinitionError`."""
    if not isinstance(name, str) or not name.strip():
        msg = f"{where}: a tool's name must be text that is not empty."
        raise ToolDefinitionError(msg)
    if len(name) > MAX_NAME:
        message = (
            f"{where}: the name {name[:40]!r}… has {len(name)} characters, at most {MAX_NAME}."
        )
        raise ToolDefinitionError(message)
    return name


def _name(function: Any, given: str | None) -> str:
    if given is not None:
        return check_name(given, f"tool function {function!r}")
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    name = getattr(target, "__name__", "")
    if not name or name == "<lambda>":
        message = f"{function!r} has no name of its own: use tool(..., name=...)."
        raise ToolDefinitionError(message)
    return check_name(name, f"tool function {name!r}")


_CHOICES: typing.Final[Mapping[str, tuple[str, ...]]] = {
    "catalog_mode": typing.get_args(CatalogMode),
    "execution_mode": typing.get_args(ExecutionMode),
}


def choice(name: str, option: str, value: Any) -> Any:
    """Return the value of a mode option; raises `ToolDefinitionError` for an unknown one."""
    allowed = _CHOICES[option]
    if value not in allowed:
        message = f"tool {name!r}: {option}={value!r} must be one of {', '.join(allowed)}."
        raise ToolDefinitionError(message)
    return value


def _refuse_generators(function: Any, name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        message = f"tool function {name!r} is a generator; a result is one value. Return a list."
        raise ToolDefinitionError(message)


class _Body:
    """`Tool.execute` of a function: convert, call, convert back."""

    __slots__ = ("_function", "_name", "_signature")

    def __init__(self, name: str, function: Callable[..., Any], signature: Signature) -> None:
        self._name = name
        self._function = function
        self._signature = signature

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        positional, named = self._bind(arguments, context)
        value = await run_function(self._name, self._function, positional, named)
        return await to_result(self._name, value, self._signature.returns)

    def _bind(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> tuple[list[Any], JsonObject]:
        """Return Python arguments for plain JSON ones."""
        try:
            named: JsonObject = self._signature.arguments.validate_python(dict(arguments))
        except ValidationError as error:
            raise argument_error(self._name, error) from None
        positional = [named.pop(each.name, each.default) for each in self._signature.positional]
        if self._signature.context is not None:
            named[self._signature.context] = context
        return positional, named


def argument_error(name: str, error: ValidationError) -> CallError:
    """Return what the caller is told when arguments do not convert; the values are not shown."""
    problems = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'input'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    shown = "; ".join(problems[:5])
    return CallError(
        f"Tool {name!r} got arguments that do not fit: {shown}.",
        code="invalid_input",
        effect="none",
    )


AnyTool: typing.TypeAlias = Tool | Callable[..., Any]
"""What is accepted where tools are given: a `Tool`, or a function that becomes one."""


def as_tool(given: AnyTool) -> Tool:
    """Return `given` itself when it is a `Tool`, else `tool(given)`."""
    return given if isinstance(given, Tool) else _make(given, options={}, local_names={})
