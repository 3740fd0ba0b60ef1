"""Owns the decision what a run's tools are put behind: rules 2.1, 2.3 and 2.4.

Above: `app`, the library face. Below: `config.code_mode`, `tools`. Refuses to know: how a setting
came about (`config.resolve` settles precedence, rule 1.4) and what the plan looks like.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from toolcell.config.code_mode import CodeModeOptions
from toolcell.tools.tool import SourcedTool, ToolKind

SurfaceMode = Literal["none", "direct", "code", "tool-search"]
"""`none`: the model is sent no tools at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The decision and, for `doctor` and logs, why."""

    mode: SurfaceMode
    reason: str

    @property
    def enforced(self) -> bool:
        """Whether the final payload is checked (rules 2.3, 2.6)."""
        return self.mode == "code"


def activation(
    options: CodeModeOptions,
    tools: Iterable[SourcedTool],
    *,
    raw_model_call: bool = False,
    tools_disabled: bool = False,
    tool_search: bool = False,
) -> Activation:
    """Decide, after policy has been applied and before anything is retained or catalogued.

    Args:
        options: The effective options of the agent on this model.
        tools: The effective tools of the run: those policy allows (rule 2.1).
        raw_model_call: The caller asked for the model alone.
        tools_disabled: `disableTools: true`.
        tool_search: Whether Tool Search is on.
    """
    nothing = _no_tools(tools, raw_model_call=raw_model_call, tools_disabled=tools_disabled)
    if nothing:
        return Activation(mode="none", reason=nothing)
    if options.enabled is True:
        also = "; tool search is on too and code mode wins" if tool_search else ""
        return Activation(mode="code", reason=f"tools.codeMode is on{also}")
    if tool_search:
        return Activation(mode="tool-search", reason="tools.toolSearch is on")
    if options.enabled == "auto":
        why = 'tools.codeMode is "auto" and the model is not marked compat.codeMode "preferred"'
        return Activation(mode="direct", reason=why)
    return Activation(mode="direct", reason="tools.codeMode is off")


def _no_tools(
    tools: Iterable[SourcedTool], *, raw_model_call: bool, tools_disabled: bool
) -> str | None:
    """Return why the run has no tools (rule 2.3), or None when it has some."""
    if raw_model_call:
        return "a raw model call has no tools"
    if tools_disabled:
        return "tools are disabled for this run"
    if all(sourced.tool.kind is ToolKind.CONTROL for sourced in tools):
        return "policy leaves no tools"
    return None
