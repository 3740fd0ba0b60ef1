"""Owns the scope of a namespace: plain data and tool markers, in a form that crosses (rule 6.3).

Above: the namespaces extension. Below: `errors`. Refuses to know: catalogs, runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolcell.errors import CellError

InputMapper: TypeAlias = Callable[[list[Any]], Any]
UNSAFE: Final = frozenset({"__proto__", "constructor", "prototype", ""})
SEPARATORS: Final = ("\0", ".")
MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000


@dataclass(frozen=True, slots=True)
class NamespaceTool:
    """A member of a scope that calls a tool; made by `create_code_mode_namespace_tool`."""

    tool_name: str
    input_mapper: InputMapper | None = None

    def input(self, arguments: list[Any]) -> Any:
        """Return the tool's input for these guest arguments; the first one, or `{}`."""
        if self.input_mapper is not None:
            return self.input_mapper(arguments)
        return arguments[0] if arguments and arguments[0] is not None else {}


def create_code_mode_namespace_tool(
    tool_name: str, input_mapper: InputMapper | None = None
) -> NamespaceTool:
    """Mark a member of a scope as callable.

    Args:
        tool_name: One of the namespace's required tools.
        input_mapper: Gets the list of guest arguments and returns the tool's input.
    """
    return NamespaceTool(tool_name, input_mapper)


@dataclass(frozen=True, slots=True)
class Scope:
    """A checked scope.

    Attributes:
        node: What the guest builds it from: `["v", value]`, `["c"]` for a callable,
            `["o", [[key, node], …]]`, `["a", [node, …]]`.
        tools: Each callable by its path.
    """

    node: list[Any]
    tools: Mapping[tuple[str, ...], NamespaceTool]


def read_scope(value: Any, *, where: str, allowed: Sequence[str]) -> Scope:
    """Return the checked scope that `create_scope` gave.

    Raises:
        CellError: it is no object, holds a raw function, a cycle, an unsafe name or a call to a
            tool that is not required; nothing of the guest has run.
    """
    if not isinstance(value, Mapping):
        msg = f"{where} must return an object, not {type(value).__name__}"
        raise _refused(msg)
    reader = _Reader(where, frozenset(allowed))
    return Scope(reader.node(value, (), ()), reader.tools)


class _Reader:
    """Walks a scope once, with its path and the containers it is inside of."""

    def __init__(self, where: str, allowed: frozenset[str]) -> None:
        self.tools: dict[tuple[str, ...], NamespaceTool] = {}
        self._where = where
        self._allowed = allowed
        self._nodes = 0

    def node(self, value: Any, path: tuple[str, ...], inside: tuple[int, ...]) -> list[Any]:
        """Return the form of `value` at `path`."""
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            msg = f"{self._where} is too large or too deep at {_shown(path)}"
            raise _refused(msg)
        if isinstance(value, NamespaceTool):
            return self._callable(value, path)
        if callable(value):
            msg = (
                f"{self._where} holds a raw function at {_shown(path)}; "
                "use create_code_mode_namespace_tool(tool_name)"
            )
            raise _refused(msg)
        if isinstance(value, Mapping | list | tuple):
            if id(value) in inside:
                msg = f"{self._where}: Circular reference at {_shown(path)}"
                raise _refused(msg)
            return self._container(value, path, (*inside, id(value)))
        return ["v", _plain(value)]

    def _callable(self, tool: NamespaceTool, path: tuple[str, ...]) -> list[Any]:
        if tool.tool_name not in self._allowed:
            msg = (
                f"{self._where} calls {tool.tool_name!r} at {_shown(path)}, which is not in "
                "requiredToolNames"
            )
            raise _refused(msg)
        self.tools[path] = tool
        return ["c"]

    def _container(self, value: Any, path: tuple[str, ...], inside: tuple[int, ...]) -> list[Any]:
        if not isinstance(value, Mapping):
            items = enumerate(value)
            return ["a", [self.node(item, (*path, str(i)), inside) for i, item in items]]
        members = []
        for key, item in value.items():
            if not isinstance(key, str) or unsafe(key):
                msg = f"Invalid code mode namespace path segment: {key!r} in {self._where}"
                raise _refused(msg)
            members.append([key, self.node(item, (*path, key), inside)])
        return ["o", members]


def unsafe(segment: str) -> bool:
    """Whether a path part reaches past its object or hides a separator (BEHAVIOURS 244)."""
    return segment in UNSAFE or any(separator in segment for separator in SEPARATORS)


def _plain(value: Any) -> Any:
    """Return a JSON-safe stand-in for anything that is not JSON (rule 6.3)."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return f"[{type(value).__name__}]"


def _shown(path: tuple[str, ...]) -> str:
    return ".".join(path) or "its root"


def _refused(message: str) -> CellError:
    return CellError(message, code="internal_error", phase="host")
