"""Owns where sync code of tools runs: a pool of its own, off the event loop, bounded in number.

Above: `tools.decorator`, core tools. Below: `anyio`. Refuses to know: what the code does.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

import anyio
from anyio.lowlevel import RunVar

T = TypeVar("T")

MAX_THREADS: Final = 32
"""Sync calls that run at one time; more wait their turn. Enough to hide I/O, few enough to keep
the interpreter lock free for the event loop."""


async def run_sync(function: Callable[[], T]) -> T:
    """Run `function()` in a thread of the tools' pool and return what it gives.

    The threads are daemons, so that one that hangs does not keep the process alive. A cancelled
    call returns at once; a thread cannot be stopped, so the function runs on, its result is
    dropped and its slot stays taken until it ends.

    Raises:
        RuntimeError: the function raised StopIteration, KeyboardInterrupt or GeneratorExit, which
            may not cross a coroutine.
    """
    pool = _pool()
    job: _Job[T] = _Job(function, pool)
    await pool.slots.acquire_on_behalf_of(job)
    pool.submit(job)
    await job.done.wait()
    return job.result()


def running_threads() -> int:
    """Return how many calls hold a slot in this event loop; for tests and `doctor`."""
    return _pool().slots.borrowed_tokens


_Work: TypeAlias = "queue.SimpleQueue[_Job[Any] | None]"


class _Pool:
    """The threads of one event loop. All its methods run on that loop."""

    def __init__(self) -> None:
        self.slots = anyio.CapacityLimiter(MAX_THREADS)
        self._work: _Work = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0

    def submit(self, job: _Job[Any]) -> None:
        if self._idle:
            self._idle -= 1
        else:
            self._threads += 1
            name = f"toolcell-tool-{self._threads}"
            threading.Thread(target=_serve, args=(self._work,), name=name, daemon=True).start()
        self._work.put(job)

    def settle(self, job: _Job[Any]) -> None:
        self._idle += 1
        self.slots.release_on_behalf_of(job)
        job.done.set()

    def __del__(self) -> None:
        """Let the threads go when the event loop is gone."""
        for _ in range(self._threads):
            self._work.put(None)


_current: RunVar[_Pool] = RunVar("toolcell_tool_threads")


def _pool() -> _Pool:
    """Return the pool of this event loop."""
    try:
        return _current.get()
    except LookupError:
        pool = _Pool()
        _current.set(pool)
        return pool


def _serve(work: _Work) -> None:
    """Run jobs until told to stop. Keeps no reference to the pool, so that it can be collected."""
    while True:
        job = work.get()
        if job is None:
            return
        job.run()
        del job


class _Job(Generic[T]):
    """One call and where its result goes."""

    def __init__(self, function: Callable[[], T], pool: _Pool) -> None:
        self._function = function
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._value: Any = None
        self._error: BaseException | None = None
        self.done = anyio.Event()

    def run(self) -> None:
        """Call the function; in the thread."""
        self._context.run(_leave_event_loop)
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:  # noqa: BLE001 - carried over to the task that waits
            self._error = error
        try:
            self._loop.call_soon_threadsafe(self._pool.settle, self)
        except RuntimeError:
            # The event loop is closed: nobody waits any more.
            return

    def result(self) -> T:
        error, self._error = self._error, None
        if isinstance(error, StopIteration | KeyboardInterrupt | GeneratorExit):
            # TRY004: not a wrong type. asyncio forbids the first; the others mean something else to
            # a task, and no signal reaches a thread, so the function made them itself.
            msg = f"the function raised {type(error).__name__}"
            raise RuntimeError(msg) from error  # noqa: TRY004
        if error is not None:
            raise error
        return cast("T", self._value)


def _leave_event_loop() -> None:
    """Undo what the copied context says about a running event loop: this thread has none.

    Without it a tool that calls `anyio.run` is told that a loop is running already.
    """
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)
