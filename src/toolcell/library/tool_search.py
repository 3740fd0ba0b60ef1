"""Owns `ToolSearch`: tools behind search, describe and call, for an agent loop of your own.

Above: the user's program, adapters. Below: `app`. The public Python face; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from toolcell.app.host import Host
from toolcell.config.overlay import with_tool_search
from toolcell.config.parse import parse_config
from toolcell.config.tool_search import ToolSearchMode
from toolcell.config.tree import Config
from toolcell.library.face import Session, Sessions


class ToolSearchSession(Session):
    """One session. `ToolSearch` is the first of them; `ToolSearch.session(id)` gives others.

    In `directory` mode `call` takes any tool by its name, also one the model was not sent.
    """

    _opening = "ToolSearch(...) as ts"

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
        self._opened = Sessions(settings, tools, mcp_servers, host, new=ToolSearchSession)

    async def __aenter__(self) -> ToolSearch:
        """Start sources and make the first session."""
        await self._opened.open(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what runs and close everything."""
        await self._opened.aclose(self)

    def session(self, session_id: str) -> ToolSearchSession:
        """Return the session with this id, made when it is new."""
        self._active()
        return self._opened.named(session_id)

    async def end_session(self, session_id: str) -> None:
        """End a session: its parked cells and saved results are gone. Unknown ids are ignored."""
        await self._opened.end(session_id)

    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """Return counts of calls, parked cells and executors, for tests and health checks."""
        return self._opened.runtime.statistics()
