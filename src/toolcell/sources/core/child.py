"""Owns one child process: started off the loop, its pipes read and its exit awaited on the loop.

Above: `sources.core.shell_session`. Below: `subprocess`, `anyio`. Refuses to know: tools.

The pipes are our own: `asyncio`'s process transports close only when every holder of a pipe is
gone, which a daemon in the background may never be.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from toolcell.tools.threads import run_sync

_READ_BYTES: Final = 65_536
_POLL_SECONDS: Final = 0.05
"""How often the exit is looked for where the system has no descriptor for it."""


class Child:
    """A running process in a session of its own. `close` it in the end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._exit_fd = _exit_descriptor(process.pid)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        """Its process id, and the id of its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    async def wait(self) -> int:
        """Return the exit code once the process itself has ended, whoever still holds its pipes."""
        while (code := self._process.poll()) is None:
            if self._exit_fd is None:
                await anyio.sleep(_POLL_SECONDS)
            else:
                await anyio.wait_readable(self._exit_fd)
        return code

    async def read_stdout(self) -> bytes:
        """Return the next bytes; empty at the end."""
        return await _read(self._process.stdout)

    async def read_stderr(self) -> bytes:
        """Return the next bytes; empty at the end."""
        return await _read(self._process.stderr)

    async def feed(self, data: bytes) -> None:
        """Write its whole input and close it; a process that does not read it is no error."""
        pipe = self._process.stdin
        if pipe is None:
            return
        left = memoryview(data)
        with suppress(BrokenPipeError):
            while left:
                try:
                    left = left[os.write(pipe.fileno(), left) :]
                except BlockingIOError:
                    await anyio.wait_writable(pipe.fileno())
        with suppress(BrokenPipeError):
            pipe.close()

    def close(self) -> None:
        """Close our ends of its pipes. Nobody may be reading."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self._exit_fd is not None:
            os.close(self._exit_fd)
            self._exit_fd = None


async def start_child(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    with_input: bool,
    watch: Callable[[int], None],
) -> Child:
    """Start a process; raises OSError or ValueError when it cannot be started.

    Args:
        argv: The program and its arguments.
        cwd: Where.
        env: The whole environment.
        with_input: Whether it is to be fed.
        watch: Called in the same thread before the start with 0, and right after with the id of
            the process, which is that of its group; what it raises keeps it from starting.
    """

    def start() -> subprocess.Popen[bytes]:
        watch(0)
        process = subprocess.Popen(  # noqa: S603 - running commands is what this is for
            list(argv),
            stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        try:
            watch(process.pid)
        except OSError:
            os.killpg(process.pid, signal.SIGKILL)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()
            raise
        return process

    # A start that was cancelled half way would leave a process nobody knows.
    process: subprocess.Popen[bytes]
    with anyio.CancelScope(shield=True):
        process = await run_sync(start)
    return Child(process)


async def _read(pipe: object) -> bytes:
    descriptor = pipe.fileno()  # type: ignore[attr-defined]
    while True:
        try:
            return os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)


def _exit_descriptor(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends (Linux)."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
