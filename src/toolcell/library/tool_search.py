"""Owns `ToolSearch`: tools behind search, describe and call, for an agent loop of your own.

Above: the user's program, adapters. Below: `app`. The public Python face; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from toolcell.app.host import Host
from toolcell.app.run import Run
from toolcell.app.runtime import Parts, Runtime
from toolcell.config.overlay import with_tool_search
from toolcell.config.parse import parse_config
from toolcell.config.tool_search import ToolSearchMode
from toolcell.config.tree import Config
from toolcell.errors import ToolcellError
from toolcell.plugin_sdk.define import ToolPlugin
from toolcell.surface.definitions import definitions
from toolcell.tools.content import ToolResult

Shape = Literal["openai", "openai-responses", "anthropic", "mcp"]


class ToolSearchSession:
    """One session. `ToolSearch` is the first of them; `ToolSearch.session(id)` gives others."""

    _run: Run | None = None

    def definitions(self, shape: Shape = "openai") -> list[dict[str, Any]]:
        """Return the tools to send to the model: the controls of the mode and direct-only ones.

        Args:
            shape: The wire's form: `openai` (Chat Completions), `openai-responses`, `anthropic`
                or `mcp`.
        """
        return definitions(self._active().surface().plan, shape)

    @property
    def mode(self) -> ToolSearchMode | None:
        """The mode in force: `tools` where `code` has no isolated process here (rule 10.2).

        None where policy denies the controls, so that the tools are sent directly.
        """
        search = self._active().surface().search
        return None if search is None else search.mode

    @property
    def prompt(self) -> str:
        """What belongs into the system prompt: the directory in `directory` mode, else nothing."""
        return self._active().surface().plan.prompt

    def telemetry(self) -> dict[str, Any]:
        """Return the catalog's size and sources, the counts so far and the visible tools."""
        surface = self._active().surface()
        if surface.search is None:
            return surface.catalog.telemetry()
        return surface.search.telemetry()

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> ToolResult:
        """Run a tool call a model made: a control, a direct-only tool, or in `directory` mode any.

        Returns:
            `content` for the model, `details` as plain JSON, `is_error`. Unknown names and refused
            calls come back as errors, never as exceptions.
        """
        return await self._active().call(name, arguments, call_id=call_id)

    def _active(self) -> Run:
        if self._run is None:
            msg = "use it inside `async with ToolSearch(...) as ts:`"
            raise ToolcellError(msg, code="not_started")
        return self._run


class ToolSearch(ToolSearchSession):
    """Tool Search over your tools.

    ```python
    async with ToolSearch(tools=[...], mode="tools") as ts:
        tools = ts.definitions("openai")
        result = await ts.call("tool_search", {"query": "create an issue"})
    ```

    Making one enables Tool Search and not code mode, whatever the config says.

    Args:
        tools: Functions (their schema is read from the signature), `Tool`s and plugins.
        mode: Beats the config: `code` (its default), `tools` or `directory`.
        mcp_servers: MCP servers by name, with the keys of `mcp.servers` in a config file.
        config: The config tree, as a file would have it, or a `Config`.
        host: Hooks, an approver, an event sink and a clock of yours.

    Raises:
        ConfigError: a config value is wrong; the message names its path.
    """

    def __init__(
        self,
        tools: Sequence[Any] = (),
        *,
        mode: ToolSearchMode | None = None,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        config: Mapping[str, Any] | Config | None = None,
        host: Host | None = None,
    ) -> None:
        settings = with_tool_search(parse_config(config), mode=mode)
        parts = Parts(
            tools=[each for each in tools if not isinstance(each, ToolPlugin)],
            plugins=[each for each in tools if isinstance(each, ToolPlugin)],
            mcp_servers=mcp_servers or {},
        )
        self._runtime = Runtime(settings, parts, host or Host())
        self._sessions: dict[str, ToolSearchSession] = {}

    async def __aenter__(self) -> ToolSearch:
        """Start sources and make the first session."""
        await self._runtime.start()
        self._run = self._new_run(None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what runs and close everything."""
        self._run = None
        self._sessions.clear()
        await self._runtime.aclose()

    def session(self, session_id: str) -> ToolSearchSession:
        """Return the session with this id, made when it is new."""
        found = self._sessions.get(session_id)
        if found is None:
            self._active()
            found = self._sessions[session_id] = ToolSearchSession()
            found._run = self._new_run(session_id)
        return found

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return counts of calls and executors, for tests and health checks."""
        return self._runtime.statistics()

    def _new_run(self, session_id: str | None) -> Run:
        return self._runtime.run(self._runtime.scope(session_id=session_id, channel="library"))
