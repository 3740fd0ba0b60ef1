"""An MCP server behind OAuth, and the authorization server it names; signs everybody in at once.

Run as `python oauth_server.py [--life SECONDS]`; prints `listening <url>`. `GET /stats` tells what
was asked of it, `POST /revoke` makes every token invalid.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import secrets
import socket
import sys
from urllib.parse import urlencode

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcell.base.clock import SYSTEM_CLOCK

MACHINE = ("robot", "robot-secret")


class Authority:
    """Registers, authorises, gives and renews tokens."""

    def __init__(self, origin: str, life: float) -> None:
        self.origin = origin
        self.life = life
        self.clients: set[str] = set()
        self.codes: dict[str, tuple[str, str]] = {}
        self.tokens: dict[str, float] = {}
        self.renewals: set[str] = set()
        self.stats = {"register": 0, "authorize": 0, "code": 0, "refresh": 0, "machine": 0}

    def allows(self, header: str) -> bool:
        return self.tokens.get(header.removeprefix("Bearer "), 0.0) > SYSTEM_CLOCK.monotonic()

    async def resource(self, _: Request) -> Response:
        return JSONResponse(
            {"resource": f"{self.origin}/mcp", "authorization_servers": [self.origin]}
        )

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/oauth/token",
                "registration_endpoint": f"{self.origin}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": [
                    "authorization_code",
                    "refresh_token",
                    "client_credentials",
                ],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def register(self, request: Request) -> Response:
        self.stats["register"] += 1
        asked = await request.json()
        client = f"client-{secrets.token_hex(4)}"
        self.clients.add(client)
        return JSONResponse({**asked, "client_id": client}, status_code=201)

    async def authorize(self, request: Request) -> Response:
        self.stats["authorize"] += 1
        query = request.query_params
        back: dict[str, str] = {"state": query["state"], "iss": self.origin}
        if query["client_id"] not in self.clients and query["client_id"] != "known":
            back["error"] = "unauthorized_client"
        else:
            code = secrets.token_urlsafe(24)
            self.codes[code] = (query["client_id"], query["code_challenge"])
            back["code"] = code
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(back)}")

    async def token(self, request: Request) -> Response:
        form = await request.form()
        match form.get("grant_type"):
            case "authorization_code":
                self.stats["code"] += 1
                client, challenge = self.codes.pop(str(form["code"]), ("", ""))
                digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
                proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                if client != form["client_id"] or proof != challenge:
                    return JSONResponse({"error": "invalid_grant"}, status_code=400)
            case "refresh_token":
                self.stats["refresh"] += 1
                if form["refresh_token"] not in self.renewals:
                    return JSONResponse({"error": "invalid_grant"}, status_code=400)
                self.renewals.discard(str(form["refresh_token"]))
            case _:
                self.stats["machine"] += 1
                given = request.headers.get("authorization", "").removeprefix("Basic ")
                if base64.b64decode(given).decode() != ":".join(MACHINE):
                    return JSONResponse({"error": "invalid_client"}, status_code=401)
        return JSONResponse(self.grant())

    def grant(self) -> dict[str, object]:
        access, renewal = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[access] = SYSTEM_CLOCK.monotonic() + self.life
        self.renewals.add(renewal)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": int(self.life),
            "refresh_token": renewal,
        }

    async def told(self, _: Request) -> Response:
        return JSONResponse(self.stats)

    async def revoke(self, _: Request) -> Response:
        self.tokens.clear()
        self.renewals.clear()
        return JSONResponse({})


class Guarded:
    """Asks for a token at `/mcp`."""

    def __init__(self, app: ASGIApp, authority: Authority) -> None:
        self._app = app
        self._authority = authority

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            header = Request(scope).headers.get("authorization", "")
            if not self._authority.allows(header):
                where = f"{self._authority.origin}/.well-known/oauth-protected-resource/mcp"
                headers = {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'}
                await Response(status_code=401, headers=headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def build(authority: Authority) -> ASGIApp:
    server: MCPServer = MCPServer("guarded", log_level="ERROR")

    @server.tool()
    async def whoami() -> str:
        """Say that one is in."""
        return "in"

    app: Starlette = server.streamable_http_app()
    well_known = "/.well-known"
    app.routes.extend(
        [
            Route(f"{well_known}/oauth-protected-resource/mcp", authority.resource),
            Route(f"{well_known}/oauth-authorization-server", authority.metadata),
            Route("/register", authority.register, methods=["POST"]),
            Route("/authorize", authority.authorize),
            Route("/oauth/token", authority.token, methods=["POST"]),
            Route("/stats", authority.told),
            Route("/revoke", authority.revoke, methods=["POST"]),
        ]
    )
    return Guarded(app, authority)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--life", type=float, default=3600.0)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    sys.stdout.write(f"listening {origin}/mcp\n")
    sys.stdout.flush()
    app = build(Authority(origin, options.life))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
