"""Owns local tools as a source: what the library is handed, and core tools: `openclaw:core:<name>`.

Above: `app`, the public face. Below: `tools`, `sources.contract`. Refuses to know: policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolcell.errors import ToolDefinitionError
from toolcell.sources.contract import Unavailable
from toolcell.tools.decorator import AnyTool, as_tool
from toolcell.tools.tool import SourcedTool, core_tool


class LocalSource:
    """Trusted local tools (DESIGN, Names). Their set does not change."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        """Take tools and functions, in order.

        Raises:
            ToolDefinitionError: one cannot be a tool, or two share a name.
        """
        taken: dict[str, SourcedTool] = {}
        for given in tools:
            sourced = core_tool(as_tool(given))
            name = sourced.tool.name
            if name in taken:
                message = (
                    f"two local tools are named {name!r}, so both would be {sourced.id!r}. "
                    "Give one another name: @tool(name=...)."
                )
                raise ToolDefinitionError(message)
            taken[name] = sourced
        self._tools = tuple(taken.values())

    @property
    def version(self) -> int:
        """Local tools stay as they were given."""
        return 1

    def tools(self) -> Sequence[SourcedTool]:
        """Return them in the order they were given."""
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """Return nothing."""
        return ()

    async def start(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""
