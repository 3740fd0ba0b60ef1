"""Owns `Run`: the tools of one run as its model sees them, and the way its calls take.

Policy, catalog, code mode and surface are put together here and nowhere else (rule 2.1). The result
is kept until a source changes; cells that are parked keep the catalog they started with.

Above: the library face, the agent door, CLI commands. Below: surface, code mode, calls, catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcell.agent.gate_calls import model_invocation
from toolcell.app.catalogs import CatalogShelf
from toolcell.app.effective import EffectiveTools
from toolcell.app.logsink import CATALOG
from toolcell.app.swarming import Swarming
from toolcell.app.toolbox import Toolbox
from toolcell.base.clock import Clock
from toolcell.base.identifiers import fresh
from toolcell.calls.access import RunCatalog
from toolcell.calls.gate import Gate
from toolcell.catalog.entry import Entry
from toolcell.catalog.search.searcher import Reranker
from toolcell.codemode.controls import tool_result, with_hook_view
from toolcell.codemode.results import Failed, Outcome
from toolcell.codemode.runtime import CodeModeRuntime, RuntimePorts
from toolcell.config.code_mode import CodeModeOptions
from toolcell.config.tool_search import ToolSearchOptions
from toolcell.errors import CallError
from toolcell.policy.rules import Policy, allows
from toolcell.protocol.events import Diagnostic
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink
from toolcell.sources.contract import Source
from toolcell.surface.activation import Activation, activation
from toolcell.surface.plan import SurfacePlan, VisibleTool, plan_code_mode
from toolcell.tools.content import TextContent, ToolResult
from toolcell.tools.tool import (
    Group,
    McpOrigin,
    SourcedTool,
    Tool,
    ToolContext,
)

if TYPE_CHECKING:  # imported by runs with Tool Search
    from toolcell.app.searching import SearchChoice
    from toolcell.toolsearch.runtime import ToolSearchPorts, ToolSearchRuntime

OnUpdate = Callable[[Any], None]
CONTROL_OWNER = "code-mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPorts:
    """What every run of a runtime works with."""

    toolbox: Toolbox
    effective: EffectiveTools
    tool_search: Callable[[], ToolSearchPorts]
    shelf: CatalogShelf
    gate: Gate
    code_mode: RuntimePorts
    sink: Sink
    clock: Clock
    swarming: Swarming
    reranker: Reranker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What differs from run to run.

    `sources` are tools of this run alone, such as a client's; `prompt` is the user's message;
    `takes_images` says that the model sees.
    """

    scope: RunScope
    options: CodeModeOptions
    policy: Policy
    tools_disabled: bool = False
    search: ToolSearchOptions = field(default_factory=ToolSearchOptions)
    prompt: str = ""
    sources: tuple[Source, ...] = ()
    replay_safe_only: bool = False
    takes_images: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSurface:
    """What one version of the tools comes to.

    Attributes:
        version: The toolbox's version it was made from.
        activation: What the tools are put behind, and why.
        plan: The tools the model sees.
        catalog: The hidden catalog as this run sees it.
        code: Code mode over it; None when it is not active.
        search: Tool Search over it; None when it is not active.
    """

    version: int
    activation: Activation
    plan: SurfacePlan
    catalog: RunCatalog
    code: CodeModeRuntime | None
    search: ToolSearchRuntime | None = None


class _Chosen(NamedTuple):
    """The tools of a run, what they are put behind, and those of them that are in its catalog."""

    tools: tuple[SourcedTool, ...]
    decided: Activation
    searching: SearchChoice | None
    catalogued: tuple[SourcedTool, ...]


class Run:
    """One run. Close it to end its cells."""

    def __init__(self, settings: RunSettings, ports: RunPorts) -> None:
        self._settings = settings
        self._ports = ports
        self._surface: RunSurface | None = None
        self._retired: list[RunSurface] = []
        self._told: set[str] = set()

    @property
    def scope(self) -> RunScope:
        """Whom it acts for."""
        return self._settings.scope

    def surface(self) -> RunSurface:
        """Return the tools as they are now; rebuilt only when a source changed."""
        version, current = self._version(), self._surface
        if current is not None and current.version == version:
            return current
        made = self._build(version)
        if current is not None:
            self._retired.append(current)
        self._surface = made
        return made

    async def ready(self) -> RunSurface:
        """Return the same; the bulk of a large catalog that is new is built off the event loop."""
        if self._surface is None or self._surface.version != self._version():
            await self._ports.shelf.ready(self._chosen().catalogued)
        return self.surface()

    async def plan(self) -> SurfacePlan:
        """Return what the next model call shows (the agent loop's port)."""
        return (await self.ready()).plan

    async def invoke(
        self,
        visible: VisibleTool,
        arguments: Mapping[str, Any],
        call_id: str,
        on_update: OnUpdate | None = None,
    ) -> ToolResult:
        """Run a call the model made, through the gate.

        Raises:
            CallError: there is no result.
        """
        tool, shown = with_hook_view(visible.sourced.tool, arguments)
        sourced = replace(visible.sourced, tool=tool)
        invocation = model_invocation(sourced, shown, self.scope, call_id, on_update=on_update)
        return await self._ports.gate.call(invocation)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> ToolResult:
        """Run a call by the name the model used; a failure is a result with `is_error`."""
        plan = await self.plan()
        visible = plan.resolve(name)
        if visible is None:
            shown = ", ".join(sorted(plan.allowed_names)) or "none"
            text = f"unknown tool {name!r}; the tools of this run are: {shown}"
            return _failure(text, "unknown_tool")
        try:
            return await self.invoke(visible, arguments, call_id or fresh("call"))
        except CallError as error:
            return _failure(error.message, error.code)

    async def exec(self, arguments: Mapping[str, Any], *, call_id: str | None = None) -> Outcome:
        """Run a cell through the gate, as a model's `exec` call does, and return its outcome."""
        return await self._control("exec", arguments, call_id)

    async def wait(self, arguments: Mapping[str, Any], *, call_id: str | None = None) -> Outcome:
        """Resume a cell through the gate, as a model's `wait` call does."""
        return await self._control("wait", arguments, call_id)

    async def abort(self, reason: str) -> None:
        """End every cell of this run."""
        for surface in (*self._retired, *([self._surface] if self._surface else [])):
            if surface.code is not None:
                await surface.code.abort(reason)
            if surface.search is not None:
                await surface.search.abort()

    async def aclose(self) -> None:
        """End every cell: the run is over."""
        await self.abort("the run is over")
        for surface in (*self._retired, *([self._surface] if self._surface else [])):
            surface.catalog.close()
        self._retired.clear()

    async def _control(
        self, name: str, arguments: Mapping[str, Any], call_id: str | None
    ) -> Outcome:
        surface = await self.ready()
        code, visible = surface.code, surface.plan.resolve(name)
        if code is None or visible is None:
            return Failed(
                error=f"code mode is not active in this run: {surface.activation.reason}",
                code="invalid_input",
                phase="input",
            )
        ended: list[Outcome] = []

        async def execute(given: Mapping[str, Any], context: ToolContext) -> ToolResult:
            operation = code.exec if name == "exec" else code.wait
            outcome = await operation(given, call_id=context.call_id, on_update=context.update)
            ended.append(outcome)
            return tool_result(outcome)

        tool = replace(visible.sourced.tool, execute=execute)
        caught = replace(visible, sourced=replace(visible.sourced, tool=tool))
        try:
            await self.invoke(caught, arguments, call_id or fresh("call"))
        except CallError as error:
            if not ended:
                return Failed(error=error.message, code="invalid_input", phase="host")
        return ended[-1]

    def _version(self) -> int:
        # Each version only grows, so the sum grows with any of them.
        own = sum(source.version for source in self._settings.sources)
        return self._ports.toolbox.version + own

    def _chosen(self) -> _Chosen:
        """Return which tools there are, and what they are put behind."""
        settings = self._settings
        tools = self._offer()
        if not settings.takes_images:
            tools = tuple(t for t in tools if not t.tool.needs_vision)
        if settings.replay_safe_only:
            tools = tuple(t for t in tools if t.trusted and t.tool.replay_safe)
        choice = self._search_choice()
        decided = activation(
            settings.options,
            tools,
            tools_disabled=settings.tools_disabled,
            tool_search=choice is not None,
        )
        searching = choice if decided.mode == "tool-search" else None
        catalogued = searching.catalogued(tools) if searching else tools
        return _Chosen(tools, decided, searching, catalogued)

    def _build(self, version: int) -> RunSurface:
        settings, ports = self._settings, self._ports
        tools, decided, searching, catalogued = self._chosen()
        snapshot = ports.shelf.snapshot(catalogued)
        limits = searching.options if searching else settings.options
        catalog = RunCatalog(
            snapshot,
            gate=ports.gate,
            scope=settings.scope,
            search_default_limit=limits.search_default_limit,
            max_search_limit=limits.max_search_limit,
        )
        catalog.unavailable = self._missing
        catalog.reranker = ports.reranker
        catalog.offered = self._offered
        code, search, plan = None, None, SurfacePlan(visible=(), mode="direct")
        if decided.mode == "code":
            code, plan = self._code_mode(catalog, tools)
        elif decided.mode == "direct":
            plan = ports.shelf.direct_plan(tools)
        elif searching is not None:
            search, plan = self._tool_search(searching, catalog, tools)
        fallback = (searching.diagnostic,) if searching and searching.diagnostic else ()
        self._tell((*snapshot.diagnostics, *plan.diagnostics, *fallback))
        return RunSurface(
            version=version,
            activation=decided,
            plan=plan,
            catalog=catalog,
            code=code,
            search=search,
        )

    def _offer(self) -> tuple[SourcedTool, ...]:
        """Return the tools this run may have, from wherever they come."""
        settings, swarm = self._settings, self._ports.swarming
        own = (tool for source in settings.sources for tool in source.tools())
        added = (t for t in (*swarm.offered(self.scope), *own) if allows(settings.policy, t))
        tools = swarm.permitted(self.scope, (*self._ports.effective.tools(settings.policy), *added))
        return (*tools, *swarm.granted(self.scope))

    def _offered(self, entry: Entry) -> bool:
        """Cells keep the catalog they began with; what left the tools since then is refused."""
        return self.surface().catalog.holds_same(entry)

    def _missing(self) -> dict[str, str]:
        """Say which sources are down; one that policy keeps from this run is not named."""
        return {
            each.owner: each.told or f"{each.owner} is unavailable: {each.reason}."
            for each in self._ports.toolbox.unavailable()
            if allows(self._settings.policy, _probe(each.owner))
        }

    def _code_mode(
        self, catalog: RunCatalog, tools: tuple[SourcedTool, ...]
    ) -> tuple[CodeModeRuntime, SurfacePlan]:
        code = CodeModeRuntime(
            catalog,
            self._settings.options,
            self._ports.code_mode,
            extra=self._ports.swarming.extensions(self.scope, tools),
        )
        code.always_restart_safe = self._settings.replay_safe_only
        plan = plan_code_mode(tools, [_control(tool) for tool in code.controls()])
        code.visible_tools = tuple(tool.name for tool in plan.visible)
        return code, plan

    def _search_choice(self) -> SearchChoice | None:
        settings = self._settings
        if not settings.search.enabled:
            return None
        from toolcell.app.searching import search_choice  # noqa: PLC0415 - when it is on

        return search_choice(settings.search, settings.policy, self._ports.tool_search())

    def _tool_search(
        self, choice: SearchChoice, catalog: RunCatalog, tools: tuple[SourcedTool, ...]
    ) -> tuple[ToolSearchRuntime, SurfacePlan]:
        from toolcell.app.searching import put_tool_search  # noqa: PLC0415 - as above

        ports = self._ports.tool_search()
        return put_tool_search(choice, catalog, tools, ports, self._settings.prompt)

    def _tell(self, diagnostics: tuple[str, ...]) -> None:
        for text in diagnostics:
            if text not in self._told:
                self._told.add(text)
                self._ports.sink.emit(
                    Diagnostic(
                        at=self._ports.clock.wall(),
                        level="warning",
                        subject=CATALOG,
                        message=text,
                        scope=self.scope,
                    )
                )


def _probe(owner: str) -> SourcedTool:
    """Return a stand-in for the tools of a server that is down, to ask policy about."""

    async def never(_arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        raise CallError("the server is down", code="unavailable", effect="none")

    tool = Tool(name="tool", description="", parameters={}, execute=never)
    origin = McpOrigin(server=owner, tool=tool.name)
    return SourcedTool(tool=tool, source="mcp", owner=owner, group=Group.MCP, mcp=origin)


def _control(tool: Tool) -> SourcedTool:
    """Return a control as what the record calls it: never by the id of the shell's own `exec`."""
    return SourcedTool(tool=tool, source="openclaw", owner=CONTROL_OWNER, group=Group.CORE)


def _failure(text: str, code: str) -> ToolResult:
    return ToolResult(
        content=(TextContent(text),), details={"error": text, "code": code}, is_error=True
    )
