"""Owns what every wire over HTTP is given, and the port through which its traffic can be watched.

Above: the adapters, the registry. Below: `errors`. Refuses to know: vendors, logging.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolcell.errors import PayloadViolationError


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One model call on its way.

    Attributes:
        provider_id: The endpoint's name in config.
        model: The provider's own name of the model.
        attempt: Which try this is, from 1.
        sent_bytes: Length of the body of the latest try.
    """

    provider_id: str
    model: str
    attempt: int = 0
    sent_bytes: int = 0


class WireWatch(Protocol):
    """Sees requests and answers as they pass. Must not raise, block, or change what it is given."""

    def sent(self, exchange: Exchange, body: Mapping[str, Any]) -> None:
        """The body leaves, once for each attempt."""
        ...

    def refused(self, exchange: Exchange, error: PayloadViolationError) -> None:
        """The body was not allowed to leave."""
        ...

    def answered(self, exchange: Exchange, status: int, milliseconds: float) -> None:
        """The head of an answer came."""
        ...

    def event(self, exchange: Exchange, number: int, event: object) -> None:
        """One event of a stream came; `number` counts from 1."""
        ...


class Unwatched:
    """Nobody looks."""

    def sent(self, exchange: Exchange, body: Mapping[str, Any]) -> None:
        """Nobody looks."""

    def refused(self, exchange: Exchange, error: PayloadViolationError) -> None:
        """Nobody looks."""

    def answered(self, exchange: Exchange, status: int, milliseconds: float) -> None:
        """Nobody looks."""

    def event(self, exchange: Exchange, number: int, event: object) -> None:
        """Nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings:
    """One endpoint.

    Attributes:
        provider_id: Its name in config, for messages.
        base_url: Its address, without the path of the wire; None is the vendor's own.
        api_key: Its key; local endpoints may need none.
        stream: True always asks for a stream; None only when somebody listens.
        max_retries: Further attempts after a connection error, 408, 409, 429 or 5xx.
        timeout_seconds: The longest silence on the wire that is waited through.
        headers: Further request headers.
        watch: Sees the traffic.
    """

    provider_id: str = "openai"
    base_url: str | None = None
    api_key: str | None = None
    stream: bool | None = None
    max_retries: int = 2
    timeout_seconds: float = 600.0
    headers: Mapping[str, str] = field(default_factory=dict)
    watch: WireWatch = field(default_factory=Unwatched)
