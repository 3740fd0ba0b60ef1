"""Owns the worker threads: a pool of its own, one wasmtime engine each, started as needed.

A worker that is free and was used last gets the next job: its engine and images are warm. A job
may prefer the worker on which its guest lives; when that one is busy and another is free, the job
goes there. A full pool queues; a full queue refuses.

Above: the executor. Below: `engine`, `image`. Refuses to know: steps, event loops.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import GuestImage
from toolcell.execution.quickjs.engine import Engine, EngineLoadError, Instance
from toolcell.execution.quickjs.image import EngineCode, Image, make_image

_THREAD_STACK = 8 << 20


class Job(Protocol):
    """Work for a worker thread."""

    preferred: Worker | None
    urgent: bool

    def run(self, worker: Worker) -> Callable[[], None]:
        """Do it on this worker; never raises. Calling what it returns delivers the result."""
        ...

    def refuse(self, error: RuntimeUnavailableError) -> None:
        """It will not be done."""
        ...


@contextmanager
def _no_start_without_guest() -> Iterator[None]:
    try:
        yield
    except EngineLoadError as error:
        msg = f"executor 'quickjs' cannot start a program: {error}"
        raise RuntimeUnavailableError(msg) from error


class Library:
    """Engine code and images, shared by all workers and made once each."""

    def __init__(self, load: Callable[[], EngineCode], kept_images: int) -> None:
        self._load = load
        self._kept = kept_images
        self._code: EngineCode | None = None
        self._images: OrderedDict[str, Image] = OrderedDict()
        self._lock = threading.Lock()
        self.modules_compiled = 0
        self.images_built = 0

    def code(self) -> EngineCode:
        """Return the engine's code; the first call loads it while others wait.

        Raises:
            RuntimeUnavailableError: it cannot be loaded. The next call tries again.
        """
        with self._lock:
            if self._code is None:
                self._code = self._load()
                self.modules_compiled += 1
            return self._code

    def image(self, source: GuestImage, worker: Worker) -> Image:
        """Return the image of a catalog, the most recent ones kept.

        Raises:
            RuntimeUnavailableError: its prelude does not evaluate, or no guest can be made.
        """
        code = self.code()
        engine = worker.engine()
        with self._lock:
            image = self._images.get(source.key)
            if image is None:
                with _no_start_without_guest():
                    image = make_image(engine, code, source)
                self.images_built += 1
                self._images[source.key] = image
                while len(self._images) > self._kept:
                    self._images.popitem(last=False)
            else:
                self._images.move_to_end(source.key)
            return image


class Worker:
    """One thread with its engine."""

    def __init__(self, pool: Pool, library: Library, number: int) -> None:
        self._pool = pool
        self._library = library
        self._engine: Engine | None = None
        self._data: WeakKeyDictionary[Image, Any] = WeakKeyDictionary()
        self.inbox: SimpleQueue[Job | None] = SimpleQueue()
        self.backlog: deque[Job] = deque()
        self._thread = threading.Thread(
            target=self._loop, name=f"toolcell-quickjs-{number}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def engine(self) -> Engine:
        """Return this worker's own engine.

        Raises:
            RuntimeUnavailableError: it cannot be loaded.
        """
        if self._engine is None:
            try:
                self._engine = Engine(self._library.code().code)
            except EngineLoadError as error:
                msg = (
                    f"executor 'quickjs' is not available: its compiled engine cannot be loaded: "
                    f"{error}"
                )
                raise RuntimeUnavailableError(msg) from error
        return self._engine

    def instantiate(self, image: Image, memory_cap: int, size: int = 0) -> Instance:
        """Make a fresh guest of an image on this worker's engine, grown to `size` bytes.

        Raises:
            RuntimeUnavailableError: it cannot be made.
        """
        engine = self.engine()
        with _no_start_without_guest():
            data = self._data.get(image)
            if data is None:
                data = self._data[image] = engine.load_data(image.compiled)
            return engine.instantiate(data, memory_cap, size)

    def _loop(self) -> None:
        job = self.inbox.get()
        while job is not None:
            deliver = job.run(self)
            # Be free before the result arrives, or the next job would start another thread.
            job = self._pool.take(self)
            deliver()
            job = job or self.inbox.get()
        self._data.clear()
        self._engine = None


class Pool:
    """The threads and the queue before them."""

    def __init__(self, library: Library, size: int, queue_limit: int) -> None:
        self._library = library
        self._size = size
        self._queue_limit = queue_limit
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, job: Job) -> bool:
        """Hand a job to a worker, or queue it; an urgent one is never refused for the queue.

        Returns:
            Whether it waits for its preferred worker, which is busy. Call `rescue` when that takes
            too long: moving a guest costs more than a short wait.

        Raises:
            RuntimeUnavailableError: the queue is full or the pool is closed.
        """
        with self._lock:
            if self._closed:
                msg = "executor 'quickjs' is closed"
                raise RuntimeUnavailableError(msg)
            preferred = job.preferred
            if preferred is not None and preferred not in self._idle:
                preferred.backlog.append(job)
                return True
            self._place(job)
            return False

    def rescue(self, job: Job) -> None:
        """Give a job that still waits for its preferred worker to any other."""
        with self._lock:
            if job.preferred is not None and job in job.preferred.backlog:
                job.preferred.backlog.remove(job)
                self._place(job)

    def discard(self, job: Job) -> bool:
        """Take a queued job back; false when it runs or ran."""
        with self._lock:
            queues = [self._waiting]
            if job.preferred is not None:
                queues.append(job.preferred.backlog)
            for queue in queues:
                if job in queue:
                    queue.remove(job)
                    return True
            return False

    def take(self, worker: Worker) -> Job | None:
        """Return the next job for a worker that has finished one, or let it rest."""
        with self._lock:
            if worker.backlog:
                return worker.backlog.popleft()
            if self._waiting:
                return self._waiting.popleft()
            if not self._closed:
                self._idle.append(worker)
            return None

    def counts(self) -> tuple[int, int]:
        """Return how many workers there are and how many jobs wait."""
        with self._lock:
            waiting = sum(len(worker.backlog) for worker in self._workers)
            return len(self._workers), len(self._waiting) + waiting

    def close(self) -> list[Job]:
        """Take no more jobs and let every worker end after its present one.

        Returns:
            The jobs that will not be done.
        """
        with self._lock:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            for worker in self._workers:
                left.extend(worker.backlog)
                worker.backlog.clear()
                worker.inbox.put(None)
            self._idle.clear()
            return left

    def join(self) -> None:
        """Wait for all threads to end. Blocks."""
        for worker in self._workers:
            worker.join()

    def _place(self, job: Job) -> None:
        worker = self._free_worker(job.preferred)
        if worker is not None:
            worker.inbox.put(job)
            return
        if not job.urgent and len(self._waiting) >= self._queue_limit:
            msg = (
                f"executor 'quickjs' is overloaded: {self._size} programs run and "
                f"{self._queue_limit} wait; try again later"
            )
            raise RuntimeUnavailableError(msg)
        self._waiting.append(job)

    def _free_worker(self, preferred: Worker | None) -> Worker | None:
        if preferred in self._idle:
            self._idle.remove(preferred)
            return preferred
        if self._idle:
            return self._idle.pop()
        if len(self._workers) < self._size:
            worker = Worker(self, self._library, len(self._workers) + 1)
            self._workers.append(worker)
            # Guests run on the thread's own stack, and some systems give threads very little.
            before = threading.stack_size(_THREAD_STACK)
            try:
                worker.start()
            finally:
                threading.stack_size(before)
            return worker
        return None
