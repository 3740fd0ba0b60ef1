"""Owns `Invocation`: one call on its way through the gate.

Above: the gate and those who ask it. Below: `tools`, `protocol`, `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolcell.base.deadline import Deadline
from toolcell.protocol.scope import RunScope
from toolcell.tools.tool import SourcedTool


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
