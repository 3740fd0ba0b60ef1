"""Owns signing in to an HTTP server: which of the SDK's OAuth flows, and who sees the browser.

Without somebody to show an address to, a server that wants a person fails with the command that
signs in; nothing ever opens a browser from a running cell.

Above: transports, `toolcell mcp login`. Below: the MCP SDK, `sources.mcp.tokens`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
)
from pydantic import AnyUrl

from toolcell.base.clock import SYSTEM_CLOCK
from toolcell.errors import McpError
from toolcell.sources.mcp.oauth_settings import OAuthSettings
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.tokens import TokenFile


class Visitor(Protocol):
    """A person with a browser."""

    async def show(self, url: str) -> None:
        """Show the address where they sign in."""
        ...

    async def answer(self) -> AuthorizationCodeResult:
        """Wait for what the browser brings back."""
        ...


class Nobody:
    """No person is there: signing in needs the command."""

    def __init__(self, server: str) -> None:
        self._server = server

    async def show(self, url: str) -> None:
        """Refuse, and say what to do."""
        del url
        raise McpError(sign_in_hint(self._server))

    async def answer(self) -> AuthorizationCodeResult:
        """Refuse, and say what to do."""
        raise McpError(sign_in_hint(self._server))


def sign_in_hint(server: str) -> str:
    """Return what to do when a server wants a person."""
    return f"it wants you to sign in: run toolcell mcp login {server}"


def token_file(name: str, settings: McpServerSettings, folder: Path) -> TokenFile:
    """Return the file of a server's tokens."""
    oauth = settings.oauth or OAuthSettings()
    client = None
    if oauth.client_id is not None and oauth.grant == "authorization_code":
        client = OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=oauth.client_secret,
            redirect_uris=[AnyUrl(oauth.redirect_uri)],
            token_endpoint_auth_method="client_secret_post" if oauth.client_secret else "none",
            scope=oauth.scope,
            issuer=oauth.issuer,
        )
    return TokenFile(folder, name, settings.url or "", clock=SYSTEM_CLOCK, client=client)


def provider(
    name: str, settings: McpServerSettings, folder: Path, visitor: Visitor | None = None
) -> OAuthClientProvider | None:
    """Return what signs the requests to a server in; None when it is not configured.

    Args:
        name: The server's configured name.
        settings: Its settings.
        folder: Where tokens are kept.
        visitor: Who signs in; None when nobody is there.

    Raises:
        McpError: a person must sign in first.
    """
    oauth, url = settings.oauth, settings.url
    if oauth is None or url is None:
        return None
    kept = token_file(name, settings, folder)
    if oauth.grant == "client_credentials":
        return _Machine(
            server_url=url,
            storage=kept,
            client_id=oauth.client_id or "",
            client_secret=oauth.client_secret or "",
            scope=oauth.scope,
            issuer=oauth.issuer,
        )
    if visitor is None and not kept.signed_in:
        raise McpError(sign_in_hint(name))
    person = visitor or Nobody(name)
    return _Person(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="toolcell",
            redirect_uris=[AnyUrl(oauth.redirect_uri)],
            token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
            scope=oauth.scope,
        ),
        storage=kept,
        redirect_handler=person.show,
        callback_handler=person.answer,
    )


class _Person(OAuthClientProvider):
    """Signs a person in; renews after a restart."""

    async def _initialize(self) -> None:
        await super()._initialize()
        _restore(self)


class _Machine(ClientCredentialsOAuthProvider):
    """Signs the program in."""

    async def _initialize(self) -> None:
        await super()._initialize()
        _restore(self)


def _restore(auth: OAuthClientProvider) -> None:
    if isinstance(auth.context.storage, TokenFile):
        auth.context.storage.restore(auth.context)
