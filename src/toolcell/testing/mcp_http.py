"""Owns an MCP server over HTTP for tests: `python -m toolcell.testing.mcp_http [flags]`.

Built on the MCP SDK's own server, so that the client meets a real one. It prints the line
`listening <url>` and serves until it is ended. Needs `uvicorn`.

Above: tests, as a child process. Below: the MCP SDK, `starlette`, `uvicorn`.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def build() -> MCPServer[Any]:
    """Return the server with its tools."""
    server: MCPServer[Any] = MCPServer("http-fixture", version="2.0", log_level="ERROR")

    @server.tool()
    async def echo(v: str) -> str:
        """Return the value."""
        return v

    @server.tool()
    async def sleep(seconds: float) -> str:
        """Wait, then answer."""
        await anyio.sleep(seconds)
        return "slept"

    @server.tool()
    async def header(name: str, ctx: Context[Any, Any]) -> str:
        """Return a header of this request."""
        return (ctx.headers or {}).get(name, "")

    @server.tool()
    async def steps(n: int, ctx: Context[Any, Any]) -> str:
        """Report progress."""
        for number in range(1, n + 1):
            await ctx.report_progress(number, n, f"step {number}")
            await anyio.sleep(0.06)
        return "done"

    @server.tool()
    async def add_tool(name: str, ctx: Context[Any, Any]) -> str:
        """Offer one more tool."""

        async def late() -> str:
            return f"I am {name}"

        server.add_tool(late, name=name, description="A late one.")
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "added"

    @server.tool()
    async def crash() -> str:
        """End the process."""
        os._exit(3)

    return server


class ModernOnly:
    """Refuses the `initialize` handshake, as a server of the 2026 revision alone does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `initialize` with an error, hand on everything else."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        first = await receive()
        if b'"method":"initialize"' in first.get("body", b"").replace(b" ", b""):
            await _refuse(send)
            return
        pending: list[Message] = [first]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)


async def _refuse(send: Send) -> None:
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}'
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Parse the flags and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sse", action="store_true", help="the transport of old servers")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--modern-only", action="store_true", help="know no initialize handshake")
    options = parser.parse_args()
    server = build()
    app: ASGIApp = server.sse_app() if options.sse else server.streamable_http_app()
    listener = socket.create_server(("127.0.0.1", options.port), reuse_port=False)
    port = listener.getsockname()[1]
    path = "sse" if options.sse else "mcp"
    sys.stdout.write(f"listening http://127.0.0.1:{port}/{path}\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        ModernOnly(app) if options.modern_only else app,
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
