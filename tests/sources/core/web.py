"""A web server that says what a test wants, byte by byte, and counts what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketStream


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = bytes | Callable[[Asked], bytes | Awaitable[bytes]]


def page(
    body: bytes | str, kind: str = "text/html", status: str = "200 OK", **headers: str
) -> bytes:
    """Return an HTTP answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def redirect(to: str, status: str = "302 Found") -> bytes:
    """Return a redirect."""
    return page("", "", status, Location=to)


@dataclass
class Web:
    """What it answers, by target without query."""

    port: int
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving() -> AsyncIterator[Web]:
    """Serve on a free port of this machine."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        web = Web(listener.extra(SocketAttribute.local_port))  # noqa: S610 - no Django
        group.start_soon(listener.serve, lambda stream: _answer(web, stream))
        yield web
        group.cancel_scope.cancel()


async def _answer(web: Web, stream: SocketStream) -> None:
    async with stream:
        try:
            asked = await _asked(stream)
        except anyio.EndOfStream:
            return
        web.asked.append(asked)
        answer = web.answers.get(asked.target.split("?")[0], page("none", status="404 Not Found"))
        given = answer if isinstance(answer, bytes) else answer(asked)
        try:
            await stream.send(given if isinstance(given, bytes) else await given)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def _asked(stream: SocketStream) -> Asked:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, target, _ = first.split(" ")
    return Asked(method, target, headers, body)
