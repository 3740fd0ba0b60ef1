"""Owns the file that keeps what a sign-in gave: one for each server, readable by its owner alone.

Beside the tokens it keeps when they expire and where they are renewed: the SDK keeps both in memory
only, so a new process would send a person to the browser again instead of renewing.

Above: sign-in. Below: the MCP SDK's OAuth types, `base`. Refuses to know: how one signs in.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ConfigDict, ValidationError

from toolcell.base.clock import Clock
from toolcell.base.identifiers import digest, fresh
from toolcell.errors import McpError


class _Kept(BaseModel):
    """What the file holds."""

    model_config = ConfigDict(extra="ignore")

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class TokenFile:
    """The SDK's `TokenStorage` in a file.

    Args:
        folder: Where the files are; made with mode 0700.
        name: The server's configured name.
        url: Its address: another address is another file, so a token never goes astray.
        clock: Tells when a token expires.
        client: A client registered before; it is not stored.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        url: str,
        *,
        clock: Clock,
        client: OAuthClientInformationFull | None = None,
    ) -> None:
        safe = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:40]
        self.path = folder / f"{safe}-{digest(name, url)[:16]}.json"
        self._clock = clock
        self._client = client
        self._context: OAuthContext | None = None

    @property
    def signed_in(self) -> bool:
        """Whether there are tokens."""
        return self._read().tokens is not None

    def restore(self, context: OAuthContext) -> None:
        """Give the SDK's context what only its memory would hold, and keep it from now on.

        The context's own clock is the system's; `expires_at` is of the same kind.
        """
        self._context = context
        kept = self._read()
        context.token_expiry_time = kept.expires_at
        context.oauth_metadata = context.oauth_metadata or kept.metadata
        context.protected_resource_metadata = context.protected_resource_metadata or kept.resource

    def forget(self) -> bool:
        """Remove the file; tells whether there was one."""
        with suppress(FileNotFoundError):
            self.path.unlink()
            return True
        return False

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        return self._read().tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens, when they expire, and where they are renewed."""
        lasts = tokens.expires_in
        context = self._context
        self._change(
            tokens=tokens,
            expires_at=None if lasts is None else self._clock.wall() + lasts,
            metadata=None if context is None else context.oauth_metadata,
            resource=None if context is None else context.protected_resource_metadata,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the configured client, else the one that was registered."""
        return self._client or self._read().client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client that was registered."""
        self._change(client=client_info)

    def _read(self) -> _Kept:
        try:
            return _Kept.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return _Kept()
        except (OSError, ValidationError) as error:
            msg = f"cannot read {str(self.path)!r} ({type(error).__name__}); remove it"
            raise McpError(msg) from None

    def _change(self, **values: Any) -> None:
        kept = self._read().model_copy(update=values)
        data = kept.model_dump_json(exclude_none=True).encode()
        draft = self.path.with_name(f".{self.path.name}.{fresh('draft')}")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made with the mode it keeps: at no moment can others read it.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        draft.replace(self.path)
