"""Owns `Invocation`: one call on its way through the gate.

Above: the gate and those who ask it. Below: `tools`, `protocol`, `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolcell.base.deadline import Deadline
from toolcell.protocol.scope import RunScope
from toolcell.tools.tool import SourcedTool, ToolKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call.

    Attributes:
        sourced: The tool, exactly; the gate looks nothing up.
        arguments: Plain JSON as the caller gave it; checked by the gate, after the hooks.
        scope: Whom the run acts for.
        call_id: Unique in the run.
        parent_id: The `exec` call whose cell makes it.
        budget: Paused while an approval is open (rule 3.5).
        on_update: Gets the tool's progress reports.
        tool_kind: Told to hooks; `code_mode_exec` for a code cell (rule 3.12).
        tool_input_kind: Told to hooks with it.
        input_hint: The compact input type that an input error ends with.
        authority: Raises CallError when the caller may no longer make this call; asked again before
            the body runs and before its result is handed over (rule 8.1).
    """

    sourced: SourcedTool
    arguments: Any
    scope: RunScope
    call_id: str
    parent_id: str | None = None
    budget: Deadline | None = None
    on_update: Callable[[Any], None] | None = None
    tool_kind: Literal["code_mode_exec"] | None = None
    tool_input_kind: Literal["javascript", "typescript"] | None = None
    input_hint: str | None = None
    authority: Callable[[], None] | None = None

    @property
    def control(self) -> bool:
        """Whether this is a call of a control, such as the code cell itself."""
        return self.sourced.tool.kind is ToolKind.CONTROL

    @property
    def subject(self) -> str:
        """How messages name the tool: its exact id, or the plain name of a control."""
        return self.sourced.tool.name if self.control else self.sourced.id
