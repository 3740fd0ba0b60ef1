"""Owns the end of a process and of everything it started.

Above: `sources.core.shell_session`. Below: `os`, `signal`, `/proc`. Refuses to know: tools.

A shell runs in a session of its own, so its process group is its own as well: one signal reaches
all who stayed in the group. Who left it (`setsid`, daemons) is found on Linux by a variable in its
environment, which every descendant inherits.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

import anyio

from toolcell.sources.core.child import Child
from toolcell.tools.threads import run_sync

MARK: Final = "TOOLCELL_SHELL_SESSION"
GRACE_SECONDS: Final = 2.0
"""Between SIGTERM and SIGKILL: enough to remove a lock file, short enough to wait for."""

_SWEEPS: Final = 5


async def end_tree(child: Child, session_id: str) -> None:
    """End a running process, its group and those who left the group: SIGTERM, then SIGKILL."""
    if signal_group(child.pid, signal.SIGTERM):
        with anyio.move_on_after(GRACE_SECONDS):
            await child.wait()
    signal_group(child.pid, signal.SIGKILL)
    await child.wait()
    if sys.platform == "linux":
        await run_sync(lambda: _sweep(session_id))


def signal_group(group: int, number: signal.Signals) -> bool:
    """Send a signal to a process group; return whether there was one."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _sweep(session_id: str) -> None:
    """Kill every process that carries the mark, until none is left."""
    for _ in range(_SWEEPS):
        found = marked(session_id)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def marked(session_id: str) -> list[int]:
    """Return the living processes that carry the mark of a session (Linux)."""
    wanted = f"{MARK}={session_id}".encode()
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            environment = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            found.append(int(entry.name))
    return found
