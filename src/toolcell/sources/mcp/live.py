"""Owns one live session with one server: handshake, paged lists, one request at a time or many.

Above: the connection and its calls. Below: the MCP SDK, `sources.mcp.wire`.
Refuses to know: when to connect, and what a result means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.subscriptions import listen
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcell.errors import McpError
from toolcell.sources.mcp.text import one_line
from toolcell.sources.mcp.tools import Operation, operations_of
from toolcell.sources.mcp.wire import Ticket, Wire

MAX_PAGES = 500
MAX_LISTED = 10_000

_MODERN_ONLY = frozenset({types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND})


class Live:
    """A session after its handshake.

    Attributes:
        server: Name and version the server gives itself, on one line.
        protocol: The protocol revision agreed on.
        operations: The resource and prompt operations it has.
        in_flight: Calls waiting for their answer.
    """

    def __init__(self, session: ClientSession, wire: Wire) -> None:
        self._session = session
        self._wire = wire
        info = session.server_info
        name = f"{info.name} {info.version}" if info is not None else ""
        self.server = one_line(name, 120)
        self.protocol = session.protocol_version or ""
        capabilities = session.server_capabilities
        self.has_tools = capabilities is not None and capabilities.tools is not None
        self.operations: tuple[Operation, ...] = operations_of(
            resources=capabilities is not None and capabilities.resources is not None,
            prompts=capabilities is not None and capabilities.prompts is not None,
        )
        self.in_flight = 0

    @property
    def modern(self) -> bool:
        """Whether changes are announced on a stream that must be asked for (2026 revision)."""
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    async def request(
        self, request: types.Request[Any, Any], on_progress: ProgressFnT | None = None
    ) -> Mapping[str, Any]:
        """Send a request and return its raw result.

        Raises:
            MCPError: the server answered with an error, or the connection closed.
        """
        self.in_flight += 1
        try:
            answer = await self._session.send_request(
                request, Ticket, progress_callback=on_progress
            )
        finally:
            self.in_flight -= 1
        return self._wire.claim(answer.root["_meta"])

    async def list_tools(self) -> list[Any]:
        """Return the raw entries of every page.

        Raises:
            McpError: the pages never end, or a page is no list.
            MCPError: the server answered with an error, or the connection closed.
        """
        entries: list[Any] = []
        seen: set[str] = set()
        params: types.PaginatedRequestParams | None = None
        while True:
            page = await self._session.list_tools(params=params)
            raw = self._wire.claim(page.meta)
            tools = raw.get("tools")
            if not isinstance(tools, list):
                raise McpError("the answer to tools/list has no list of tools")
            entries.extend(tools)
            cursor = raw.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return entries
            if cursor in seen or len(seen) >= MAX_PAGES or len(entries) > MAX_LISTED:
                msg = f"tools/list does not end: {len(entries)} tools on {len(seen) + 1} pages"
                raise McpError(msg)
            seen.add(cursor)
            params = types.PaginatedRequestParams(cursor=cursor)

    async def ping(self) -> None:
        """Ask for a sign of life. Raises `MCPError` when there is none to be had."""
        await self._session.send_ping()

    async def changes(self) -> None:
        """Open the 2026 stream of tool-list changes and hold it until it ends."""
        async with listen(self._session, tools_list_changed=True) as events:
            async for _ in events:
                pass


async def greet(session: ClientSession, wire: Wire) -> Live:
    """Shake hands in the form every server of today knows; the 2026 form where only it is spoken.

    Raises:
        McpError: no protocol revision in common.
        MCPError: the server answered with an error, or the connection closed.
    """
    try:
        await session.initialize()
    except RuntimeError as error:
        raise McpError(one_line(str(error), 200)) from None
    except MCPError as error:
        if error.code not in _MODERN_ONLY:
            raise
        await session.discover()
        wire.modern = True
    return Live(session, wire)
