"""Owns the `tools.web` and `channels` branches of the config tree: the web, and who can be written.

Above: the tree. Below: `config.fields`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from toolcell.config.fields import Settings, clamped


class WebFetchSettings(Settings):
    """`tools.web.fetch`: how `web_fetch` loads pages."""

    allow: list[str] = Field(default_factory=list)
    """Private places that may be reached all the same: host names, addresses, networks like
    `10.0.0.0/8`; `*` for everything. Public addresses always may."""
    max_bytes: Annotated[int, clamped(1024, 64 << 20)] = 5 << 20
    """What is read of a page, in bytes."""
    timeout_ms: Annotated[int, clamped(100, 120_000)] = 20_000
    """How long one fetch may take, redirects included, in milliseconds."""
    cache_seconds: Annotated[int, clamped(0, 86_400)] = 300
    """How long a page is remembered; 0 turns that off."""


class WebSearchSettings(Settings):
    """`tools.web.search`: who searches for `web_search`."""

    provider: Literal["searxng", "brave"]
    """`searxng` (your own, with its JSON format turned on) or `brave`."""
    base_url: str | None = None
    """The address; needed for `searxng`, the service's own for `brave`."""
    api_key: str | None = None
    """The key; needed for `brave`. `${NAME}` takes an environment variable."""
    timeout_ms: Annotated[int, clamped(100, 120_000)] = 15_000
    """How long one search may take, in milliseconds."""


class WebSettings(Settings):
    """`tools.web`: the tools `web_fetch` and `web_search`, and the addresses of `image`."""

    fetch: WebFetchSettings = Field(default_factory=WebFetchSettings.model_construct)
    """How pages are loaded."""
    search: WebSearchSettings | None = None
    """Who searches; `web_search` gives an error result when absent."""
    images: bool = False
    """Lets `image` load http and https addresses as well, as `web_fetch` does, in runs whose
    policy allows `web_fetch`."""


class ChannelReceiveSettings(Settings):
    """`channels.<id>.receive`: messages that come in at the gateway (docs/gateway.md)."""

    agent: str = "main"
    """The agent that answers them."""
    secret: str | None = None
    """Signs what comes in; the channel's `secret` when absent. At least 16 characters."""
    unlisted: bool = False
    """Whether conversations that `conversations` does not name are answered too."""
    messages_per_minute: Annotated[int, clamped(1, 100_000)] = 120
    """Signed messages of the channel; a burst may use a minute's worth at once."""
    reply_attempts: Annotated[int, clamped(1, 20)] = 6
    """How often a reply is sent until the receiver takes it."""
    reply_delay_ms: Annotated[int, clamped(10, 60_000)] = 1000
    """The pause before the second attempt, in milliseconds; each further one is twice as long, a
    minute at most."""


class ChannelSettings(Settings):
    """`channels.<id>`: a place where conversations are."""

    type: Literal["webhook"] = "webhook"
    """How messages get there: signed POST requests."""
    url: str
    """Where messages are sent."""
    secret: str
    """Signs messages and their answers; at least 16 characters. `${NAME}` takes an environment
    variable."""
    conversations: dict[str, str] = Field(default_factory=dict)
    """The conversations there: a key the receiver knows, and a label for the model."""
    timeout_ms: Annotated[int, clamped(100, 600_000)] = 30_000
    """How long the receiver may take to accept a message, in milliseconds."""
    receive: ChannelReceiveSettings | None = None
    """Takes messages that come in at the gateway; none are when absent."""
