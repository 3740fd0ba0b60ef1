"""Owns the `gateway` branch of the config tree: where the gateway listens, and its bounds.

Above: the tree, the gateway. Below: `config.fields`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolcell.config.fields import Settings, clamped


class GatewayLimitSettings(Settings):
    """`gateway.limits`: what the gateway takes on at once, and for how long."""

    max_request_bytes: Annotated[int, clamped(1024, 256 << 20)] = 8 << 20
    """The largest request body, in bytes."""
    requests_per_minute: Annotated[int, clamped(1, 10_000_000)] = 6000
    """Requests of one client address; a burst may use a minute's worth at once."""
    max_runs: Annotated[int, clamped(1, 100_000)] = 512
    """Runs at once, those that wait for a person or a client included."""
    approval_ttl_seconds: Annotated[int, clamped(1, 86_400)] = 600
    """How long an approval waits for an answer, in `toolcell mcp serve` too; then it is a no."""
    client_tool_ttl_seconds: Annotated[int, clamped(1, 86_400)] = 600
    """How long a run waits for a client to bring back the result of one of its own tools."""
    drain_seconds: Annotated[int, clamped(0, 3600)] = 30
    """How long runs may go on after SIGTERM before they are cancelled."""


class GatewaySettings(Settings):
    """`gateway`: the HTTP door (docs/gateway.md)."""

    host: str = "127.0.0.1"
    """The address to listen on. Anything but loopback shows the gateway to your network."""
    port: Annotated[int, clamped(0, 65_535)] = 8790
    """The port; 0 takes a free one."""
    token: str | None = None
    """What clients send as their API key, at least 16 characters; `${NAME}` takes an environment
    variable. When absent, one is made and kept in `~/.toolcell/gateway-token`."""
    recover: bool = True
    """Whether runs and messages that a gateway left behind when it was killed are seen to at start:
    goes on where that is safe, and says so where it is not."""
    limits: GatewayLimitSettings = Field(default_factory=GatewayLimitSettings.model_construct)
    """What it takes on at once, and for how long."""
