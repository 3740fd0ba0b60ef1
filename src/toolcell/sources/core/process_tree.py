"""Owns the end of a process and of everything it started.

Above: `sources.core.shell_session`. Below: `process_guard`. Refuses to know: tools.

A shell runs in a session of its own, so its process group is its own as well: one signal reaches
all who stayed in the group. Who left it (`setsid`, daemons) is found on Linux by a variable in its
environment, which every descendant inherits.
"""

from __future__ import annotations

import signal
import sys

import anyio

from toolcell.sources.core.child import Child
from toolcell.sources.core.process_guard import GRACE_SECONDS, signal_group, sweep
from toolcell.tools.threads import run_sync


async def end_tree(child: Child, session_id: str) -> None:
    """End a running process, its group and those who left the group: SIGTERM, then SIGKILL."""
    if signal_group(child.pid, signal.SIGTERM):
        with anyio.move_on_after(GRACE_SECONDS):
            await child.wait()
    signal_group(child.pid, signal.SIGKILL)
    await child.wait()
    if sys.platform == "linux":
        await run_sync(lambda: sweep((session_id,)))
