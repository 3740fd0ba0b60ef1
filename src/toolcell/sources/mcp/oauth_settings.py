"""Owns `OAuthSettings`: how toolcell signs in to an HTTP server, and the parser of its keys.

Above: server settings. Below: `config.unknown`, `errors`. Refuses to know: tokens, browsers,
the MCP SDK.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from toolcell.config.unknown import unknown_key
from toolcell.errors import ConfigError

Grant: TypeAlias = Literal["authorization_code", "client_credentials"]

DEFAULT_REDIRECT_PORT: Final = 19_876
"""Where the browser comes back to. Fixed, for servers that compare the address to the letter."""

_TEXTS: Final = {"clientId", "clientSecret", "scope", "issuer"}
_KEYS: Final = frozenset({*_TEXTS, "grant", "redirectPort"})
_GRANTS: Final = ("authorization_code", "client_credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """`mcp.servers.<name>.oauth`.

    Attributes:
        grant: `authorization_code` signs a person in with a browser, once; `client_credentials`
            signs the program in by its own secret.
        client_id: A client registered before; without it toolcell registers itself.
        client_secret: Its secret, where it has one.
        scope: Scopes to ask for, parted by blanks; the server's own choice when None.
        issuer: The only authorization server that may get the secret.
        redirect_port: Port of this machine the browser comes back to.
    """

    grant: Grant = "authorization_code"
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    issuer: str | None = None
    redirect_port: int = DEFAULT_REDIRECT_PORT

    @property
    def redirect_uri(self) -> str:
        """The address the browser comes back to."""
        return f"http://127.0.0.1:{self.redirect_port}/callback"


def parse_oauth(value: Any, path: str) -> OAuthSettings | None:
    """Read `true`, `false` or an object.

    Raises:
        ConfigError: an unknown key, a wrong type, or a grant that lacks what it needs.
    """
    if isinstance(value, bool):
        return OAuthSettings() if value else None
    if not isinstance(value, Mapping):
        msg = f"expected true, false or an object, got {type(value).__name__}"
        raise ConfigError(msg, path=path)
    read: dict[str, Any] = {}
    for key, item in value.items():
        read[_snake(str(key))] = _item(_camel(str(key)), item, f"{path}.{key}")
    return _checked(OAuthSettings(**read), path)


def _item(key: str, value: Any, path: str) -> Any:
    if key in _TEXTS:
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            # It may be a secret, so only its type is named.
            msg = f"expected a text that is not empty, got {type(value).__name__}"
            raise ConfigError(msg, path=path)
        return value
    if key == "grant":
        if value not in _GRANTS:
            msg = f"expected 'authorization_code' or 'client_credentials', got {value!r:.80}"
            raise ConfigError(msg, path=path)
        return value
    if key == "redirectPort":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65_535:
            msg = f"expected a port from 1 to 65535, got {value!r:.80}"
            raise ConfigError(msg, path=path)
        return value
    raise ConfigError(unknown_key(key, _KEYS), path=path)


def check_oauth_keys(mapping: Mapping[str, Any], path: str) -> None:
    """Refuse a key that nothing reads, whatever the values are.

    Raises:
        ConfigError: an unknown key.
    """
    for key in mapping:
        if _camel(str(key)) not in _KEYS:
            raise ConfigError(unknown_key(str(key), _KEYS), path=f"{path}.{key}")


def _checked(settings: OAuthSettings, path: str) -> OAuthSettings:
    if settings.client_secret is not None and settings.client_id is None:
        raise ConfigError("a clientSecret needs its clientId", path=path)
    if settings.grant == "client_credentials":
        for key in ("client_id", "client_secret", "issuer"):
            if getattr(settings, key) is None:
                msg = f"grant 'client_credentials' needs {_camel(key)!r}"
                raise ConfigError(msg, path=path)
    issuer = settings.issuer
    if issuer is not None and not re.match(r"https?://[^/\s]", issuer):
        raise ConfigError("expected an http:// or https:// address", path=f"{path}.issuer")
    return settings


def _camel(key: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), key)


def _snake(key: str) -> str:
    return re.sub(r"[A-Z]", lambda found: "_" + found.group().lower(), key)
