"""Owns `ToolSearch`: tools behind search, describe and call, for an agent loop of your own.

Above: the user's program, adapters. Below: `app`. The public Python face; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcell.app.host import Host
from toolcell.config.overlay import with_tool_search
from toolcell.config.parse import parse_config
from toolcell.config.tool_search import ToolSearchMode
from toolcell.config.tree import Config
from toolcell.library.face import Face, Session


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


class ToolSearch(Face[ToolSearchSession], ToolSearchSession):
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

    _session_type = ToolSearchSession

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
        self._take(settings, tools, mcp_servers, host)
