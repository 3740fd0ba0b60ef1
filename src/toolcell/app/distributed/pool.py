"""Owns the workers of one runtime: their start, who of them takes the next child, their deaths.

Nothing is started before the first child. A worker that died is replaced; its children are not the
pool's concern. Children wait for a free place in the order they came.

Above: the runner. Below: `engine`, `swarm.schedule`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio

from toolcell.app.distributed.engine import Link, check_installed, join, leave
from toolcell.app.distributed.messages import Lost, Packed, Report
from toolcell.base.spawner import Spawner
from toolcell.config.tools_tree import RaySettings
from toolcell.errors import ToolcellError
from toolcell.swarm.schedule import Schedule

START_SECONDS: Final = 60.0
CLOSING_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 5.0
"""Between attempts to replace a worker, after one failed."""
_ALL: Final = 1 << 30


@dataclass(slots=True, eq=False, kw_only=True)
class Worker:
    """One of the workers.

    Attributes:
        number: From 1; it stays when the process is replaced.
        link: To its process.
        report: What the process said at its start.
        ready: Whether it takes children.
        running: Children it has.
    """

    number: int
    link: Link
    report: Report
    ready: bool = True
    running: int = 0

    @property
    def name(self) -> str:
        """What people call it."""
        return f"Ray worker {self.number} (pid {self.report.pid} on {self.report.host})"


@dataclass(slots=True, eq=False)
class _Start:
    """One attempt to start everything, shared by all children that wait for it."""

    over: anyio.Event = field(default_factory=anyio.Event)
    problem: str | None = None


class Pool:
    """The workers.

    Args:
        settings: How many, where, and how much each takes.
        cargo: Makes what a worker is built from.
        spawner: Runs what outlasts a child.
        told: Is told of a worker that is ready.
        on_progress: Is told of work that takes seconds.
    """

    def __init__(
        self,
        settings: RaySettings,
        cargo: Callable[[], bytes],
        *,
        spawner: Spawner,
        told: Callable[[Worker], None],
        on_progress: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._pack = cargo
        self._packed: bytes | None = None
        self._spawner = spawner
        self._told = told
        self._on_progress = on_progress
        self._start: _Start | None = None
        self._joined = False
        self._problem = "no Ray worker is there"
        self._places = Schedule(0)
        self.workers: list[Worker] = []

    async def prepare(self) -> None:
        """Check that Ray is there and that everything can travel.

        Raises:
            ConfigError: it is not, or it cannot.
        """
        check_installed()
        if self._packed is None:
            self._packed = await anyio.to_thread.run_sync(self._pack)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Worker]:
        """Wait for a place on a worker, and hold it.

        Raises:
            ToolcellError: there is no worker, and there will not be one soon.
        """
        await self._started()
        turn = anyio.Event()
        place = self._places.reserve(turn.set)
        try:
            self._places.ready(place)
            await turn.wait()
            ready = [worker for worker in self.workers if worker.ready]
            if not ready:
                raise ToolcellError(self._problem)
            worker = min(ready, key=lambda each: each.running)
            worker.running += 1
            try:
                yield worker
            finally:
                worker.running -= 1
        finally:
            self._places.leave(place)

    def lost(self, worker: Worker) -> None:
        """Replace a worker that is gone. Safe to call again."""
        if not worker.ready:
            return
        worker.ready = False
        worker.link.kill()
        self._measure()
        self._spawner.start_soon(self._replaced, worker, name=f"Ray worker {worker.number}")

    async def aclose(self) -> Packed:
        """End every worker, and Ray if it is ours; return the events that nobody had taken."""
        workers, self.workers = self.workers, []
        left: list[bytes] = []

        async def end(worker: Worker) -> None:
            with anyio.move_on_after(CLOSING_SECONDS):
                answer = await worker.link.close()
                left.extend(() if isinstance(answer, Lost) else answer)
            worker.link.kill()

        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for worker in workers:
                    if worker.ready:
                        group.start_soon(end, worker)
            if self._joined:
                self._joined = False
                await leave()
        return tuple(left)

    async def _started(self) -> None:
        start = self._start
        if start is None:
            start = self._start = _Start()
            self._spawner.start_soon(self._run_start, start, name="Ray")
        await start.over.wait()
        if start.problem is not None:
            raise ToolcellError(start.problem)

    async def _run_start(self, start: _Start) -> None:
        start.problem = "Ray was not started: the runtime was closed"
        try:
            await self._begin()
            start.problem = None
        except ToolcellError as error:
            start.problem = error.message
        finally:
            if start.problem is not None:
                self._start = None  # the next child tries again
            start.over.set()

    async def _begin(self) -> None:
        await self.prepare()
        self._on_progress("Starting Ray workers")
        if not self._joined:
            with anyio.CancelScope(shield=True):  # a thread cannot be stopped: what it does counts
                await join(self._settings.address, self._settings.workers)
                self._joined = True
        numbers = range(1, self._settings.workers + 1)
        made: dict[int, Worker | str] = {}

        async def one(number: int) -> None:
            made[number] = await self._new(number)

        async with anyio.create_task_group() as group:
            for number in numbers:
                group.start_soon(one, number)
        problem = next((each for each in made.values() if isinstance(each, str)), None)
        workers = [each for _, each in sorted(made.items()) if isinstance(each, Worker)]
        if problem is not None:
            for worker in workers:
                worker.link.kill()
            raise ToolcellError(problem)
        self.workers = workers
        self._measure()

    async def _new(self, number: int) -> Worker | str:
        """Return a worker that is ready, or why there is none."""
        link = Link(self._packed or b"", concurrency=self._settings.concurrency)
        report: Report | Lost = Lost(f"it did not answer in {START_SECONDS:.0f} s")
        try:
            with anyio.move_on_after(START_SECONDS):
                report = await link.start()
        except ToolcellError as error:
            report = Lost(error.message)
        except anyio.get_cancelled_exc_class():
            link.kill()
            raise
        why = report.why if isinstance(report, Lost) else report.problem
        if isinstance(report, Lost) or why is not None:
            link.kill()
            return f"Ray worker {number} cannot be started: {why}"
        worker = Worker(number=number, link=link, report=report)
        self._told(worker)
        return worker

    async def _replaced(self, worker: Worker) -> None:
        while True:
            made = await self._new(worker.number)
            if isinstance(made, Worker):
                self.workers[self.workers.index(worker)] = made
                self._measure()
                return
            self._problem = made
            self._measure(failed=True)
            await anyio.sleep(PAUSE_SECONDS)

    def _measure(self, *, failed: bool = False) -> None:
        """Let as many children run as there are places; without any and without hope, all fail."""
        ready = sum(worker.ready for worker in self.workers)
        self._places.set_limit(_ALL if failed and not ready else ready * self._settings.concurrency)
