"""Server settings: what a config may say, and how a wrong one is named."""

import pytest

from toolcell.errors import ConfigError
from toolcell.sources.mcp.settings import McpServerSettings, parse_server


def test_a_stdio_server_is_read_with_every_key() -> None:
    """rule 5.1: a server comes from `mcp.servers` in config; issue keys in camelCase."""
    settings = parse_server(
        "fs",
        {
            "command": "npx",
            "args": ["-y", "server"],
            "env": {"TOKEN": "s3cret"},
            "cwd": "here",
            "startTimeoutSeconds": 5,
            "callTimeoutSeconds": 2.5,
            "include": ["read*"],
            "exclude": [],
            "maxTools": 10,
            "enabled": False,
        },
    )
    assert settings == McpServerSettings(
        command="npx",
        args=("-y", "server"),
        env={"TOKEN": "s3cret"},
        cwd="here",
        start_timeout_seconds=5.0,
        call_timeout_seconds=2.5,
        include=("read*",),
        max_tools=10,
        enabled=False,
    )
    assert settings.kind == "stdio"


def test_an_http_server_is_read_and_defaults_to_streamable_http() -> None:
    """Issue 2, part 8: streamable HTTP, and SSE for old servers."""
    plain = parse_server("web", {"url": "https://x.example/mcp", "headers": {"a": "b"}})
    old = parse_server("web", {"url": "http://x.example/sse", "transport": "sse"})
    assert (plain.kind, old.kind) == ("streamable-http", "sse")
    assert plain.start_timeout_seconds == 30.0


@pytest.mark.parametrize(
    ("mapping", "path", "part"),
    [
        ({"command": "x", "colour": 1}, "mcp.servers.s.colour", "unknown key"),
        ({}, "mcp.servers.s", "exactly one of"),
        ({"command": "x", "url": "http://h"}, "mcp.servers.s", "exactly one of"),
        ({"command": 3}, "mcp.servers.s.command", "got 3"),
        ({"command": "x", "args": "a b"}, "mcp.servers.s.args", "a list of texts"),
        ({"command": "x", "args": ["a", 1]}, "mcp.servers.s.args[1]", "got 1"),
        ({"command": "x", "headers": {}}, "mcp.servers.s.headers", "'url'"),
        ({"url": "http://h", "env": {}}, "mcp.servers.s.env", "'command'"),
        ({"url": "ftp://h"}, "mcp.servers.s.url", "http://"),
        ({"url": "http://h", "transport": "ws"}, "mcp.servers.s.transport", "'sse'"),
        ({"command": "x", "enabled": "yes"}, "mcp.servers.s.enabled", "true or false"),
        ({"command": "x", "startTimeoutSeconds": 0}, "mcp.servers.s.startTimeoutSeconds", "above"),
        (
            {"command": "x", "startTimeoutSeconds": float("nan")},
            "mcp.servers.s.startTimeoutSeconds",
            "above",
        ),
        ({"command": "x", "maxTools": True}, "mcp.servers.s.maxTools", "whole number"),
        ({"command": "a\0b"}, "mcp.servers.s.command", "NUL"),
    ],
)
def test_a_bad_setting_is_named_by_its_path(mapping: dict, path: str, part: str) -> None:
    """Issue 2, bad input: unknown keys and wrong types name the place and the remedy."""
    with pytest.raises(ConfigError) as caught:
        parse_server("s", mapping)
    assert caught.value.path == path
    assert part in caught.value.message


def test_secret_values_are_never_repeated() -> None:
    """rule 8.4: no secrets in what is shown."""
    with pytest.raises(ConfigError) as caught:
        parse_server("s", {"url": "http://h", "headers": {"Authorization": ["s3cret"]}})
    assert caught.value.path == "mcp.servers.s.headers.Authorization"
    assert "s3cret" not in caught.value.message
    assert "s3cret" not in repr(parse_server("s", {"url": "http://h", "headers": {"A": "s3cret"}}))
    assert "s3cret" not in repr(parse_server("s", {"command": "x", "env": {"A": "s3cret"}}))
