"""Owns what is asked of a web server and what comes back, and the port that does it.

Above: web_fetch, web_search, webhooks. Below: nothing. Refuses to know: how it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What to send. `max_bytes` bounds the body of the answer, before and after unpacking."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    max_bytes: int = 5 << 20
    seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """What came back.

    Attributes:
        url: Where it came from, after redirects.
        headers: By lower-case name; of equal ones the first.
        truncated: Whether the body was longer than the limit.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool

    @property
    def content_type(self) -> str:
        """The media type, lower-case and without parameters; empty when none is given."""
        return self.headers.get("content-type", "").split(";", 1)[0].strip().lower()


class Http(Protocol):
    """Sends requests. Both raise `CallError` when nothing usable comes back."""

    async def get(self, request: HttpRequest) -> HttpReply:
        """Send and follow redirects."""
        ...

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send; a redirect is an answer like any other."""
        ...
