"""Owns serving many clients over streamable HTTP, with a bearer token where one is set.

Above: `toolcell mcp serve`. Below: the MCP SDK, `starlette`, `uvicorn`, the protocol server.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcell.config.tokens import usable_token
from toolcell.errors import ConfigError
from toolcell.mcp_server.server import McpServer

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 1_000
IDLE_SECONDS: Final = 1_800.0
"""A session without a request for so long, or for the life of a parked cell, is ended."""

_GOODBYE_SECONDS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBinding:
    """Where to listen, and who may come.

    Attributes:
        host: A name or address of this machine.
        port: 0 takes a free one.
        token: Clients send it as `Authorization: Bearer <token>`; None lets every local one in.
        idle_seconds: How long a session lives without a request.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    idle_seconds: float = IDLE_SECONDS

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def binding(address: str, token: str | None = None, *, parked_seconds: float = 0) -> HttpBinding:
    """Read `HOST:PORT`, `[IPv6]:PORT`, `:PORT` or `PORT`.

    Args:
        address: As above.
        token: What clients must send.
        parked_seconds: How long a parked cell lives; a session is not ended sooner.

    Raises:
        ConfigError: it is none of these, the token is unusable, or others could reach an open door.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        msg = f"{address!r} is no address to listen on; give HOST:PORT, such as 127.0.0.1:8123"
        raise ConfigError(msg)
    if token is not None:
        usable_token(token, path="--token")
    idle = max(IDLE_SECONDS, parked_seconds + 60)
    found = HttpBinding(host=host, port=int(port), token=token, idle_seconds=idle)
    if token is None and not found.local:
        msg = f"{host!r} can be reached from other machines; give --token, or listen on 127.0.0.1"
        raise ConfigError(msg)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpDoor:
    """An address that is listened on."""

    at: HttpBinding
    listener: socket.socket

    @property
    def address(self) -> str:
        """What clients are given."""
        host = self.at.host
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{self.listener.getsockname()[1]}{PATH}"


@contextmanager
def listening(at: HttpBinding) -> Iterator[HttpDoor]:
    """Listen at an address.

    Raises:
        ConfigError: it is taken, or not of this machine.
    """
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    try:
        listener = socket.create_server((at.host, at.port), family=family)
    except OSError as error:
        msg = f"cannot listen on {at.host}:{at.port}: {error.strerror or error}"
        raise ConfigError(msg) from error
    with listener:
        yield HttpDoor(at=at, listener=listener)


async def serve_http(server: McpServer, door: HttpDoor, stop: anyio.Event) -> None:
    """Serve until `stop` is set."""
    at = door.at
    # Bytes of a request are bounded by the SDK, at 4 MiB.
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        host=at.host,
        transport_security=_security(at),
        session_idle_timeout=at.idle_seconds,
        max_sessions=MAX_SESSIONS,
    )
    if at.token is not None:
        app = BearerDoor(app, at.token)
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
    )
    web = _Uvicorn(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.announce_changes)
        tasks.start_soon(_stop_later, web, stop)
        await web.serve(sockets=[door.listener])
        tasks.cancel_scope.cancel()


class BearerDoor:
    """Lets in requests that carry the token; compares in constant time."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 unless the token is right."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "").encode()
            if not hmac.compare_digest(given, self._expected):
                refused = JSONResponse(
                    {"error": "send Authorization: Bearer <token>"},
                    status_code=401,
                    headers={"WWW-Authenticate": 'Bearer realm="toolcell"'},
                )
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the command, which has more to close than the web server knows."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def _stop_later(web: _Uvicorn, stop: anyio.Event) -> None:
    await stop.wait()
    web.should_exit = True


def _security(at: HttpBinding) -> TransportSecuritySettings:
    """Refuse pages that rebind a name to this machine; a token keeps them out elsewhere."""
    if not at.local:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names = ("127.0.0.1", "localhost", "[::1]")
    return TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in names],
        allowed_origins=[f"{scheme}://{name}:*" for scheme in ("http", "https") for name in names],
    )
