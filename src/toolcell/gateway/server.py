"""Owns the socket and the signals: serve until told to stop, then drain, then close.

Above: `toolcell gateway`, tests. Below: Uvicorn, `app`, `service`.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import uvicorn

from toolcell.errors import ConfigError
from toolcell.gateway.app import gateway_app
from toolcell.gateway.service import Service

_CLOSING_SECONDS = 2.0
"""What connections may still take when every run is over."""

_ENDING_SECONDS = 1.0
"""What answers may take to end when their connections are gone."""

_LOOK_SECONDS = 0.005

HEAD_SECONDS = 30.0
"""How long a client may take to send the head of a request, from when it connected or from the
first byte. Uvicorn waits for ever, and whoever sends a byte now and then needs no token for it."""

_MAX_PORT = 65_535
COLLECT_AT = (2_000, 10, 50)
"""Thresholds of the garbage collector's three generations, for `gc.set_threshold`."""

KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep an idle connection, so that none is closed under a request of theirs."""


class _Uvicorn(uvicorn.Server):
    """Uvicorn that leaves signals to us and wakes when it is told to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()
        self.stopping = anyio.Event()
        self._waiting: dict[Any, tuple[object, float]] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say when it listens."""
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Wait to be stopped, and keep the date header current."""
        while not self.stopping.is_set():
            await self.on_tick(0)
            self._end_slow(anyio.current_time())
            with anyio.move_on_after(1.0):
                await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close idle connections and wait for the others; Uvicorn itself looks every 100 ms."""
        for each in (*self.servers, *(sockets or ())):
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with anyio.move_on_after(self.config.timeout_graceful_shutdown):
            await self._over()
        # Who does not read is not waited for; its answer ends as that of a client that went away.
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            connection.transport.abort()
        with anyio.move_on_after(_ENDING_SECONDS):
            await self._over()
        for task in self.server_state.tasks:
            task.cancel()

    async def _over(self) -> None:
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - sets
            await anyio.sleep(_LOOK_SECONDS)

    def _end_slow(self, now: float) -> None:
        """End connections that have been in the middle of a head, or before one, for too long."""
        waiting: dict[Any, tuple[object, float]] = {}
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            answered = connection.cycle
            busy = answered is not None and not answered.response_complete
            # Between two requests Uvicorn's own timer runs, until the first byte of the next one.
            if busy or connection.timeout_keep_alive_task is not None:
                continue
            last, since = self._waiting.get(connection, (None, now))
            since = since if last is answered else now
            if now - since > HEAD_SECONDS:
                connection.transport.abort()
            else:
                waiting[connection] = (answered, since)
        self._waiting = waiting

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: Uvicorn would end the process before its runs are over."""
        yield


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[str]:
    """Serve for the body of the `async with` statement; yields the address, `http://host:port`.

    Leaving the body drains: no further request is taken, runs go on to their end or to
    `gateway.limits.drainSeconds`, open responses are finished.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    gateway = service.config.gateway
    listener = _listener(gateway.host, gateway.port)
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        gateway_app(service),
        log_config=None,
        http="h11",  # whatever else is installed: `_end_slow` reads its connections
        log_level="error",  # what it warns of is what clients sent
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(gateway.limits.drain_seconds + _CLOSING_SECONDS),
    )
    server = _Uvicorn(config)
    failure: Exception | None = None
    with contextlib.closing(listener):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await server.listening.wait()
            try:
                yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    service.begin_drain()
                    await service.drained()
                    server.stopping.set()
    if failure is not None:
        raise failure


@contextmanager
def told_to_stop() -> Iterator[Callable[[], Awaitable[str]]]:
    """Catch SIGTERM and SIGINT; yields what waits for one of them and returns its name."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

        async def first() -> str:
            async for number in signals:
                return signal.Signals(number).name
            return "the end of signals"

        yield first


def settle_memory() -> None:
    """Take what was made at start out of garbage collection, for a process that only serves.

    A full collection walks every object there is; with the modules of a gateway that stops the
    event loop for 80 ms, every few hundred turns. What serving makes is still collected, less often
    than a program of Python's usual size would need: with 200 sessions at work a full collection
    took 30-50 ms and came every three seconds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AT)


def _listener(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _MAX_PORT:
        message = f"{port} is no port: 0 to {_MAX_PORT}, where 0 takes a free one"
        raise ConfigError(message, path="gateway.port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on: 40 ms for each answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        if error.errno == errno.EADDRINUSE:
            message += "; is another gateway running? --port takes another one, 0 a free one"
        raise ConfigError(message, path="gateway.port") from error
    return listener
