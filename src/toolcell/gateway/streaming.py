"""Owns answering while a run goes on: server-sent events, and noticing that the client went away.

Above: the routes. Below: Starlette. Refuses to know: runs, wires.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

HEARTBEAT_SECONDS: Final = 15.0
"""Proxies close what is silent for long; a comment line is not data."""
HEARTBEAT: Final = b": keep-alive\n\n"

_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
T = TypeVar("T")

Events = Callable[[], AsyncIterator[bytes]]


class EventStream(Response):
    """A `text/event-stream` response.

    Args:
        events: Makes the frames, each whole.
        on_gone: Called when the client goes away before the end.
        headers: Further headers.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: Events,
        *,
        on_gone: Callable[[], None] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, 200, {**_HEADERS, **(headers or {})})
        del self.headers["content-length"]
        self._events = events
        self._on_gone = on_gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames, and heartbeats between them."""
        del scope
        done = False
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks)
                await self._send(send)
                done = True
                tasks.cancel_scope.cancel()
        finally:
            if not done and self._on_gone is not None:
                self._on_gone()

    async def _send(self, send: Send) -> None:
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async with anyio.create_task_group() as tasks:
            beat = Heart(write)
            tasks.start_soon(beat.run)
            async with aclosing(self._events()) as frames:  # type: ignore[type-var]
                async for frame in frames:
                    await beat.write(frame)
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Heart:
    """Writes frames, and a comment when none was written for a while."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write
        self._turn = anyio.Lock()
        self._written = anyio.Event()

    async def write(self, frame: bytes) -> None:
        """Write one frame."""
        async with self._turn:
            await self._write(frame)
        self._written.set()

    async def run(self) -> None:
        """Write heartbeats until cancelled."""
        while True:
            self._written = anyio.Event()
            with anyio.move_on_after(HEARTBEAT_SECONDS) as silence:
                await self._written.wait()
            if silence.cancelled_caught:
                async with self._turn:
                    await self._write(HEARTBEAT)


async def while_connected(
    receive: Receive, work: Callable[[], Awaitable[T]], *, on_gone: Callable[[], None]
) -> T:
    """Return what `work` gives; when the client goes away first, `on_gone` is called, once."""
    results: list[T] = []
    failure: Exception | None = None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        on_gone()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            results.append(await work())
        except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return results[0]


async def _until_gone(receive: Receive, tasks: TaskGroup) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    tasks.cancel_scope.cancel()
