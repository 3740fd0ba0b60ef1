"""Owns what every request passes before its route: the host, the token, the rate, the drain.

Above: `app`. Below: `faults`, `rates`. A refused request is answered before its body is read.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcell.gateway.bodies import json_answer
from toolcell.gateway.faults import ApiError, draining, overloaded
from toolcell.gateway.rates import RateLimit

OPEN_PATHS: Final = frozenset({"/health"})
"""What may be asked without a token: whether the gateway is up, and nothing else."""

SIGNED_PATHS: Final = "/webhooks/"
"""What comes with a channel's signature instead, which the route checks."""

_WHILE_DRAINING: Final = frozenset({"/health", "/metrics", "/api/health"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPorts:
    """What the guard asks.

    Attributes:
        token: What clients must send.
        rates: How often they may.
        draining: Whether the gateway is going away.
        seen: Told the path, method and status of every request.
    """

    token: str
    rates: RateLimit
    draining: Callable[[], bool]
    seen: Callable[[str, str, int], None]


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, ports: GuardPorts) -> None:
        self._app = app
        self._ports = ports
        self._token = ports.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            return
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        refused = self._refusal(scope)
        try:
            if refused is None:
                await self._app(scope, receive, counted)
            else:
                answer = json_answer(refused.body(), refused.status, refused.all_headers())
                await answer(scope, receive, counted)
        finally:
            self._ports.seen(_route(scope), scope["method"], status)

    def _refusal(self, scope: Scope) -> ApiError | None:
        path, headers = scope["path"], Headers(scope=scope)
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may see the end elsewhere, and take the rest for a request of its own.
            return ApiError(
                400,
                "a request has Content-Length or Transfer-Encoding, not both",
                "invalid_request",
                headers={"connection": "close"},
            )
        client = scope.get("client")
        wait = self._ports.rates.take(client[0] if client else "")
        if wait:
            error = overloaded("too many requests; slow down", "rate_limit_exceeded")
            error.headers = {"retry-after": str(int(wait) + 1)}
            return error
        tokenless = path in OPEN_PATHS or path.startswith(SIGNED_PATHS)
        if not tokenless and not self._known(headers):
            return ApiError(
                401,
                "wrong or missing token; send the gateway's token as your API key",
                "invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        if self._ports.draining() and path not in _WHILE_DRAINING:
            return draining()
        return None

    def _known(self, headers: Headers) -> bool:
        given = headers.get("authorization", "")
        kind, _, value = given.partition(" ")
        if kind.lower() != "bearer":
            value = headers.get("x-api-key", "")
        return hmac.compare_digest(value.strip().encode(), self._token)


def _route(scope: Scope) -> str:
    """Return the name of the route, not the path: a path may be anything."""
    return str(getattr(scope.get("endpoint"), "__name__", "none"))
