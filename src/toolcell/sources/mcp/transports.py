"""Owns the choice of transport: settings in, a pair of message streams out.

Above: the connection. Below: the stdio transport, the MCP SDK's HTTP transports, `httpx2`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.status import LogTail
from toolcell.sources.mcp.stdio import Exit, stdio_streams

_CONNECT_SECONDS = 30.0

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@asynccontextmanager
async def open_streams(
    settings: McpServerSettings, log: LogTail, ended: Exit, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Streams]:
    """Connect to a server; leaving closes the connection or ends the child process.

    Args:
        settings: How to reach it.
        log: Gets what it writes to stderr.
        ended: Told how its process ended.
        auth: Signs HTTP requests in.
    """
    if settings.kind == "stdio":
        async with stdio_streams(settings, log, ended) as pipes:
            yield pipes
    elif settings.kind == "sse":
        async with sse_client(
            settings.url or "",
            headers=dict(settings.headers),
            timeout=_CONNECT_SECONDS,
            sse_read_timeout=_read_seconds(settings),
            auth=auth,
        ) as streams:
            yield streams
    else:
        headers = dict(settings.headers)
        limits = httpx2.Timeout(_CONNECT_SECONDS, read=_read_seconds(settings))
        async with (
            httpx2.AsyncClient(headers=headers, timeout=limits, auth=auth) as client,
            streamable_http_client(settings.url or "", http_client=client) as streams,
        ):
            yield streams


def _read_seconds(settings: McpServerSettings) -> float:
    # A little longer than a call may take, so that our own timeout is the one that speaks.
    return max(300.0, settings.call_timeout_seconds + 10.0)
