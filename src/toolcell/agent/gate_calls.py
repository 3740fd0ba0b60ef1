"""Owns the way from a model's tool call to the gate: the invocation, with what hooks are told.

Above: `app`, the library face. Below: `calls.invocation`. Refuses to know: what the gate does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from toolcell.calls.invocation import Invocation
from toolcell.protocol.scope import RunScope
from toolcell.surface.plan import VisibleTool
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import SourcedTool, ToolKind

if TYPE_CHECKING:
    from toolcell.agent.contract import CallTool


class GatePort(Protocol):
    """The one method of the gate that is needed."""

    async def call(self, invocation: Invocation) -> ToolResult:
        """Run one call; raises CallError."""
        ...


def gate_calls(
    gate: GatePort,
    scope: RunScope,
    *,
    on_update: Callable[[str, Any], None] | None = None,
) -> CallTool:
    """Return the `call_tool` port of a run.

    Args:
        gate: Where every call goes.
        scope: Whom the run acts for.
        on_update: Gets a call's id and its progress reports.
    """

    async def call_tool(
        visible: VisibleTool, arguments: Mapping[str, Any], call_id: str
    ) -> ToolResult:
        listener = None if on_update is None else _bound(on_update, call_id)
        return await gate.call(
            model_invocation(visible.sourced, arguments, scope, call_id, on_update=listener)
        )

    return call_tool


def model_invocation(
    sourced: SourcedTool,
    arguments: Mapping[str, Any],
    scope: RunScope,
    call_id: str,
    *,
    on_update: Callable[[Any], None] | None = None,
) -> Invocation:
    """Return the invocation of a call the model itself made.

    The outer `exec` of code mode tells hooks its kind and its language; a shell `exec` never has
    that kind (rule 3.12).
    """
    cell = sourced.tool.kind is ToolKind.CONTROL and sourced.tool.name == "exec"
    kind: Literal["javascript", "typescript"] = (
        "typescript" if arguments.get("language") == "typescript" else "javascript"
    )
    return Invocation(
        sourced=sourced,
        arguments=arguments,
        scope=scope,
        call_id=call_id,
        on_update=on_update,
        tool_kind="code_mode_exec" if cell else None,
        tool_input_kind=kind if cell else None,
    )


def _bound(on_update: Callable[[str, Any], None], call_id: str) -> Callable[[Any], None]:
    return lambda update: on_update(call_id, update)
