"""Owns how a child is started, and the proof at start that it is locked in.

The flags are the first fence (Node's permission mode: no files, no processes, no workers, no
add-ons), the locked thread is the second (no network). Neither is taken on trust: before the first
body runs, a child tries everything, and `code` mode exists only where all of it failed.

Above: `process`, the runtime. Below: `lock`, `execution.node.binary`, `probe.js`, `body.js`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import anyio

from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.node.binary import find_node
from toolcell.toolsearch.child.lock import LockedThread, LockUnavailableError

PROBE_SECONDS: Final = 20.0
MAX_AT_ONCE: Final = 8
"""Children of one runtime at a time; each takes about 40 MB."""
_HERE: Final = Path(__file__).resolve().parent
_FLAGS: Final = (
    "--permission",
    "--no-warnings",
    # node:sqlite opens files that permission mode knows nothing of (tried with Node 24.19).
    "--no-experimental-sqlite",
    # Only with it may `import()` be answered by an error of the body's own realm.
    "--experimental-vm-modules",
    # V8's own flags would cost Node its code cache, 35 ms: body.js does without.
)
_MUST_FAIL: Final = (
    *("read", "write", "report", "child", "worker", "binding", "addon", "sqlite", "inspector"),
    *("tcp", "udp", "unix", "listen", "kill"),
)


class Launcher:
    """Starts locked children. One per runtime; close it at the end.

    Attributes:
        trouble: Why no child can be had; None when `prepare` has shown that one can.
        turns: Taken for as long as a child lives.
    """

    def __init__(self, node: Path | None = None) -> None:
        self.trouble: str | None = "it was not tried"
        self._node = node
        self._thread = LockedThread()
        self._body = (_HERE / "body.js").read_text(encoding="utf-8")
        self._argv: tuple[str, ...] = ()
        self.turns = anyio.Semaphore(MAX_AT_ONCE)

    async def prepare(self) -> None:
        """Find Node and let a child try to get out; `trouble` then says what came of it."""
        if self._argv:
            return
        try:
            binary = find_node(self._node)
            self._argv = (str(binary.path), *_FLAGS, "-e")
            self.trouble = await self._probed()
        except (OSError, RuntimeUnavailableError, LockUnavailableError) as error:
            self.trouble = str(error)

    async def start(self) -> subprocess.Popen[bytes]:
        """Start a child that waits for its body on stdin.

        Raises:
            RuntimeUnavailableError: there is none, or it does not start.
        """
        if self.trouble is not None:
            msg = f"tool_search_code has no isolated process: {self.trouble}"
            raise RuntimeUnavailableError(msg)
        try:
            return await self._started(self._body)
        except (OSError, LockUnavailableError) as error:
            msg = f"tool_search_code cannot start its process: {error}"
            raise RuntimeUnavailableError(msg) from error

    def close(self) -> None:
        """End the locked thread."""
        self._thread.close()

    async def _started(self, program: str) -> subprocess.Popen[bytes]:
        future = self._thread.start((*self._argv, program))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_end_unwanted)
            raise

    async def _probed(self) -> str | None:
        """Return what a child could do that it must not, or why it could not be asked."""
        with contextlib.closing(_listener()) as listener:
            port = listener.getsockname()[1]
            program = (_HERE / "probe.js").read_text(encoding="utf-8")
            process = await self._started(program.replace("PORT", str(port)))
            try:
                out, err = await anyio.to_thread.run_sync(_said, process)
            finally:
                process.kill()
            if _was_reached(listener):
                return "the network is open to it"
        return _verdict(out, err)


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.setblocking(False)
    return listener


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _said(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    try:
        out, err = process.communicate(timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def _verdict(out: str, err: str) -> str | None:
    try:
        tried = json.loads(out)
    except ValueError:
        words = err.strip()[-512:] or f"it was silent for {PROBE_SECONDS:g} s"
        return f"Node does not run as it must: {words}"
    held = isinstance(tried, dict) and tried.get("environment") == 0
    if not held:
        return "its environment is not empty"
    done = [name for name in _MUST_FAIL if tried.get(name) != "refused"]
    return f"its isolation does not hold: {', '.join(done)}" if done else None


def _end_unwanted(future: Future[subprocess.Popen[bytes]]) -> None:
    """End a process that nobody waits for any more."""
    if not future.cancelled() and future.exception() is None:
        future.result().kill()
