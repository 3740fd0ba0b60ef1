"""Owns what model calls cost: as the endpoint reports it, else by the prices of the config.

Above: `registry`. Below: `contract`, `protocol`. Refuses to know: any vendor's prices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from toolcell.protocol.messages import ModelReply, ModelRequest, Usage
from toolcell.providers.contract import CheckPayload, Provider

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars for a million tokens.

    Attributes:
        input: Of what is sent.
        output: Of what is written.
        cache_read: Of what its cache had; as `input` when None.
        cache_write: Of what its cache takes; as `input` when None.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """Return what a call cost."""
        read, written = usage.cached_tokens, usage.written_tokens
        plain = max(usage.input_tokens - read - written, 0)
        dollars = (
            plain * self.input
            + read * (self.input if self.cache_read is None else self.cache_read)
            + written * (self.input if self.cache_write is None else self.cache_write)
            + usage.output_tokens * self.output
        )
        return dollars / _MILLION


class Priced:
    """A provider whose replies say what they cost."""

    def __init__(self, provider: Provider, prices: Mapping[str, Price]) -> None:
        self._provider = provider
        self._prices = prices

    async def complete(
        self,
        request: ModelRequest,
        *,
        check_payload: CheckPayload | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Send the request; see `Provider`."""
        reply = await self._provider.complete(request, check_payload=check_payload, on_text=on_text)
        price = self._prices.get(request.model)
        if price is None or reply.usage.cost is not None:
            return reply
        return replace(reply, usage=replace(reply.usage, cost=price.of(reply.usage)))

    async def aclose(self) -> None:
        """Close connections."""
        await self._provider.aclose()
