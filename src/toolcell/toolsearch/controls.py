"""Owns the controls as ordinary tools: names, flat input schemas, bodies (rules 10.2 to 10.4).

They are of kind CONTROL: the catalog drops them, the gate gives them hooks and a record.

Above: the runtime. Below: `description`, `tools`. Refuses to know: what the bodies do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcell.tools.tool import Execute, Tool, ToolKind
from toolcell.toolsearch import description as told

_STRING: Final = "string"


def _parameters(properties: Mapping[str, Any], required: tuple[str, ...]) -> Mapping[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _text(description: str) -> dict[str, Any]:
    return {"type": _STRING, "description": description}


_LIMIT: Final = {"type": "integer", "minimum": 1, "description": told.LIMIT}
_SEARCH: Final[Mapping[str, Any]] = {
    "query": _text(told.QUERY),
    "limit": _LIMIT,
    "queries": {
        "type": "array",
        "description": told.QUERIES,
        "items": {
            "type": "object",
            "properties": {"query": {"type": _STRING}, "limit": {"type": "integer", "minimum": 1}},
            "required": ["query"],
        },
    },
}
_CALL: Final[Mapping[str, Any]] = {
    "id": _text(told.ID),
    "args": {"type": "object", "description": told.ARGS, "additionalProperties": True},
}


def code_control(body: Execute) -> Tool:
    """Return `tool_search_code`."""
    return _control(
        told.CODE_NAME,
        "Search and call tools",
        told.CODE_TOOL,
        body,
        _parameters({"code": _text(told.CODE)}, ("code",)),
    )


def structured_controls(search: Execute, describe: Execute, call: Execute) -> tuple[Tool, ...]:
    """Return `tool_search`, `tool_describe` and `tool_call`."""
    return (
        _control(
            told.SEARCH_NAME, "Search tools", told.SEARCH_TOOL, search, _parameters(_SEARCH, ())
        ),
        _control(
            told.DESCRIBE_NAME,
            "Describe a tool",
            told.DESCRIBE_TOOL,
            describe,
            _parameters({"id": _CALL["id"]}, ("id",)),
        ),
        _control(
            told.CALL_NAME, "Call a tool", told.CALL_TOOL, call, _parameters(_CALL, ("id", "args"))
        ),
    )


def _control(
    name: str, label: str, description: str, body: Execute, parameters: Mapping[str, Any]
) -> Tool:
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        execute=body,
        label=label,
        kind=ToolKind.CONTROL,
    )
