"""Owns `ToolSearchRuntime`: one run's controls over its catalog, and their counts on record.

Above: `app`. Below: the controls and their bodies, `calls.access`. Refuses to know: plans, policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from toolcell.base.clock import Clock
from toolcell.calls.access import RunCatalog
from toolcell.config.tool_search import ToolSearchMode, ToolSearchOptions
from toolcell.errors import CallError
from toolcell.protocol.events import CatalogUsed
from toolcell.protocol.sink import Sink
from toolcell.tools.content import ToolResult
from toolcell.tools.tool import Execute, SourcedTool, Tool, ToolContext
from toolcell.toolsearch.child.launch import Launcher
from toolcell.toolsearch.code import CodeSeat, run_code
from toolcell.toolsearch.controls import code_control, structured_controls
from toolcell.toolsearch.rendering import call_result, data_result
from toolcell.toolsearch.repair import selected, target
from toolcell.toolsearch.searching import asked, searched
from toolcell.toolsearch.selection import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSearchPorts:
    """What every run works with."""

    launcher: Launcher
    sink: Sink
    clock: Clock


def effective_mode(options: ToolSearchOptions, launcher: Launcher) -> tuple[ToolSearchMode, str]:
    """Return the mode of a run, and why where it is not the configured one (rule 10.2)."""
    if options.mode == "code" and launcher.trouble is not None:
        why = f"tools.toolSearch.mode is 'tools' instead of 'code': {launcher.trouble}"
        return "tools", why
    return options.mode, ""


class ToolSearchRuntime:
    """Tool Search for one run.

    Args:
        catalog: What may be searched, described and called.
        mode: The effective mode.
        options: The run's options.
        ports: What every run works with.

    Attributes:
        visible_tools: Names of what the model sees, for the counts; set when they are known.
    """

    def __init__(
        self,
        catalog: RunCatalog,
        mode: ToolSearchMode,
        options: ToolSearchOptions,
        ports: ToolSearchPorts,
    ) -> None:
        self.mode: ToolSearchMode = mode
        self.visible_tools: tuple[str, ...] = ()
        self._catalog = catalog
        self._options = options
        self._ports = ports
        self._selection = Selection(catalog)
        self._seat = CodeSeat(
            selection=self._selection,
            launcher=ports.launcher,
            clock=ports.clock,
            timeout_ms=options.code_timeout_ms,
        )
        self._running: set[anyio.CancelScope] = set()

    def controls(self) -> tuple[Tool, ...]:
        """Return the controls of the mode, in the order they are shown."""
        if self.mode == "code":
            return (code_control(self._body(self._code)),)
        return structured_controls(
            self._body(self._search), self._body(self._describe), self._body(self._call)
        )

    def show(self, names: tuple[str, ...], direct: frozenset[str]) -> None:
        """Take note of what the model sees.

        Args:
            names: Every visible name, for the counts.
            direct: Names and ids of visible tools that are not in the catalog.
        """
        self.visible_tools = names
        self._selection.direct = direct

    def hidden(self, name: str) -> SourcedTool | None:
        """Return the one visible hidden tool with exactly this name; never by id (rule 10.4)."""
        entry = self._selection.named(name)
        return None if entry is None else entry.sourced

    def telemetry(self) -> dict[str, Any]:
        """Return sizes and counts of the run (rule 10.7)."""
        return {**self._catalog.telemetry(), "visibleTools": list(self.visible_tools)}

    async def abort(self) -> None:
        """End every body and every call under way."""
        for scope in tuple(self._running):
            scope.cancel()

    async def _code(self, given: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return await run_code(self._seat, given, context, self.telemetry)

    async def _search(self, given: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        options = self._options
        wanted = asked(given, options.search_default_limit, options.max_search_limit)
        found = searched(self._catalog, wanted)
        return data_result(found.value, untrusted=found.untrusted, notes=found.notes)

    async def _describe(self, given: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        entry = selected(given, self._selection)
        described = self._catalog.describe(entry)
        return data_result(described, untrusted=not entry.sourced.trusted)

    async def _call(self, given: Mapping[str, Any], context: ToolContext) -> ToolResult:
        entry, arguments = target(given, self._selection)
        with self._catalog.numbered(context.call_id):
            result = await self._catalog.call(
                entry,
                arguments,
                parent_id=context.call_id,
                budget=context.deadline,
                on_update=context.update,
            )
        return call_result(entry, result)

    def _body(
        self, work: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]]
    ) -> Execute:
        """Return `work` so that an abort of the run ends it and its counts are on record."""

        async def execute(given: Mapping[str, Any], context: ToolContext) -> ToolResult:
            scope = anyio.CancelScope()
            self._running.add(scope)
            try:
                with scope:
                    return await work(given, context)
            finally:
                self._running.discard(scope)
                self._record(context)
            name = "tool_search_code" if self.mode == "code" else "the call"
            msg = f"{name} aborted"
            raise CallError(msg, code="aborted")

        return execute

    def _record(self, context: ToolContext) -> None:
        counts = self._catalog.telemetry()
        self._ports.sink.emit(
            CatalogUsed(
                scope=context.scope,
                at=self._ports.clock.wall(),
                call_id=context.call_id,
                mode=self.mode,
                catalog_size=counts["catalogSize"],
                sources=counts["sources"],
                searches=counts["searchCount"],
                describes=counts["describeCount"],
                calls=counts["callCount"],
                visible_tools=self.visible_tools,
            )
        )
