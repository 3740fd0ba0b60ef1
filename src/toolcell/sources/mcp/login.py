"""Owns one sign-in from start to end: the address shown, the browser's return, the tokens kept.

Above: `toolcell mcp login`. Below: `sources.mcp.oauth`, transports.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketStream
from mcp.client.session import ClientSession
from mcp.shared.auth import AuthorizationCodeResult
from mcp.shared.exceptions import MCPError

from toolcell.errors import McpError
from toolcell.sources.mcp.failures import reason_of
from toolcell.sources.mcp.oauth import provider, token_file
from toolcell.sources.mcp.oauth_settings import OAuthSettings
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.status import LogTail
from toolcell.sources.mcp.stdio import Exit
from toolcell.sources.mcp.text import one_line
from toolcell.sources.mcp.transports import open_streams

LOGIN_SECONDS: Final = 300.0
_REQUEST_SECONDS: Final = 10.0
_HEAD_BYTES: Final = 16 << 10


async def login(
    name: str, settings: McpServerSettings, folder: Path, show: Callable[[str], None]
) -> None:
    """Sign in to a server and keep what it gives.

    Args:
        name: The server's configured name.
        settings: Its settings, with `oauth`.
        folder: Where tokens are kept.
        show: Gets the address a person opens.

    Raises:
        McpError: the server cannot be reached, nobody signed in in time, or it said no.
    """
    if settings.oauth is None or settings.url is None:
        msg = f"MCP server {name!r} has no 'oauth' in its settings; set it to true"
        raise McpError(msg)
    kept = token_file(name, settings, folder)
    kept.forget()
    try:
        with anyio.fail_after(LOGIN_SECONDS):
            async with returning(settings.oauth, show) as visitor:
                auth = provider(name, settings, folder, visitor)
                async with (
                    open_streams(settings, LogTail(), Exit(), auth) as streams,
                    ClientSession(*streams) as session,
                ):
                    await session.initialize()
    except TimeoutError:
        msg = f"nobody signed in within {LOGIN_SECONDS:g} s"
        raise McpError(msg) from None
    except (MCPError, BaseExceptionGroup) as error:
        msg = f"cannot sign in to MCP server {name!r}: {reason_of(error)}"
        raise McpError(msg) from None
    if not kept.signed_in:
        msg = f"MCP server {name!r} let us in without a sign-in; it needs no 'oauth'"
        raise McpError(msg)


class Returning:
    """A visitor whose browser comes back to a port of this machine."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._into, self._out = anyio.create_memory_object_stream[AuthorizationCodeResult | str](1)

    async def show(self, url: str) -> None:
        """Show the address where they sign in."""
        self._show(url)

    async def answer(self) -> AuthorizationCodeResult:
        """Wait for what the browser brings back.

        Raises:
            McpError: they were refused, or refused themselves.
        """
        found = await self._out.receive()
        if isinstance(found, str):
            raise McpError(found)
        return found

    async def serve(self, stream: SocketStream) -> None:
        """Take one request of a browser; a stray one is answered and changes nothing."""
        async with stream:
            with anyio.move_on_after(_REQUEST_SECONDS):
                found = _answer_in(await _head_of(stream))
                await stream.send(_page(found))
                if found is not None:
                    await self._into.send(found)

    def close(self) -> None:
        """Forget what was not taken."""
        self._into.close()
        self._out.close()


@asynccontextmanager
async def returning(
    settings: OAuthSettings, show: Callable[[str], None]
) -> AsyncGenerator[Returning]:
    """Listen for the browser's return.

    Raises:
        McpError: the port is taken.
    """
    port = settings.redirect_port
    try:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    except OSError as error:
        msg = (
            f"cannot listen on port {port} for the browser's return: {error.strerror}; "
            "set oauth.redirectPort"
        )
        raise McpError(msg) from None
    visitor = Returning(show)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, visitor.serve)
        try:
            yield visitor
        finally:
            tasks.cancel_scope.cancel()
            visitor.close()


async def _head_of(stream: SocketStream) -> bytes:
    head = b""
    try:
        while b"\r\n" not in head and len(head) < _HEAD_BYTES:
            head += await stream.receive(4096)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    return head


def _answer_in(head: bytes) -> AuthorizationCodeResult | str | None:
    """Return what a request brings: a code, why there is none, or None for a stray request."""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    target = urlsplit(words[1]) if len(words) == 3 and words[0] == "GET" else None
    if target is None or target.path != "/callback":
        return None
    query = {key: values[0] for key, values in parse_qs(target.query).items()}
    if "code" in query:
        return AuthorizationCodeResult(
            code=query["code"], state=query.get("state"), iss=query.get("iss")
        )
    if "error" not in query:
        return None
    reason = query.get("error_description") or query["error"]
    return f"the sign-in failed: {one_line(reason, 200)}"


def _page(found: AuthorizationCodeResult | str | None) -> bytes:
    match found:
        case None:
            status, text = "404 Not Found", "This is not where the sign-in comes back to."
        case str():
            status, text = "400 Bad Request", found
        case _:
            status, text = "200 OK", "Signed in. You can close this page."
    body = f"{text}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
