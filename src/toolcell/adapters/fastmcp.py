"""Owns toolcell's tools as tools of a FastMCP server.

Above: the user's program. Below: `adapters.session`; `fastmcp` when it is used.
"""

from __future__ import annotations

from typing import Any

from toolcell.adapters.missing import needs
from toolcell.adapters.session import Asked, ToolSession, answered


def add_to_fastmcp(server: Any, session: ToolSession) -> None:
    """Add the session's tools to a `fastmcp.FastMCP` server.

    All clients of the server share the session; `toolcell mcp serve` gives each one its own.

    Raises:
        ToolcellError: FastMCP is not installed.
    """
    with needs("fastmcp"):
        from fastmcp.tools import Tool, ToolResult  # noqa: PLC0415 - an optional package

    class SessionTool(Tool):  # type: ignore[misc]
        """A tool of the session."""

        async def run(self, arguments: dict[str, Any]) -> Any:
            """Run one call."""
            answer = await answered(session, Asked("", self.name, arguments))
            return ToolResult(content=answer.text, is_error=answer.is_error)

    for tool in session.definitions("mcp"):
        server.add_tool(
            SessionTool(
                name=tool["name"],
                description=tool["description"],
                parameters=tool["inputSchema"],
            )
        )
