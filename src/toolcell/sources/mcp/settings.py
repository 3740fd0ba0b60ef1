"""Owns `McpServerSettings`: what one configured MCP server comes to at run time, and its parser.

Above: `McpSource`, which starts the servers. Below: `config.unknown`, `errors`.
Refuses to know: files, the environment, and the MCP SDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from toolcell.config.unknown import unknown_key
from toolcell.errors import ConfigError
from toolcell.sources.mcp.oauth_settings import OAuthSettings, check_oauth_keys, parse_oauth

HttpTransport: TypeAlias = Literal["streamable-http", "sse"]
Transport: TypeAlias = Literal["stdio", "streamable-http", "sse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSettings:
    """How to reach one MCP server, and what to take from it.

    Exactly one of `command` (a child process over stdio) and `url` (HTTP) is given.

    Attributes:
        command: Program to run; looked up on PATH.
        args: Its arguments.
        env: Variables for it, on top of the few the MCP SDK lets a server inherit (PATH, HOME,
            USER, LOGNAME, SHELL, TERM on POSIX). Nothing else of the host's environment is passed.
        cwd: Its working directory.
        url: Address of an HTTP server.
        headers: Headers sent with every HTTP request.
        oauth: How to sign in to an HTTP server; None for not at all.
        transport: Kind of HTTP server; `sse` is the transport that old servers speak.
        enabled: A disabled server is listed by `status()` and never started.
        start_timeout_seconds: Longest wait for process or connection, handshake and tool listing.
        call_timeout_seconds: Longest wait for one call (the read timeout of the SDK's HTTP client).
        include: Tools to take; None takes all. A pattern is a raw name, a glob over raw names, or
            the name a provider sees (`<server>__<tool>`).
        exclude: Tools to leave out, in the same forms; it beats `include`.
        max_tools: Publish at most so many tools, in the server's order; None sets no limit.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: OAuthSettings | None = None
    transport: HttpTransport = "streamable-http"
    enabled: bool = True
    start_timeout_seconds: float = 30.0
    call_timeout_seconds: float = 300.0
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    max_tools: int | None = None

    @property
    def kind(self) -> Transport:
        """The transport in use."""
        return "stdio" if self.command is not None else self.transport


def parse_server(name: str, mapping: Mapping[str, Any]) -> McpServerSettings:
    """Return the settings of server `name`, read from a plain mapping.

    Keys are camelCase as in a config file (`startTimeoutSeconds`) or as the dataclass spells them.

    Raises:
        ConfigError: an unknown key, a wrong type, or not exactly one of `command` and `url`; its
            path is `mcp.servers.<name>.<key>`.
    """
    where = f"mcp.servers.{name}"
    if not name.strip():
        raise ConfigError("a server needs a name", path="mcp.servers")
    if not isinstance(mapping, Mapping):
        msg = f"expected an object, got {type(mapping).__name__}"
        raise ConfigError(msg, path=where)
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        target = _target(key, where)
        values[target] = _READERS[target](value, f"{where}.{key}")
    return _checked(McpServerSettings(**values), where, frozenset(values))


def check_server_keys(name: str, mapping: Mapping[str, Any]) -> None:
    """Refuse a key that nothing reads, in settings that may be incomplete yet.

    Raises:
        ConfigError: an unknown key; its path is `mcp.servers.<name>.<key>`.
    """
    where = f"mcp.servers.{name}"
    for key, value in mapping.items():
        if _target(key, where) == "oauth" and isinstance(value, Mapping):
            check_oauth_keys(value, f"{where}.{key}")


def _target(key: object, where: str) -> str:
    target = _snake(str(key))
    if target in _READERS:
        return target
    raise ConfigError(unknown_key(str(key), map(_camel, _READERS)), path=f"{where}.{key}")


def _checked(settings: McpServerSettings, where: str, given: frozenset[str]) -> McpServerSettings:
    if (settings.command is None) == (settings.url is None):
        raise ConfigError(
            "give exactly one of 'command' (a program that speaks MCP on stdio) and 'url'",
            path=where,
        )
    stray = given & (
        {"url", "headers", "oauth", "transport"} if settings.command else {"args", "env", "cwd"}
    )
    if stray:
        other = "url" if settings.command else "command"
        key = min(stray)
        msg = f"belongs to a server with {other!r}; remove it"
        raise ConfigError(msg, path=f"{where}.{key}")
    return settings


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found.group().lower(), key)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value.strip():
        msg = f"expected a text that is not empty, got {_shown(value)}"
        raise ConfigError(msg, path=path)
    if "\0" in value:
        raise ConfigError("must not hold a NUL character", path=path)
    return value


def _url(value: Any, path: str) -> str:
    text = _text(value, path)
    if not re.match(r"https?://[^/\s]", text):
        raise ConfigError("expected an http:// or https:// address", path=path)
    return text


def _texts(value: Any, path: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        msg = f"expected a list of texts, got {_shown(value)}"
        raise ConfigError(msg, path=path)
    for index, item in enumerate(value):
        if not isinstance(item, str) or "\0" in item:
            msg = f"expected a text, got {_shown(item)}"
            raise ConfigError(msg, path=f"{path}[{index}]")
    return tuple(value)


def _text_map(value: Any, path: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        msg = f"expected an object of texts, got {_shown(value)}"
        raise ConfigError(msg, path=path)
    for key, item in value.items():
        # The value may be a secret, so only its type is named.
        if not isinstance(key, str) or not isinstance(item, str) or "\0" in item:
            msg = f"expected a text, got {type(item).__name__}"
            raise ConfigError(msg, path=f"{path}.{key}")
    return dict(value)


def _flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        msg = f"expected true or false, got {_shown(value)}"
        raise ConfigError(msg, path=path)
    return value


def _seconds(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        msg = f"expected seconds above 0 and at most 86400, got {_shown(value)}"
        raise ConfigError(msg, path=path)
    return float(value)


def _count(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"expected a whole number above 0, got {_shown(value)}"
        raise ConfigError(msg, path=path)
    return value


def _http_transport(value: Any, path: str) -> HttpTransport:
    if value == "streamable-http":
        return "streamable-http"
    if value == "sse":
        return "sse"
    msg = f"expected 'streamable-http' or 'sse', got {_shown(value)}"
    raise ConfigError(msg, path=path)


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        return repr(value)[:80]
    return type(value).__name__


_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "command": _text,
    "args": _texts,
    "env": _text_map,
    "cwd": _text,
    "url": _url,
    "headers": _text_map,
    "oauth": parse_oauth,
    "transport": _http_transport,
    "enabled": _flag,
    "start_timeout_seconds": _seconds,
    "call_timeout_seconds": _seconds,
    "include": _texts,
    "exclude": _texts,
    "max_tools": _count,
}
