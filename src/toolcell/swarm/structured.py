"""Owns how a child gives back a value of a schema: by calling one tool, checked like any call.

Above: `app.children`. Below: `tools`. Refuses to know: runs, models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolcell.protocol.messages import Message
from toolcell.swarm.ports import Gives
from toolcell.tools.content import MISSING, TextContent, ToolResult
from toolcell.tools.tool import SourcedTool, Tool, ToolContext, core_tool

NAME: Final = "structured_output"
NOT_CALLED: Final = "structured_output was not called"
NUDGE: Final = (
    "You have not given your result yet: call structured_output once with a value that fits its "
    "schema, and then stop."
)
_WRAPPED: Final = "value"


class StructuredOutput:
    """The result one child owes.

    Attributes:
        tool: What the child calls; the gate holds its argument to the schema.
        value: What it gave last; `MISSING` until then.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.value: Any = MISSING
        self._wrapped = schema.get("type") != "object"
        tool = Tool(
            name=NAME,
            label="Give the result",
            description="Give the result of your task. Call it once, when the work is done.",
            parameters=_in_object(schema) if self._wrapped else schema,
            execute=self._take,
            catalog_mode="direct-only",
        )
        self.tool: SourcedTool = core_tool(tool)

    async def _take(self, arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        self.value = arguments[_WRAPPED] if self._wrapped else dict(arguments)
        taken = TextContent("The result was taken.")
        # The child is done: another model call would only say so.
        return ToolResult(content=(taken,), details={"ok": True}, terminate=True)

    def problem(self, messages: Sequence[Message]) -> str | None:
        """Return why the last call did not give a value; None when there was no call."""
        calls = [c.id for message in messages for c in message.tool_calls if c.name == NAME]
        if not calls:
            return None
        return next((m.text for m in messages if m.tool_call_id == calls[-1]), None)


def given_value(arguments: Any, gives: Gives) -> Any:
    """Return the value in the arguments of a call that was taken; `MISSING` when none is there."""
    if not isinstance(arguments, Mapping):
        return MISSING
    return dict(arguments) if gives == "object" else arguments.get(_WRAPPED, MISSING)


def _in_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Tools take objects: another value goes into a member; definitions stay at the root."""
    inner = {name: part for name, part in schema.items() if name not in ("$defs", "definitions")}
    outer = {name: schema[name] for name in ("$defs", "definitions", "$schema") if name in schema}
    return {
        **outer,
        "type": "object",
        "properties": {_WRAPPED: inner},
        "required": [_WRAPPED],
        "additionalProperties": False,
    }
