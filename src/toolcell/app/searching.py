"""Owns how Tool Search is put over one run's tools: the effective mode, the plan, the controls.

Above: `app.run`. Below: `toolsearch`, `surface`, `policy`. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcell.calls.access import RunCatalog
from toolcell.config.tool_search import ToolSearchMode, ToolSearchOptions
from toolcell.errors import CallError
from toolcell.policy.rules import Policy, denies
from toolcell.surface.client_names import check_client_names
from toolcell.surface.plan import SurfacePlan, is_direct, plan_tool_search
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Group, SourcedTool, Tool, ToolContext, ToolKind
from toolcell.toolsearch.description import CALL_NAME, CODE_NAME, SEARCH_NAME
from toolcell.toolsearch.directory import directory
from toolcell.toolsearch.likely import likely, required
from toolcell.toolsearch.runtime import ToolSearchPorts, ToolSearchRuntime, effective_mode

CONTROL_OWNER = "tool-search"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchChoice:
    """Tool Search as one run has it.

    Attributes:
        mode: The effective mode.
        options: The run's options.
        policy: For controls that policy denies.
        diagnostic: Why the mode is not the configured one, or empty.
    """

    mode: ToolSearchMode
    options: ToolSearchOptions
    policy: Policy
    diagnostic: str

    def catalogued(self, tools: tuple[SourcedTool, ...]) -> tuple[SourcedTool, ...]:
        """Return what goes into the catalog; a client's tools stay direct in directory mode."""
        if self.mode != "directory":
            return tools
        return tuple(tool for tool in tools if tool.source != "client")


def search_choice(
    options: ToolSearchOptions, policy: Policy, ports: ToolSearchPorts
) -> SearchChoice | None:
    """Return how a run has Tool Search; None when it is off, or policy denies its controls."""
    if not options.enabled:
        return None
    mode, diagnostic = effective_mode(options, ports.launcher)
    needed = (CODE_NAME,) if mode == "code" else (SEARCH_NAME, CALL_NAME)
    if any(denies(policy, _stand_in(name)) for name in needed):
        return None
    return SearchChoice(mode=mode, options=options, policy=policy, diagnostic=diagnostic)


def put_tool_search(
    choice: SearchChoice,
    catalog: RunCatalog,
    tools: Sequence[SourcedTool],
    ports: ToolSearchPorts,
    prompt: str,
) -> tuple[ToolSearchRuntime, SurfacePlan]:
    """Return the controls over `catalog`, and the plan that shows them.

    Args:
        choice: The mode and its options.
        catalog: The run's catalog.
        tools: The run's effective tools.
        ports: What every run works with.
        prompt: The user's message, for the schemas a turn is given at once.

    Raises:
        RequestError: client tools have names that cannot be kept apart (CN-07).
    """
    search = ToolSearchRuntime(catalog, choice.mode, choice.options, ports)
    given = [_control(tool) for tool in search.controls()]
    controls = [control for control in given if not denies(choice.policy, control)]
    direct = [tool for tool in tools if is_direct(tool)]
    if choice.mode == "directory":
        check_client_names(tools, mode="directory")
        plan = _with_directory(search, catalog, controls, direct, tools, prompt)
    else:
        check_client_names(tools, mode="code")
        plan = plan_tool_search(controls, direct)
    only_direct = [each for each in plan.visible if catalog.snapshot.get(each.sourced.id) is None]
    search.show(
        tuple(each.name for each in plan.visible),
        frozenset(n for each in only_direct for n in (each.name, each.sourced.id)),
    )
    return search, plan


def _with_directory(
    search: ToolSearchRuntime,
    catalog: RunCatalog,
    controls: Sequence[SourcedTool],
    direct: Sequence[SourcedTool],
    tools: Sequence[SourcedTool],
    prompt: str,
) -> SurfacePlan:
    always = required(catalog.entries())
    guessed = likely(catalog, prompt, but=always)
    clients = [t for t in tools if t.source == "client" and t.tool.kind is ToolKind.ORDINARY]
    shown = [*direct, *clients, *(entry.sourced for entry in (*always, *guessed))]
    return plan_tool_search(
        controls,
        shown,
        prompt=directory(catalog.entries(), shown={entry.id for entry in always}),
        hidden=search.hidden,
    )


def _stand_in(name: str) -> SourcedTool:
    """Return a control of this name to ask policy about."""

    async def never(_arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        raise CallError("it is not there", code="unavailable", effect="none")

    tool = Tool(name=name, description="", parameters={}, execute=never, kind=ToolKind.CONTROL)
    return _control(tool)


def _control(tool: Tool) -> SourcedTool:
    """Return a control as what the record calls it: never by the id of a tool of that name."""
    return SourcedTool(tool=tool, source="openclaw", owner=CONTROL_OWNER, group=Group.CORE)
