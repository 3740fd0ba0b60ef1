"""Owns when the HTTP library is loaded: with the first request, because that takes 80 ms.

Above: `toolset`, tests. Below: `http_types`, `http_client`.
"""

from __future__ import annotations

from toolcell.sources.core.addresses import AddressRules
from toolcell.sources.core.http_types import Http, HttpReply, HttpRequest
from toolcell.tools.threads import run_sync


class LazyHttp:
    """Sends requests to addresses that `rules` allow."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._client: Http | None = None

    async def get(self, request: HttpRequest) -> HttpReply:
        """Send and follow redirects; raises `CallError`."""
        return await (await self._loaded()).get(request)

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send; a redirect is an answer like any other. Raises `CallError`."""
        return await (await self._loaded()).send(request)

    async def _loaded(self) -> Http:
        if self._client is None:
            self._client = await run_sync(self._load)
        return self._client

    def _load(self) -> Http:
        from toolcell.sources.core.http_client import HttpClient  # noqa: PLC0415 - 80 ms

        return HttpClient(self._rules)
