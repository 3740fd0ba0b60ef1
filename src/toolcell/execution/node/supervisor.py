"""Owns one supervisor process: starts it, sends commands, hands answers to who waits, ends it.

Above: `executor`. Below: `wire`, `binary`, and `guest/supervisor.mjs` on the other side of the
pipes. Refuses to know: what a step is. It lives on one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.frames import FrameError
from toolcell.execution.node.binary import REMEDY, NodeBinary
from toolcell.execution.node.wire import DECODE_ON_LOOP, Line, LineReader, command

GUEST = Path(__file__).resolve().parent / "guest"
STDERR_TAIL = 8 << 10
OLDEST = (22, 16)

FLAGS = (
    "--no-warnings",
    # Nothing is allowed but threads and reading our own files: a second fence, not the first.
    "--permission",
    "--allow-worker",
    f"--allow-fs-read={GUEST}",
    # node:sqlite opens files that permission mode knows nothing of (tried with Node 24.19).
    "--no-experimental-sqlite",
    # Only with it may a context answer `import()` with an error of its own realm.
    "--experimental-vm-modules",
    # Flags of V8 are set by supervisor.mjs: here they would cost Node its own code cache, 30 ms.
)


class SupervisorGoneError(Exception):
    """The process ended before it answered; the text says why where that is known."""


class Supervisor:
    """One process. Made by `launch`; `ready` waits until it can be used."""

    def __init__(self, binary: NodeBinary, line_limit: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.images: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.version = ""
        self.alive = True
        self._binary = binary
        self._reader = LineReader(line_limit)
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._waiting: dict[int, asyncio.Future[Line]] = {}
        self._hello: asyncio.Future[Line] = self.loop.create_future()
        self._exited = asyncio.Event()
        self._stderr = b""
        self._cause = ""
        self._pid = 0

    @classmethod
    async def launch(
        cls, binary: NodeBinary, settings: Mapping[str, int], line_limit: int
    ) -> Supervisor:
        """Start the process.

        Raises:
            RuntimeUnavailableError: the system refuses to.
        """
        supervisor = cls(binary, line_limit)
        arguments = (*FLAGS, str(GUEST / "supervisor.mjs"), json.dumps(dict(settings)))
        try:
            transport, _ = await supervisor.loop.subprocess_exec(
                lambda: _Pipes(supervisor),
                str(binary.path),
                *arguments,
                env={"TZ": "UTC", **_needed_by_the_system()},
                cwd=tempfile.gettempdir(),
                start_new_session=True,
            )
        except OSError as error:
            msg = (
                f"executor 'node' is not available: {str(binary.path)!r} does not start: "
                f"{error}; {REMEDY}"
            )
            raise RuntimeUnavailableError(msg) from error
        supervisor._pid = transport.get_pid()
        return supervisor

    async def ready(self, seconds: float) -> None:
        """Wait until it has said hello.

        Raises:
            RuntimeUnavailableError: it ended, takes longer than `seconds`, or is too old.
        """
        with anyio.move_on_after(seconds):
            await asyncio.wait([self._hello])
        if not self._hello.done() or not self.alive:
            said = self._last_words() or f"it was not ready within {seconds:g} s"
            self.kill()
            msg = (
                f"executor 'node' is not available: {str(self._binary.path)!r} "
                f"({self._binary.origin}) does not run the supervisor: {said}; {REMEDY}"
            )
            raise RuntimeUnavailableError(msg)
        told = self._hello.result().decode()
        self.version = str(told.get("node", ""))
        if told.get("sound") is not True or _version(self.version) < OLDEST:
            self.kill()
            msg = (
                f"executor 'node' is not available: {str(self._binary.path)!r} is Node "
                f"{self.version}, which lacks what is needed; {REMEDY}"
            )
            raise RuntimeUnavailableError(msg)

    def send(
        self, verb: str, number: int, numbers: tuple[int, ...] = (0,), payload: str = ""
    ) -> None:
        """Send a command; nothing happens where the process is gone."""
        if self.alive and self._stdin is not None:
            self._stdin.write(command(verb, number, numbers, payload))

    def expect(self, number: int) -> asyncio.Future[Line]:
        """Return what will hold the answer to command `number`, or `SupervisorGoneError`."""
        future: asyncio.Future[Line] = self.loop.create_future()
        if self.alive:
            self._waiting[number] = future
        else:
            future.set_exception(SupervisorGoneError(self._last_words()))
        return future

    def unexpect(self, number: int) -> None:
        """Nobody waits for this answer any more."""
        self._waiting.pop(number, None)

    def kill(self) -> None:
        """End the process at once. From the loop's thread, also when the loop is another."""
        self.alive = False
        if self._exited.is_set() or not self._pid:
            return
        if self.loop.is_closed() or self._transport is None:
            with contextlib.suppress(OSError):
                os.kill(self._pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            return
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    async def aclose(self) -> None:
        """End the process and wait for it."""
        self.alive = False
        self.kill()
        await self._exited.wait()
        if self._transport is not None:
            self._transport.close()
        await anyio.lowlevel.checkpoint()

    def note(self, told: Mapping[str, Any]) -> None:
        """Remember the counts of its workers."""
        for name in ("workers", "idle", "started", "queued"):
            if isinstance(told.get(name), int):
                self.counts[name] = told[name]

    # What the pipes tell.

    def _connected(self, transport: asyncio.SubprocessTransport) -> None:
        self._transport = transport
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)  # noqa: S101 - asyncio's word
        self._stdin = stdin

    def _received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr = (self._stderr + data)[-STDERR_TAIL:]
            return
        try:
            for line in self._reader.feed(data):
                self._hear(line)
        except FrameError as error:
            self._cause = str(error)
            self.kill()

    def _hear(self, line: Line) -> None:
        match line.verb:
            case "hello":
                if not self._hello.done():
                    self._hello.set_result(line)
            case "workers":
                self.note(line.decode())
            case _:
                future = self._waiting.pop(line.id, None)
                if future is not None and not future.done():
                    future.set_result(line)

    def _process_ended(self) -> None:
        self.alive = False
        self._exited.set()
        if self._transport is not None:
            self._transport.close()

    def _read_to_the_end(self) -> None:
        """Tell who still waits that there will be no answer."""
        words = self._last_words()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(SupervisorGoneError(words))
        if not self._hello.done():
            self._hello.cancel()

    def _last_words(self) -> str:
        if self._cause:
            return self._cause
        words = self._stderr.decode("utf-8", "replace")
        for line in words.splitlines():
            if "FATAL ERROR" in line or "Fatal JavaScript" in line or "bad option" in line:
                return line.strip().removeprefix("# ")
        return words.strip()[-512:]


class _Pipes(asyncio.SubprocessProtocol):
    """Passes on what the event loop tells of the process."""

    def __init__(self, owner: Supervisor) -> None:
        self._owner = owner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)  # noqa: S101 - asyncio's word
        self._owner._connected(transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._owner._received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        if fd in {0, 1} and self._owner.alive:
            self._owner.kill()

    def process_exited(self) -> None:
        self._owner._process_ended()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._owner._read_to_the_end()


async def decoded(line: Line) -> dict[str, Any]:
    """Decode an answer without holding up the loop.

    Raises:
        FrameError: see `Line.decode`.
    """
    if len(line.payload) <= DECODE_ON_LOOP:
        return line.decode()
    return await anyio.to_thread.run_sync(line.decode)


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")[:2]
    return tuple(int(part) for part in parts) if all(map(str.isdigit, parts)) else (0,)


def _needed_by_the_system() -> dict[str, str]:
    """Windows starts no process without this; elsewhere the environment is empty."""
    return {"SYSTEMROOT": r"C:\Windows"} if os.name == "nt" else {}
