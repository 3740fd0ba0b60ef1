"""Owns the life of an MCP server: from a started runtime to stdin's end, SIGINT or SIGTERM.

Above: `toolcell mcp serve`. Below: transports, the protocol server, client sessions.
"""

from __future__ import annotations

import logging
import signal

import anyio

from toolcell.app.runtime import Runtime
from toolcell.mcp_server.asking import ClientApprover
from toolcell.mcp_server.http import HttpDoor, serve_http
from toolcell.mcp_server.progress import CallProgress
from toolcell.mcp_server.server import McpServer
from toolcell.mcp_server.sessions import ClientSessions
from toolcell.mcp_server.stdio import Pipes, serve_stdio

# A fault of the server itself is for the operator, on stderr; clients get `Internal server error`.
_LOGGER = "mcp.server"


async def serve(
    runtime: Runtime, progress: CallProgress, approver: ClientApprover, door: Pipes | HttpDoor
) -> None:
    """Serve MCP until the client leaves (stdio) or a signal comes.

    Args:
        runtime: Started; its sinks include `progress`.
        progress: Where nested calls are heard of.
        approver: Asks the clients' users; the runtime's own.
        door: The pipes of the one client, or where many come in.
    """
    _log_faults()
    sessions = ClientSessions(runtime, progress, approver)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        await tasks.start(_signals, stop)
        if isinstance(door, Pipes):
            tasks.start_soon(_cancel_when, stop, tasks.cancel_scope)
            await serve_stdio(McpServer(sessions, single=True), door)
        else:
            await serve_http(McpServer(sessions, single=False), door, stop)
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
