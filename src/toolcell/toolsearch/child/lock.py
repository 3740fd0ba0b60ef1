"""Owns the network lock: a thread without the network for good, which what it starts inherits.

Node's permission mode before version 25 lets programs connect. On Linux a seccomp filter holds for
the one thread that installs it and for every process that thread starts, without any privilege: so
one thread installs it and then starts the children. Nothing else in this process is affected.

Above: `process`. Below: `ctypes`, `landlock`. Refuses to know: what is started.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final

from toolcell.toolsearch.child.landlock import restrict_this_thread

if sys.platform != "win32":
    import resource

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_FILTER_MODE: Final = 2

# Classic BPF, as <linux/bpf_common.h> and <linux/seccomp.h> name it.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL_PROCESS, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000
_AT_NUMBER, _AT_ARCHITECTURE = 0, 4
_X32_BIT: Final = 0x40000000
_NO_NUMBER: Final = 0xFFFFFFFF

# What opens or speaks through a socket; io_uring, which can open one by itself; and what reaches
# into other processes or signals them. Numbers of <asm/unistd.h>.
_ANYWHERE: Final = (425, 434, 438, 424)  # io_uring_setup, pidfd_open, _getfd, _send_signal
_ARCHITECTURES: Final[dict[str, tuple[int, tuple[int, ...]]]] = {
    # socket, connect, accept, bind, listen, socketpair, accept4; kill, ptrace, process_vm_*;
    # unshare, setns, bpf, perf_event_open, userfaultfd
    "x86_64": (
        0xC000003E,
        (41, 42, 43, 49, 50, 53, 288, 62, 101, 310, 311, 272, 308, 321, 298, 323),
    ),
    "aarch64": (
        0xC00000B7,
        (198, 203, 202, 200, 201, 199, 242, 129, 117, 270, 271, 97, 268, 280, 241, 282),
    ),
}

_LIMITS: Final[dict[str, int]] = {
    "RLIMIT_DATA": 1 << 30,
    "RLIMIT_CPU": 90,
    "RLIMIT_FSIZE": 0,
    "RLIMIT_CORE": 0,
    "RLIMIT_NOFILE": 64,
}
"""Bytes of memory, seconds of CPU (more than any `codeTimeoutMs`), no file, few descriptors."""


class LockUnavailableError(Exception):
    """This system cannot lock the network away; the text says why."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


_Job = tuple[Callable[[], Any], "Future[Any]"]


class LockedThread:
    """Starts processes that have no network. One thread, made when first used.

    `close` ends the thread; processes it started live on, as locked as before.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, argv: Sequence[str]) -> Future[subprocess.Popen[bytes]]:
        """Start a process with an empty environment and pipes for all three streams.

        The future fails with LockUnavailableError where the thread cannot be locked, or OSError.
        """

        def job() -> subprocess.Popen[bytes]:
            process = subprocess.Popen(  # noqa: S603 - the argv is ours
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
            _limit(process.pid)
            return process

        future: Future[subprocess.Popen[bytes]] = Future()
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="toolcell-locked", daemon=True
                )
                self._thread.start()
            self._jobs.put((job, future))
        return future

    def close(self) -> None:
        """End the thread. Safe to call again."""
        with self._guard:
            if self._thread is not None:
                self._jobs.put(None)
                self._thread = None

    def _serve(self) -> None:
        try:
            _lock_this_thread()
            trouble = None
        except LockUnavailableError as error:
            trouble = error
        while (item := self._jobs.get()) is not None:
            job, future = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if trouble is not None:
                    raise trouble
                future.set_result(job())
            except (OSError, LockUnavailableError) as error:
                future.set_exception(error)


def _limit(pid: int) -> None:
    """Bound what a child may take; the CPU limit ends one whose parent died without a word."""
    if sys.platform != "linux":
        return
    for name, wanted in _LIMITS.items():
        limit = getattr(resource, name)
        with contextlib.suppress(ProcessLookupError):  # it ended already; who reads it will see
            _, hard = resource.prlimit(pid, limit)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, limit, (most, most))


def _lock_this_thread() -> None:
    """Give up the network in this thread and in all that it starts; there is no way back.

    Raises:
        LockUnavailableError: the system has no such lock, or refuses it.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _ARCHITECTURES:
        msg = f"there is no network lock for {sys.platform} on {machine or 'this machine'}"
        raise LockUnavailableError(msg)
    code = _filter(*_ARCHITECTURES[machine])
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        msg = f"the kernel refuses no_new_privs (errno {ctypes.get_errno()})"
        raise LockUnavailableError(msg)
    restrict_this_thread(libc)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0) != 0:
        msg = f"the kernel refuses a seccomp filter (errno {ctypes.get_errno()})"
        raise LockUnavailableError(msg)


def _filter(architecture: int, numbers: Sequence[int]) -> bytes:
    """Return the BPF program: another ABI dies, a listed call gets EPERM, the rest passes."""
    refuse = (_RETURN, 0, 0, _REFUSE)
    steps = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _AT_NUMBER),
        # The x32 ABI has numbers of its own for the same calls; -1 is a tracer's "skipped".
        (_IF_EQUAL, 2, 0, _NO_NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        refuse,
    ]
    for number in (*numbers, *_ANYWHERE):
        steps += [(_IF_EQUAL, 0, 1, number), refuse]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
