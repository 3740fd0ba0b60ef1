"""Owns finding and ending the processes of shell commands, also for a toolcell that was killed.

Run as a program it is a guard: a process of its own that outlives the one it was started by, and
then ends what that left running. It is told of commands over its standard input, a line each: the
id of a command and the process group, 0 when that is not known yet, `-` when the command is over.
It acts when the input ends, or when its parent does, whoever else may hold the other end. When it
is ready it writes a byte.

Above: `process_tree`, `guarding`. Below: the standard library alone, so that it starts in 20 ms and
needs no package. Refuses to know: toolcell.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MARK: Final = "TOOLCELL_SHELL_SESSION"
"""A variable in the environment of a command, which every descendant inherits."""
GRACE_SECONDS: Final = 2.0
"""Between SIGTERM and SIGKILL: enough to remove a lock file, short enough to wait for."""

READY: Final = b"."

_SWEEPS: Final = 5
_LOOK_SECONDS: Final = 0.05
_READ_BYTES: Final = 65_536


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether there was one."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def sweep(session_ids: Iterable[str]) -> None:
    """Kill every process that carries the mark of one of these commands, until none is left."""
    wanted = tuple(session_ids)
    for _ in range(_SWEEPS):
        found = marked(wanted)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def marked(session_ids: Iterable[str]) -> list[int]:
    """Return the living processes that carry the mark of one of these commands (Linux)."""
    wanted = {f"{MARK}={each}".encode() for each in session_ids}
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            environment = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        if not wanted.isdisjoint(environment.split(b"\0")):
            found.append(int(entry.name))
    return found


def line_of(session_id: str, group: int | None) -> bytes:
    """Return what tells a guard of a command; None for one that is over."""
    return f"{session_id} {'-' if group is None else group}\n".encode()


class _Told:
    """What the guard has been told."""

    def __init__(self) -> None:
        self.groups: dict[str, int] = {}
        self._rest = b""

    def read(self) -> bool:
        """Take what has come; return whether nothing more ever will."""
        while True:
            try:
                data = os.read(0, _READ_BYTES)
            except BlockingIOError:
                return False
            if not data:
                return True
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                session_id, group = line.decode().split()
                if group == "-":
                    self.groups.pop(session_id, None)
                else:
                    self.groups[session_id] = int(group)


def _guard(parent: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.set_blocking(0, False)
    told = _Told()
    watched = [0, *_exit_of(parent)]
    os.write(1, READY)
    os.close(1)
    while os.getppid() == parent:
        ready = select.select(watched, [], [])[0]
        if told.read() or any(ready_fd != 0 for ready_fd in ready):
            break
    told.read()  # what it said last
    _end(told.groups)


def _exit_of(parent: int) -> list[int]:
    """Return a descriptor that becomes readable when the parent ends, where there is one."""
    if sys.platform != "linux":
        return []
    try:
        return [os.pidfd_open(parent)]
    except OSError:
        return []


def _end(commands: dict[str, int]) -> None:
    """End commands as the parent would have done: SIGTERM, a grace, SIGKILL."""
    if not commands:
        return
    # Of one whose group was not told yet, those who carry the mark say it.
    groups = {group for group in commands.values() if group}
    early = [session_id for session_id, group in commands.items() if not group]
    if early and sys.platform == "linux":
        groups |= {group for pid in marked(early) if (group := _group_of(pid))}
    left = [group for group in groups if signal_group(group, signal.SIGTERM)]
    for _ in range(round(GRACE_SECONDS / _LOOK_SECONDS)):
        left = [group for group in left if signal_group(group, 0)]
        if not left:
            break
        time.sleep(_LOOK_SECONDS)
    for group in left:
        signal_group(group, signal.SIGKILL)
    if sys.platform == "linux":
        sweep(commands)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


if __name__ == "__main__":
    _guard(int(sys.argv[1]))
