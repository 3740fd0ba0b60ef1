"""Owns serving one client over stdin and stdout.

The protocol gets the two pipes for itself: while it is served, descriptor 0 reads nothing and 1
writes to stderr, so that no stray `print` of a plugin and no child process can break it. The pipes
are waited for on the event loop: a thread that blocks in `read` would keep the process alive after
SIGTERM.

Above: `toolcell mcp serve`. Below: the MCP SDK, the protocol server.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from toolcell.mcp_server.server import McpServer

MAX_MESSAGE_BYTES: Final = 16 << 20
"""Longest message taken from a client; source text may have 4 MiB."""

_CHUNK: Final = 1 << 16

Incoming = SessionMessage | Exception


@dataclass(frozen=True, slots=True)
class Pipes:
    """The protocol's own descriptors: `source` is read, `target` is written."""

    source: int
    target: int


@contextmanager
def protocol_pipes() -> Iterator[Pipes]:
    """Take stdin and stdout for the protocol, and put harmless descriptors in their place.

    Use it around all of a program, also around the loading of plugins: what they print goes to
    stderr, and what Python still holds of it is written there before stdout is given back.
    """
    sys.stdout.flush()
    pipes = Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield pipes
    finally:
        sys.stdout.flush()
        os.dup2(pipes.source, 0)
        os.dup2(pipes.target, 1)
        for each in (pipes.source, pipes.target, nothing):
            os.close(each)


async def serve_stdio(server: McpServer, pipes: Pipes) -> None:
    """Serve until the client closes stdin."""
    async with (
        _streams(pipes) as (incoming, outgoing),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.announce_changes)
        await server.run(incoming, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _streams(
    pipes: Pipes,
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]
]:
    into, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    answers = outgoing.clone()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, pipes.source, into, answers)
        tasks.start_soon(_write, _Output(pipes.target), outbox, tasks.cancel_scope)
        try:
            yield incoming, outgoing
        finally:
            incoming.close()
            outgoing.close()
            tasks.cancel_scope.cancel()


async def _read(
    source: int,
    into: MemoryObjectSendStream[Incoming],
    answers: MemoryObjectSendStream[SessionMessage],
) -> None:
    """Hand on each message until the pipe or the session ends."""
    async with into, answers:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for line in _lines(source):
                message = None if line is None else _parsed(line)
                if isinstance(message, SessionMessage):
                    await into.send(message)
                elif line is None or line.strip():
                    await answers.send(SessionMessage(_unreadable(too_long=line is None)))


async def _lines(source: int) -> AsyncGenerator[bytes | None]:
    """Yield whole lines; None in the place of one that is too long to keep."""
    waits = _pollable(source)
    parts: list[bytes] = []
    size = 0
    while True:
        if waits:
            await anyio.wait_readable(source)
        else:
            await anyio.lowlevel.checkpoint()
        chunk = os.read(source, _CHUNK)
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            size += len(end)
            yield b"".join((*parts, end)) if size <= MAX_MESSAGE_BYTES else None
            parts, size = [], 0
        size += len(rest)
        if size <= MAX_MESSAGE_BYTES:
            parts.append(rest)
        else:
            parts = []
        if not chunk:
            return


def _parsed(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        return None


def _unreadable(*, too_long: bool) -> JSONRPCError:
    limit = f"a message has more than {MAX_MESSAGE_BYTES} bytes"
    text = limit if too_long else "a line is no JSON-RPC message"
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=text))


async def _write(
    output: _Output,
    outbox: MemoryObjectReceiveStream[SessionMessage],
    stop: anyio.CancelScope,
) -> None:
    """Write what the session sends; a client that no longer reads ends the session."""
    try:
        async with outbox:
            async for item in outbox:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await output.send(text.encode("utf-8") + b"\n")
    except OSError:
        stop.cancel()


class _Output:
    """Writes to a pipe without ever blocking the event loop.

    The descriptor's flags belong to the parent process too, so it is not made non-blocking: a pipe
    that can be written takes PIPE_BUF bytes at once, a socket is sent to with MSG_DONTWAIT, and
    files and terminals do not keep anybody waiting.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        mode = os.fstat(target).st_mode
        self._pipe = stat.S_ISFIFO(mode)
        self._socket = socket.socket(fileno=os.dup(target)) if stat.S_ISSOCK(mode) else None

    async def send(self, data: bytes) -> None:
        """Write all of `data`."""
        view = memoryview(data)
        while view:
            if self._pipe or self._socket is not None:
                await anyio.wait_writable(self._target)
            view = view[self._some(view) :]
        await anyio.lowlevel.checkpoint()

    def _some(self, view: memoryview) -> int:
        if self._socket is None:
            return os.write(self._target, view[: select.PIPE_BUF] if self._pipe else view)
        try:
            return self._socket.send(view, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0


def _pollable(source: int) -> bool:
    """Whether the event loop can wait for it; a file is always ready and cannot be waited for."""
    mode = os.fstat(source).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(source)
