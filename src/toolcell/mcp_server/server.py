"""Owns the protocol server: which session a request belongs to, and the two methods served.

Handshake revisions have sessions: a connection is one. The 2026 revision has none; over stdio the
one client of the process is the session, over HTTP it is declined, for a parked program must stay
with the client that began it. Clients that speak both then shake hands.

Above: transports. Below: the MCP SDK, client sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from toolcell.base.version import VERSION
from toolcell.mcp_server.elicitation import channel_over, offers_forms
from toolcell.mcp_server.progress import Report
from toolcell.mcp_server.rounds import Round
from toolcell.mcp_server.sessions import ClientSession, ClientSessions

CHANGES_SECONDS: Final = 0.25
"""How often the tools' version is compared: sources have a version and no event, it costs 1 µs."""

Context = ServerRequestContext[Any, Any]


class McpServer(Server[Any]):
    """The protocol server over one runtime.

    Args:
        sessions: Where client sessions come from.
        single: The process has one client: every request is of one session (stdio).
    """

    def __init__(self, sessions: ClientSessions, *, single: bool) -> None:
        self._bus = InMemorySubscriptionBus()
        super().__init__(
            "toolcell",
            version=VERSION,
            title="toolcell",
            instructions=sessions.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus) if single else None,
        )
        self._sessions = sessions
        self._only = sessions.open() if single else None
        self._by_connection: dict[Connection, ClientSession] = {}
        if not single:
            self.add_request_handler("server/discover", types.RequestParams, _handshake_only)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Announce `tools.listChanged`, which the HTTP transport leaves off by itself."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )

    async def announce_changes(self) -> None:
        """Tell every client when the catalog changed, until cancelled."""
        seen = self._sessions.version
        while True:
            await anyio.sleep(CHANGES_SECONDS)
            version = self._sessions.version
            if version == seen:
                continue
            seen = version
            for connection in tuple(self._by_connection):
                await connection.send_tool_list_changed()
            await self._bus.publish(ToolsListChanged())

    async def _list_tools(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await self._session(context).tools())

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        session = self._session(context)
        arguments: Mapping[str, Any] = params.arguments or {}
        report = _report(context)
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern and (offers_forms(context) or params.request_state is not None):

            async def work(made: Round) -> types.CallToolResult:
                heard = made.report if report is not None else None
                return await session.call(params.name, arguments, heard, made)

            return await session.rounds.take(params, report, work)
        return await session.call(params.name, arguments, report, channel_over(context))

    def _session(self, context: Context) -> ClientSession:
        """Return the session of a request; the first request of a connection makes it.

        Raises:
            MCPError: the request is of a revision without sessions.
        """
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        if self._only is not None and modern:
            return self._only
        if modern:
            raise _declined(context.protocol_version)
        connection = connection_of(context)
        session = self._by_connection.get(connection)
        if session is None:
            session = self._only or self._sessions.open()
            self._by_connection[connection] = session
            connection.exit_stack.push_async_callback(self._ended, connection)
        return session

    async def _ended(self, connection: Connection) -> None:
        session = self._by_connection.pop(connection, None)
        if session is not None:
            await self._sessions.end(session)


def connection_of(context: Context) -> Connection:
    """Return the connection a request came over: its end is the session's end.

    The SDK has the connection's `exit_stack` for this and no public way to it from a request.
    """
    return context.session._connection


def _report(context: Context) -> Report | None:
    asked = context.meta is not None and context.meta.get("progress_token") is not None
    return context.session.report_progress if asked else None


def _declined(version: str) -> MCPError:
    return MCPError(
        types.UNSUPPORTED_PROTOCOL_VERSION,
        "toolcell keeps waiting programs per session, which this revision does not have; "
        "connect with the initialize handshake",
        {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version},
    )


async def _handshake_only(context: Context, _: types.RequestParams) -> types.DiscoverResult:
    """Advertise the handshake revisions alone, so that clients of both eras shake hands."""
    raise _declined(context.protocol_version)
