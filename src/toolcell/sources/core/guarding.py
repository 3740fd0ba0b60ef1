"""Owns the guard of this process: what ends its shell commands when it is killed.

A process that is ended with SIGKILL can do nothing any more, so another one has to. One guard for
all commands of a runtime, started with the first of them. A command is told to it before it begins:
without a guard no command is started.

Above: `shell_session`. Below: `process_guard`, `subprocess`. Refuses to know: commands.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

import anyio

from toolcell.config.env import loader_environment
from toolcell.sources.core import process_guard
from toolcell.sources.core.process_guard import READY, line_of
from toolcell.tools.threads import run_sync

_STARTING_SECONDS: Final = 20.0
_CLOSING_SECONDS: Final = 10.0
"""What commands may take to end when the runtime does."""


class Guard:
    """One per runtime. Its methods block for moments, so they are called in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: dict[str, int] = {}
        self._closed = False
        self.idle = anyio.Event()

    @property
    def pid(self) -> int | None:
        """Its process; None while there is none."""
        return None if self._process is None else self._process.pid

    def watch(self, session_id: str, group: int = 0) -> None:
        """Have a command ended with this process; again when its process group is known.

        Raises:
            OSError: it cannot be had; the command must not begin.
        """
        with self._lock:
            if self._closed:
                raise OSError("the runtime is closing")
            self._watched[session_id] = group
            if self._process is None or not self._told(line_of(session_id, group)):
                self._renew()

    def forget(self, session_id: str) -> None:
        """A command is over.

        A guard that cannot be told so would end it later, when another may have its process group.
        So it goes, and another one is told of the commands that are left. Where none can be had
        these stay without one until the next command starts or ends.
        """
        with self._lock:
            if self._watched.pop(session_id, None) is None or self._closed:
                return
            if self._told(line_of(session_id, None)):
                return
            self._drop()
            if self._watched:
                with suppress(OSError):
                    self._renew()

    async def life(self) -> None:
        """Be there until cancelled; then go when no command is left."""
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(_CLOSING_SECONDS):
                    while self._watched:
                        await self.idle.wait()
                await run_sync(self._close)

    def over(self) -> None:
        """Let `life` look whether a command is left; called on the loop."""
        self.idle.set()
        self.idle = anyio.Event()

    def _told(self, line: bytes) -> bool:
        """Tell the guard; return False when it is gone or does not read."""
        process = self._process
        if process is None or process.stdin is None:
            return False
        try:
            os.write(process.stdin.fileno(), line)  # a whole line, or none: it is short
        except (BrokenPipeError, BlockingIOError):
            return False
        return True

    def _renew(self) -> None:
        """Start a guard, in the place of one that is gone, and tell it everything."""
        self._drop()
        if not sys.executable:
            raise OSError("there is no Python to run its guard with")
        process = self._process = subprocess.Popen(  # noqa: S603 - a program of our own
            [sys.executable, "-I", "-S", process_guard.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=loader_environment(),
            start_new_session=True,
        )
        if not _ready(process) or not all(
            self._told(line_of(*each)) for each in self._watched.items()
        ):
            self._drop()
            raise OSError("the process that would guard it does not start")

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def _close(self) -> None:
        """Close its input, at which it goes; what is still watched then ends first."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
            if process is None or process.stdin is None:
                return
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSING_SECONDS)
                return
            process.kill()
            process.wait()


def _ready(process: subprocess.Popen[bytes]) -> bool:
    """Wait until the guard reads, with its input set up."""
    if process.stdin is None or process.stdout is None:
        return False
    os.set_blocking(process.stdin.fileno(), False)
    with process.stdout:
        begun = select.poll()  # `select` takes no descriptor above 1023, and a gateway has many
        begun.register(process.stdout, select.POLLIN)
        return bool(begun.poll(_STARTING_SECONDS * 1000)) and process.stdout.read(1) == READY
