"""Owns the QuickJS executor: the execution contract's async face over the worker threads.

Above: code mode, through `execution.contract`. Below: `workers`, `cell`, `image`.
Refuses to know: what a request means. Must be used from one event loop at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio

from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import (
    Faulted,
    Finished,
    GuestError,
    GuestImage,
    Limits,
    Program,
    Settled,
    Step,
    Suspended,
)
from toolcell.execution.frames import Handed, start_message
from toolcell.execution.quickjs.cell import Cell, CellCancelledError
from toolcell.execution.quickjs.image import ENGINE_WASM, identify_engine, load_engine_code
from toolcell.execution.quickjs.jobs import LoopJob
from toolcell.execution.quickjs.modulecache import ModuleCache
from toolcell.execution.quickjs.snapshot import SnapshotError, SnapshotTooLargeError
from toolcell.execution.quickjs.watchdog import Watchdog
from toolcell.execution.quickjs.workers import Library, Pool, Worker

T = TypeVar("T")

# How long a resume waits for the busy worker that holds its guest before the guest is moved.
PATIENCE_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickJSOptions:
    """How an executor is set up; none of it is a limit of a program.

    Attributes:
        threads: Most programs that run at once. Each has a thread and an engine of its own.
        queue_limit: Most programs that may wait for a thread before `start` refuses.
        queue_seconds: Longest a program waits for a thread before `start` gives up.
        images: Catalogs whose images are kept ready.
        wasm: The engine's file, when not the one that came with the package.
        cache: The directory of compiled engines, when not the user's cache directory.
    """

    threads: int = 16
    queue_limit: int = 1024
    queue_seconds: float = 30.0
    images: int = 32
    wasm: Path | None = None
    cache: Path | None = None


class QuickJSExecutor:
    """Runs programs in QuickJS-NG, compiled to WebAssembly, with no ambient authority.

    `on_progress` is told, on the loop's thread, of work that takes seconds: the first compile of
    the engine on a machine.
    """

    def __init__(
        self,
        options: QuickJSOptions | None = None,
        *,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        options = options or QuickJSOptions()
        self._queue_seconds = options.queue_seconds
        self._on_progress = on_progress
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wasm = path = options.wasm or ENGINE_WASM
        modules = ModuleCache(options.cache)
        self._library = Library(
            lambda: load_engine_code(path, modules, self._progress), options.images
        )
        self._pool = Pool(self._library, options.threads, options.queue_limit)
        self._dog = Watchdog()
        self._cells: set[Cell] = set()
        self._stops: set[Callable[[], None]] = set()
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def name(self) -> str:
        """`quickjs`."""
        return "quickjs"

    async def identify(self) -> str:
        """Return the engine's version and build, its origin and the WebAssembly runtime.

        Raises:
            RuntimeUnavailableError: the engine's file cannot be read.
        """
        return await anyio.to_thread.run_sync(identify_engine, self._wasm)

    async def prepare(self, image: GuestImage) -> None:
        """Load the engine and make the image ready, so that the first cell need not.

        Raises:
            RuntimeUnavailableError: the engine cannot be loaded, or the prelude is broken.
        """

        def work(worker: Worker) -> None:
            self._library.image(image, worker)

        await self._do(work)

    async def start(self, program: Program, limits: Limits, seconds: float) -> Step:
        """Run a new program; see `execution.contract.Executor.start`.

        Raises:
            RuntimeUnavailableError: the engine cannot be loaded, or there is no room.
        """
        cell: Cell | None = None
        cancelled = threading.Event()
        message = start_message(program.source, program.filename, program.start)

        def work(worker: Worker) -> tuple[Cell, Worker, Handed | Faulted]:
            nonlocal cell
            image = self._library.image(program.image, worker)
            fresh = cell = Cell(image, limits, program.filename)
            if cancelled.is_set():
                raise CellCancelledError
            with fresh:
                fresh.begin(worker)
                self._count("programs_started")
                return fresh, worker, fresh.start(message, seconds, self._dog)

        def stop() -> None:
            cancelled.set()
            if cell is not None:
                cell.cancel()

        job = LoopJob(work, preferred=None, urgent=False)
        job.on_abandoned(lambda: cell.close() if cell is not None else None)
        fresh, worker, handed = await self._await(job, stop, bounded=True)
        self._cells.add(fresh)
        return self._step(fresh, handed, _Continuation(self, fresh, worker))

    async def aclose(self) -> None:
        """Stop everything and free it; waits until the threads have ended."""
        for job in self._pool.close():
            job.refuse(RuntimeUnavailableError("executor 'quickjs' is closed"))
        for stop in list(self._stops):
            stop()
        await anyio.to_thread.run_sync(self._join)
        for cell in self._cells:
            cell.close()
        self._cells.clear()

    def statistics(self) -> Mapping[str, int]:
        """Return counts; those ending in a past participle only grow."""
        workers, queued = self._pool.counts()
        live = sum(cell.alive for cell in self._cells)
        return {
            "modules_compiled": self._library.modules_compiled,
            "images_built": self._library.images_built,
            "programs_started": self._counts["programs_started"],
            "live": live,
            "parked": len(self._cells) - live,
            "snapshots_parked": self._counts["parked"],
            "restored": self._counts["restored"],
            "migrated": self._counts["migrated"],
            "hard_kills": self._dog.kills,
            "workers": workers,
            "queued": queued,
        }

    # The rest serves continuations.

    async def resume(
        self, continuation: _Continuation, settled: Sequence[Settled], seconds: float
    ) -> Step:
        """Run a step of a suspended program."""
        cell = continuation.cell
        if cell.closed:
            return _gone()

        def work(worker: Worker) -> tuple[Worker, Handed | Faulted]:
            with cell:
                if not cell.alive:
                    cell.restore(worker)
                    self._count("restored")
                elif worker is not continuation.worker:
                    cell.move(worker, self._dog)
                    self._count("migrated")
                return worker, cell.settle(settled, seconds, self._dog)

        preferred = continuation.worker if cell.alive else None
        job = LoopJob(work, preferred=preferred, urgent=True)
        job.on_abandoned(cell.close)
        try:
            worker, handed = await self._await(job, cell.cancel)
        except (SnapshotError, RuntimeUnavailableError) as error:
            self.forget(cell)
            return Faulted(kind="restore", error=GuestError(name="", message=str(error)))
        except BaseException:
            self._cells.discard(cell)
            raise
        continuation.worker = worker
        return self._step(cell, handed, continuation)

    async def park(self, continuation: _Continuation) -> int | Faulted:
        """Replace a suspended program's live guest by its compressed state."""
        cell = continuation.cell
        was_alive = cell.alive
        if cell.closed:
            return _gone()

        def work(_: Worker) -> int:
            with cell:
                return cell.park(self._dog)

        try:
            size = await self._do(work, urgent=True)
        except SnapshotTooLargeError as error:
            self.forget(cell)
            limit = cell.limits.snapshot_bytes
            message = f"the suspended state takes {error.size} bytes, more than {limit}"
            return Faulted(kind="snapshot_limit", error=GuestError(name="", message=message))
        if was_alive:
            self._count("parked")
        return size

    def forget(self, cell: Cell) -> None:
        """Free a program that will not be resumed."""
        self._cells.discard(cell)
        cell.close()

    def _step(self, cell: Cell, handed: Handed | Faulted, continuation: _Continuation) -> Step:
        if isinstance(handed, Faulted):
            self._cells.discard(cell)
            return handed
        output = tuple(handed.output)
        if handed.value is not None:
            self._cells.discard(cell)
            return Finished(value=handed.value, output=output)
        return Suspended(
            requests=tuple(handed.requests),
            continuation=continuation,
            withdrawn=tuple(handed.withdrawn),
            output=output,
        )

    def _count(self, what: str) -> None:
        with self._counting:
            self._counts[what] += 1

    async def _do(self, work: Callable[[Worker], T], *, urgent: bool = False) -> T:
        return await self._await(LoopJob(work, preferred=None, urgent=urgent), _nothing)

    async def _await(
        self, job: LoopJob[T], stop: Callable[[], None], *, bounded: bool = False
    ) -> T:
        loop = self._loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        if self._pool.submit(job):
            timers.append(loop.call_later(PATIENCE_SECONDS, self._pool.rescue, job))
        if bounded:
            timers.append(loop.call_later(self._queue_seconds, self._give_up, job))
        self._stops.add(stop)
        try:
            return await job.future
        except asyncio.CancelledError:
            stop()
            # Not begun, or done in the very moment of the cancellation: nobody else will drop it.
            if self._pool.discard(job) or not job.future.cancelled():
                job.abandon()
            raise
        except CellCancelledError:
            msg = "executor 'quickjs' is closed"
            raise RuntimeUnavailableError(msg) from None
        finally:
            self._stops.discard(stop)
            for timer in timers:
                timer.cancel()

    def _give_up(self, job: LoopJob[Any]) -> None:
        if self._pool.discard(job):
            job.refuse(
                RuntimeUnavailableError(
                    f"executor 'quickjs' is overloaded: no thread was free for "
                    f"{self._queue_seconds:g} s; try again later"
                )
            )

    def _progress(self, text: str) -> None:
        if self._on_progress is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._on_progress, text)

    def _join(self) -> None:
        self._pool.join()
        self._dog.close()


class _Continuation:
    """A program of this executor that waits."""

    def __init__(self, executor: QuickJSExecutor, cell: Cell, worker: Worker) -> None:
        self._executor = executor
        self.cell = cell
        self.worker = worker

    async def resume(self, settled: Sequence[Settled], seconds: float) -> Step:
        """See `execution.contract.Continuation.resume`."""
        return await self._executor.resume(self, settled, seconds)

    async def park(self) -> int | Faulted:
        """See `execution.contract.Continuation.park`."""
        return await self._executor.park(self)

    async def dispose(self) -> None:
        """Drop it. Safe to call again."""
        self._executor.forget(self.cell)


def _gone() -> Faulted:
    message = "the program was disposed of or is over"
    return Faulted(kind="restore", error=GuestError(name="", message=message))


def _nothing() -> None:
    """Stop work that cannot be stopped and is soon over."""
