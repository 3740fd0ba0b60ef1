"""Owns the Node executor: the execution contract's async face over the supervisor process.

Above: code mode, through `execution.contract`. Below: `supervisor`, `binary`, `typescript`.
Refuses to know: what a request means. Must be used from one event loop at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from toolcell.errors import RuntimeUnavailableError
from toolcell.execution.contract import (
    Faulted,
    GuestImage,
    Limits,
    Program,
    Settled,
    Step,
    Suspended,
)
from toolcell.execution.frames import FrameError, Handed, start_message
from toolcell.execution.node.binary import ORIGINS, find_node
from toolcell.execution.node.steps import (
    fault,
    image_text,
    judge,
    settle_message,
    supervisor_died,
)
from toolcell.execution.node.supervisor import Supervisor, SupervisorGoneError, decoded
from toolcell.execution.node.typescript import TransformOutcome, read_outcome

# What a step may take beyond its seconds before the whole supervisor counts as hung.
GRACE_SECONDS = 5.0
# What starting the engine may take beyond the seconds of the cell that waits for it.
START_GRACE_SECONDS = 1.0
# More frames than this are read on a thread: a hundred thousand small ones take 250 ms.
FRAMES_ON_LOOP = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """How an executor is set up; none of it is a limit of a program.

    Attributes:
        binary: The Node executable, when not the one of the wheel or on PATH.
        workers: Most worker threads, one per live program.
        idle: Most warm workers (5 MB each) that are kept for the next programs; but for two they
            go again when they were not needed for a while.
        queue_seconds: Longest a program waits for a worker before `start` gives up.
        start_seconds: Longest the supervisor process may take to start.
        images: Catalogs whose images are kept ready.
        line_bytes: The longest line taken from the supervisor.
    """

    binary: Path | None = None
    workers: int = 128
    idle: int = 8
    queue_seconds: float = 30.0
    start_seconds: float = 10.0
    images: int = 32
    line_bytes: int = 256 << 20


class _Cell:
    """A program on its supervisor."""

    __slots__ = ("filename", "limits", "number", "supervisor")

    def __init__(self, supervisor: Supervisor, number: int, filename: str, limits: Limits) -> None:
        self.supervisor = supervisor
        self.number = number
        self.filename = filename
        self.limits = limits


class NodeExecutor:
    """Runs programs in contexts of `node:vm`, a worker thread each, in one supervisor process.

    Trusted execution: no security boundary (rule 9.2). `on_progress` is told of work that takes
    seconds; there is none here.
    """

    def __init__(
        self,
        options: NodeOptions | None = None,
        *,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        del on_progress
        self._options = options or NodeOptions()
        self._supervisor: Supervisor | None = None
        self._starting = anyio.Lock()
        self._cells: set[_Cell] = set()
        self._counts: Counter[str] = Counter()
        self._last = 0
        self._closed = False

    @property
    def name(self) -> str:
        """`node`."""
        return "node"

    async def identify(self) -> str:
        """Start the supervisor and return its Node's version, and where that was found.

        Raises:
            RuntimeUnavailableError: it cannot be started.
        """
        binary = find_node(self._options.binary)
        version = (await self._ready()).version
        return f"Node {version} ({ORIGINS[binary.origin]}: {binary.path})"

    async def prepare(self, image: GuestImage) -> None:
        """Start the supervisor and warm a worker that carries the image.

        Raises:
            RuntimeUnavailableError: Node cannot be started, or the prelude is broken.
        """
        supervisor = await self._ready()
        told = await self._ask(supervisor, "prepare", (self._image(supervisor, image),))
        if told.get("error"):
            raise RuntimeUnavailableError(_broken_image(told["error"]))

    async def start(self, program: Program, limits: Limits, seconds: float) -> Step:
        """Run a new program; see `execution.contract.Executor.start`.

        Raises:
            RuntimeUnavailableError: Node cannot be started, or there is no room.
        """
        supervisor = None
        with anyio.move_on_after(seconds + START_GRACE_SECONDS):
            supervisor = await self._ready()
        if supervisor is None:
            return fault("timeout", "the engine did not start in the time of the program")
        image = self._image(supervisor, program.image)
        cell = _Cell(supervisor, self._next(), program.filename, limits)
        numbers = (image, _milliseconds(seconds), limits.memory_bytes, limits.frame_bytes)
        message = start_message(program.source, program.filename, program.start)
        self._counts["programs_started"] += 1
        patience = seconds + self._options.queue_seconds
        return await self._step(cell, "start", numbers, message, patience)

    async def aclose(self) -> None:
        """End the supervisor and wait for it."""
        self._closed = True
        supervisor, self._supervisor = self._supervisor, None
        self._cells.clear()
        if supervisor is None:
            return
        if supervisor.loop is asyncio.get_running_loop():
            await supervisor.aclose()
        else:
            supervisor.kill()

    def statistics(self) -> Mapping[str, int]:
        """Return counts; those ending in a past participle only grow."""
        counts = self._supervisor.counts if self._supervisor is not None else {}
        return {
            "supervisors_started": self._counts["supervisors_started"],
            "programs_started": self._counts["programs_started"],
            "workers_started": self._counts["workers_started"] + counts.get("started", 0),
            "live": sum(cell.supervisor.alive for cell in self._cells),
            "parked": 0,
            "workers": counts.get("workers", 0),
            "idle": counts.get("idle", 0),
            "queued": counts.get("queued", 0),
        }

    async def strip_types(self, source: str, filename: str) -> TransformOutcome:
        """Turn the TypeScript body of an async function into JavaScript (rule 9.5).

        Raises:
            RuntimeUnavailableError: Node cannot be started, or its transformer does not work.
        """
        supervisor = await self._ready()
        told = await self._ask(supervisor, "strip", (0,), json.dumps({"source": source}))
        return read_outcome(told, filename)

    async def probe_typescript(self) -> None:
        """Show that the transformer works.

        Raises:
            RuntimeUnavailableError: it does not.
        """
        for source, mode in (("let a: number = 1", "strip"), ("enum A { B }", "transform")):
            outcome = await self.strip_types(source, "probe.ts")
            if outcome.mode != mode:
                said = outcome.error.message if outcome.error else "it did not transform"
                msg = f"the TypeScript transformer of Node does not work: {said}"
                raise RuntimeUnavailableError(msg)

    # The rest serves continuations.

    async def resume(self, cell: _Cell, settled: Sequence[Settled], seconds: float) -> Step:
        """Run a step of a suspended program."""
        numbers = (_milliseconds(seconds),)
        return await self._step(cell, "settle", numbers, settle_message(settled), seconds)

    def forget(self, cell: _Cell) -> None:
        """End a program that will not be resumed."""
        if cell in self._cells:
            self._cells.discard(cell)
            cell.supervisor.send("dispose", cell.number)

    async def _step(
        self, cell: _Cell, verb: str, numbers: tuple[int, ...], message: str, patience: float
    ) -> Step:
        supervisor = cell.supervisor
        others = any(one.supervisor is supervisor for one in self._cells - {cell})
        # One that ended before was ended by another cell, whatever its last words were.
        alone = supervisor.alive and not others
        self._cells.add(cell)
        answer = supervisor.expect(cell.number)
        supervisor.send(verb, cell.number, numbers, message)
        hung = supervisor.loop.call_later(patience + GRACE_SECONDS, supervisor.kill)
        try:
            told = await decoded(await answer)
        except SupervisorGoneError as gone:
            self._cells.discard(cell)
            return supervisor_died(str(gone), cell.limits, alone=alone)
        except FrameError as error:
            supervisor.kill()
            self._cells.discard(cell)
            return fault("crash", str(error))
        except BaseException:
            self.forget(cell)
            raise
        finally:
            hung.cancel()
            supervisor.unexpect(cell.number)
        supervisor.note(told)
        try:
            return await self._judged(cell, told)
        except anyio.get_cancelled_exc_class():
            self.forget(cell)
            raise

    async def _judged(self, cell: _Cell, told: dict[str, Any]) -> Step:
        """Make a step of what the supervisor told."""
        kind, cause = told.get("kind"), str(told.get("cause", ""))
        if kind in {"busy", "image"}:
            self._cells.discard(cell)
            raise RuntimeUnavailableError(
                _broken_image(cause) if kind == "image" else self._overloaded()
            )
        frames = told.get("frames")
        if isinstance(frames, list) and len(frames) > FRAMES_ON_LOOP:
            step = await anyio.to_thread.run_sync(judge, told, cell.filename, cell.limits)
        else:
            step = judge(told, cell.filename, cell.limits)
        if isinstance(step, Handed):
            return Suspended(
                requests=tuple(step.requests),
                continuation=_Continuation(self, cell),
                withdrawn=tuple(step.withdrawn),
                output=tuple(step.output),
            )
        self._cells.discard(cell)
        return step

    async def _ready(self) -> Supervisor:
        """Return a supervisor that runs, starting one where there is none."""
        if self._closed:
            raise RuntimeUnavailableError("executor 'node' is closed")
        supervisor = self._usable()
        if supervisor is None:
            async with self._starting:
                supervisor = self._usable() or await self._launch()
        if not supervisor.version:
            await supervisor.ready(self._options.start_seconds)
        return supervisor

    def _usable(self) -> Supervisor | None:
        supervisor = self._supervisor
        if supervisor is None:
            return None
        if supervisor.alive and supervisor.loop is asyncio.get_running_loop():
            return supervisor
        supervisor.kill()
        self._counts["workers_started"] += supervisor.counts.get("started", 0)
        self._supervisor = None
        return None

    async def _launch(self) -> Supervisor:
        options = self._options
        binary = find_node(options.binary)
        settings = {
            "workers": options.workers,
            "idle": options.idle,
            "queue": _milliseconds(options.queue_seconds),
        }
        self._supervisor = await Supervisor.launch(binary, settings, options.line_bytes)
        self._counts["supervisors_started"] += 1
        return self._supervisor

    def _image(self, supervisor: Supervisor, image: GuestImage) -> int:
        """Return the number of the image at the supervisor, which is sent there once."""
        known = supervisor.images
        number = known.pop(image.key, None)
        if number is None:
            number = self._next()
            supervisor.send("image", number, (0,), image_text(image))
        known[image.key] = number
        while len(known) > self._options.images:
            supervisor.send("forget", known.pop(next(iter(known))))
        return number

    async def _ask(
        self, supervisor: Supervisor, verb: str, numbers: tuple[int, ...], payload: str = ""
    ) -> dict[str, Any]:
        token = self._next()
        answer = supervisor.expect(token)
        supervisor.send(verb, token, numbers, payload)
        give_up = self._options.start_seconds + self._options.queue_seconds
        hung = supervisor.loop.call_later(give_up, supervisor.kill)
        try:
            told = await decoded(await answer)
        except SupervisorGoneError as gone:
            msg = f"executor 'node' is not available: the supervisor ended: {gone}"
            raise RuntimeUnavailableError(msg) from gone
        finally:
            hung.cancel()
            supervisor.unexpect(token)
        supervisor.note(told)
        return told

    def _next(self) -> int:
        self._last += 1
        return self._last

    def _overloaded(self) -> str:
        return (
            f"executor 'node' is overloaded: no worker was free for "
            f"{self._options.queue_seconds:g} s; try again later"
        )


class _Continuation:
    """A program of this executor that waits, alive on its worker."""

    def __init__(self, executor: NodeExecutor, cell: _Cell) -> None:
        self._executor = executor
        self._cell = cell

    async def resume(self, settled: Sequence[Settled], seconds: float) -> Step:
        """See `execution.contract.Continuation.resume`."""
        return await self._executor.resume(self._cell, settled, seconds)

    async def park(self) -> int | Faulted:
        """Keep it alive (rule 9.2), on as little memory as can be."""
        self._cell.supervisor.send("park", self._cell.number)
        return 0

    async def dispose(self) -> None:
        """Drop it. Safe to call again."""
        self._executor.forget(self._cell)


def _broken_image(cause: str) -> str:
    return f"executor 'node' cannot make the guest image: {cause}"


def _milliseconds(seconds: float) -> int:
    return max(int(seconds * 1000), 1)
