"""Owns the life of an MCP server: from a started runtime to stdin's end, SIGINT or SIGTERM.

Above: `toolcell mcp serve`. Below: transports, the protocol server, client sessions.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable

import anyio

from toolcell.app.runtime import Runtime
from toolcell.mcp_server.http import HttpBinding, serve_http
from toolcell.mcp_server.progress import CallProgress
from toolcell.mcp_server.server import McpServer
from toolcell.mcp_server.sessions import ClientSessions
from toolcell.mcp_server.stdio import serve_stdio

# A fault of the server itself is for the operator, on stderr; clients get `Internal server error`.
_LOGGER = "mcp.server"


async def serve(
    runtime: Runtime,
    progress: CallProgress,
    at: HttpBinding | None = None,
    *,
    on_listening: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve MCP until the client leaves (stdio) or a signal comes.

    Args:
        runtime: Started; its sinks include `progress`.
        progress: Where nested calls are heard of.
        at: Listen there; None serves one client on stdin and stdout.
        on_listening: Told the address of an HTTP server.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    _log_faults()
    sessions = ClientSessions(runtime, progress)
    server = McpServer(sessions, single=at is None)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        await tasks.start(_signals, stop)
        if at is None:
            tasks.start_soon(_cancel_when, stop, tasks.cancel_scope)
            await serve_stdio(server)
        else:
            await serve_http(server, at, stop, on_listening)
        tasks.cancel_scope.cancel()


async def _signals(
    stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            stop.set()


async def _cancel_when(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()


def _log_faults() -> None:
    logger = logging.getLogger(_LOGGER)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setLevel(logging.ERROR)
        logger.addHandler(handler)
