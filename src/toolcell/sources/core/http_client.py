"""Owns HTTP for core tools: one exchange, bounded in time and bytes, to addresses that are allowed.

Above: `http`. Below: `addresses`, `httpcore2`. The one file that knows
`httpcore2`: it takes the socket from us, so that the address that was checked is the one used.
Refuses to know: what a body means. No proxy is used: it would resolve names by itself.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import anyio
import httpcore2

from toolcell.base.version import VERSION
from toolcell.errors import CallError
from toolcell.sources.core.addresses import AddressRules
from toolcell.sources.core.http_types import HttpReply, HttpRequest
from toolcell.sources.core.work import failed, refused
from toolcell.tools.threads import run_sync

MAX_REDIRECTS: Final = 5
MAX_URL_CHARS: Final = 8192
AGENT: Final = f"toolcell/{VERSION}"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~-._"
_QUERY_SAFE: Final = _PATH_SAFE + "?[]|"
_PORTS: Final = {"http": 80, "https": 443}


class HttpClient:
    """Sends requests to addresses that `rules` allow. Keeps no connections."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._tls: ssl.SSLContext | None = None

    async def get(self, request: HttpRequest) -> HttpReply:
        """Send a request and follow redirects; each is checked like the first.

        Raises:
            CallError: the address may not be reached, or nothing usable came back.
        """
        with _bounded(request):
            url = request.url
            for _ in range(MAX_REDIRECTS + 1):
                reply = await self._exchange(request, url)
                target = reply.headers.get("location")
                if reply.status not in _REDIRECTS or not target:
                    return reply
                url = _joined(reply.url, target)
            message = f"{request.url[:200]!r} redirects more than {MAX_REDIRECTS} times."
            raise _outside(message)

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send a request; a redirect is an answer like any other. Raises like `get`."""
        with _bounded(request):
            return await self._exchange(request, request.url)

    async def _exchange(self, request: HttpRequest, address: str) -> HttpReply:
        url, shown = _parsed(address)
        if url.scheme == b"https" and self._tls is None:
            self._tls = await run_sync(httpcore2.default_ssl_context)
        headers = {
            "User-Agent": AGENT,
            "Accept-Encoding": "gzip, deflate",
            **request.headers,
        }
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=self._tls, network_backend=_Checked(self._rules)
        )
        async with (
            pool,
            pool.stream(
                request.method, url, headers=list(headers.items()), content=request.content
            ) as response,
        ):
            found = _headers(response.headers)
            if response.status in _REDIRECTS:
                return HttpReply(
                    url=shown, status=response.status, headers=found, body=b"", truncated=False
                )
            unpacked = _Unpacking(found.get("content-encoding", ""), request.max_bytes)
            async for chunk in response.aiter_stream():
                if not unpacked.add(chunk):
                    break
            return HttpReply(
                url=shown,
                status=response.status,
                headers=found,
                body=bytes(unpacked.data[: request.max_bytes]),
                truncated=len(unpacked.data) > request.max_bytes,
            )


@contextmanager
def _bounded(request: HttpRequest) -> Iterator[None]:
    """Put a time limit around an exchange, and tell errors as a tool tells them."""
    url = request.url[:200]
    try:
        with anyio.fail_after(request.seconds):
            yield
    except (TimeoutError, httpcore2.TimeoutException):
        message = f"{url!r} did not answer within {request.seconds:g} seconds."
        raise failed(message) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        message = f"{url!r} cannot be reached: {str(error)[:200] or type(error).__name__}."
        raise _outside(message) from None
    except zlib.error:
        message = f"{url!r} sent a body that cannot be unpacked."
        raise failed(message) from None


class _Checked(httpcore2.AsyncNetworkBackend):
    """Opens sockets to checked addresses only."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers."""
        failure: Exception | None = None
        for address in await self._rules.addresses(host, port):
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


class _Unpacking:
    """A body as it arrives: unpacked, and never much more than the limit in memory."""

    def __init__(self, encoding: str, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit
        match encoding.strip().lower():
            case "" | "identity":
                self._unpacker = None
            case "gzip" | "x-gzip" | "deflate":
                self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
            case other:
                message = f"The answer is packed as {other[:40]!r}, which is not understood."
                raise failed(message)

    def add(self, chunk: bytes) -> bool:
        """Take more; return whether there is room for still more."""
        room = self._limit + 1 - len(self.data)
        if self._unpacker is None:
            self.data += chunk[:room]
        else:
            self.data += self._unpacker.decompress(chunk, room)
            if self._unpacker.eof:  # what follows is no part of the body, and would be collected
                return False
        return len(self.data) <= self._limit


def _parsed(address: str) -> tuple[httpcore2.URL, str]:
    """Return a URL in the form that is sent, and as text without its fragment."""
    if len(address) > MAX_URL_CHARS:
        message = f"The URL has {len(address)} characters, at most {MAX_URL_CHARS}."
        raise refused(message)
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname or "", parts.port
        ascii_host = host.encode("idna") if not host.isascii() else host.encode("ascii")
    except (ValueError, UnicodeError):
        message = f"{address[:200]!r} is no URL."
        raise refused(message) from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not host:
        message = f"{address[:200]!r} is no http or https URL."
        raise refused(message)
    if "@" in parts.netloc:
        message = "The URL holds a user name, which is not sent. Leave it out."
        raise refused(message)
    target = quote(parts.path or "/", safe=_PATH_SAFE, errors="replace")
    if parts.query:
        target += "?" + quote(parts.query, safe=_QUERY_SAFE, errors="replace")
    url = httpcore2.URL(
        scheme=scheme.encode(), host=ascii_host, port=port, target=target.encode("ascii")
    )
    place = f"[{host}]" if ":" in host else ascii_host.decode("ascii")
    shown_port = "" if port in {None, _PORTS[scheme]} else f":{port}"
    return url, f"{scheme}://{place}{shown_port}{target}"


def _joined(base: str, target: str) -> str:
    """Return where a redirect leads."""
    try:
        return urljoin(base, target)
    except ValueError:
        message = f"{base[:200]!r} redirects to {target[:200]!r}, which is no URL."
        raise _outside(message) from None


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def _outside(message: str) -> CallError:
    """Return an error that repeats words from outside."""
    return CallError(message, code="tool_error", effect="none", untrusted=True)
