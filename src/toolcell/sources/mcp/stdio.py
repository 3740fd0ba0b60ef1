"""Owns the stdio transport: a child process, its pipes, and its clean end.

The session on top is the MCP SDK's; so are the inherited environment and the killing of a process
tree. The pipe handling is ours because a server is hostile: the SDK's reader joins a long line
again with every chunk (seconds of a blocked loop for 50 MB), has no limit, and leaves a call whose
answer cannot be read waiting for its timeout.

Above: transports. Below: the MCP SDK, `sources.mcp.lines`.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from toolcell.errors import McpError
from toolcell.sources.mcp.lines import LineCutter, Overlong
from toolcell.sources.mcp.settings import McpServerSettings
from toolcell.sources.mcp.status import LogTail

MAX_MESSAGE_BYTES = 32 << 20
"""Longest message taken from a server: twice the largest reply a cell accepts."""

MAX_GARBAGE_LINES = 1_000
"""Lines that are no JSON-RPC, without a good one between, before the server is given up."""

MAX_SERVER_REQUESTS = 10_000
"""Requests answered per connection: a server that asks and never reads would fill the memory."""

_CHUNK = 1 << 16
_OUTBOX = 256
_EXIT_GRACE = 2.0
_KILL_GRACE = 2.0
_FLUSH_GRACE = 0.5
_POLL = 0.01

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

# The id of a message that cannot be read whole, where servers write it: first or last.
_ID_FIRST = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(slots=True)
class Exit:
    """How the process ended; `code` is None while it runs, negative for a signal."""

    code: int | None = None


@asynccontextmanager
async def stdio_streams(
    settings: McpServerSettings, log: LogTail, ended: Exit
) -> AsyncGenerator[Streams]:
    """Run the server as a child process and give the session's two streams.

    The child gets a session of its own, so that the end reaches its children too: stdin closed, two
    seconds to leave, SIGTERM, two more, SIGKILL. That also happens when the caller is cancelled.

    Raises:
        McpError: the program cannot be started.
    """
    process = await _spawn(settings)
    into, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, outbox = anyio.create_memory_object_stream[SessionMessage](_OUTBOX)
    pipes = _Pipes(process, into, outbox, log)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipes.read_stdout)
        tasks.start_soon(pipes.write_stdin)
        tasks.start_soon(pipes.read_stderr)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                with anyio.move_on_after(_FLUSH_GRACE):
                    await pipes.flushed.wait()
                await _stop(process)
                ended.code = process.returncode
            tasks.cancel_scope.cancel()


async def _spawn(settings: McpServerSettings) -> Process:
    command = settings.command or ""
    try:
        return await anyio.open_process(
            [command, *settings.args],
            env={**get_default_environment(), **settings.env},
            cwd=settings.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        where = f" in {settings.cwd!r}" if settings.cwd else ""
        msg = f"cannot run {command!r}{where}: {getattr(error, 'strerror', None) or error}"
        raise McpError(msg) from None


class _Pipes:
    """The three pumps between a process and its session."""

    def __init__(
        self,
        process: Process,
        into: MemoryObjectSendStream[Incoming],
        outbox: MemoryObjectReceiveStream[SessionMessage],
        log: LogTail,
    ) -> None:
        self._process = process
        self._into = into
        self._outbox = outbox
        self._log = log
        self._garbage = 0
        self._asked = 0
        self.flushed = anyio.Event()

    async def read_stdout(self) -> None:
        """Hand on each message until the pipe or the session ends."""
        cutter = LineCutter(MAX_MESSAGE_BYTES)
        stdout = self._process.stdout
        async with self._into:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while chunk := await _received(stdout):
                    for line in cutter.feed(chunk):
                        message = self._parsed(line)
                        if message is not None:
                            await self._into.send(message)
                    if self._garbage > MAX_GARBAGE_LINES:
                        self._log.add("[toolcell] its stdout is not MCP; giving up")
                        break
                    # A pipe that is always full would otherwise never yield to other tasks.
                    await anyio.lowlevel.checkpoint()
        # A server busy writing cannot see that its stdin closed; let it finish into nothing.
        while await _received(stdout):
            await anyio.lowlevel.checkpoint()

    async def write_stdin(self) -> None:
        """Write what the session sends until either end closes."""
        stdin = self._process.stdin
        try:
            async with self._outbox:
                async for item in self._outbox:
                    if stdin is not None:
                        await stdin.send(_encoded(item))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._into.aclose()
        finally:
            self.flushed.set()

    async def read_stderr(self) -> None:
        """Keep the last lines the server complains."""
        cutter = LineCutter(_CHUNK)
        while chunk := await _received(self._process.stderr):
            for line in cutter.feed(chunk):
                data = line.head if isinstance(line, Overlong) else line
                self._log.add(data.decode("utf-8", "replace"))
            await anyio.lowlevel.checkpoint()

    def _parsed(self, line: bytes | Overlong) -> SessionMessage | None:
        if isinstance(line, Overlong):
            limit = f"a message of {line.size} bytes, more than {MAX_MESSAGE_BYTES}"
            return self._unreadable(line.head, line.tail, limit)
        if not line.strip():
            return None
        try:
            message = jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False)
        except RecursionError:
            return self._unreadable(line[:512], line[-512:], "a message that is nested too deeply")
        except ValueError:
            return self._unreadable(line[:512], line[-512:], "a line that is not JSON-RPC")
        self._garbage = 0
        if isinstance(message, JSONRPCRequest):
            self._asked += 1
            if self._asked > MAX_SERVER_REQUESTS:
                return None
        return SessionMessage(message)

    def _unreadable(self, head: bytes, tail: bytes, what: str) -> SessionMessage | None:
        """Answer the call that a broken message belongs to, when it shows which."""
        self._garbage += 1
        if self._garbage <= 5:
            self._log.add(f"[toolcell] {what}: {head[:200].decode('utf-8', 'replace')}")
        found = _ID_FIRST.search(head) or _ID_LAST.search(tail)
        if found is None:
            return None
        error = ErrorData(code=PARSE_ERROR, message=f"the server sent {what}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


def _encoded(item: SessionMessage) -> bytes:
    """Return one line of ASCII JSON; lone surrogates of JavaScript strings stay escapes."""
    plain = item.message.model_dump(by_alias=True, exclude_unset=True)
    return json.dumps(plain, separators=(",", ":")).encode("ascii") + b"\n"


async def _received(stream: ByteReceiveStream | None) -> bytes:
    """Return the next bytes; none at the end of the pipe."""
    ends = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
    with suppress(*ends):
        if stream is not None:
            return await stream.receive(_CHUNK)
    return b""


async def _stop(process: Process) -> None:
    if process.stdin is not None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    if not await _exits_within(process, _EXIT_GRACE):
        await terminate_posix_process_tree(process, _KILL_GRACE)
        await _exits_within(process, _KILL_GRACE)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await pipe.aclose()


async def _exits_within(process: Process, seconds: float) -> bool:
    """Poll: `wait()` also waits for the pipes, which a grandchild may hold open."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110  nothing sets an event at its death
            await anyio.sleep(_POLL)
    return process.returncode is not None
