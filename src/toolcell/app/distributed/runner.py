"""Owns running a child on a worker: the attempts, what comes back, and how it is cancelled.

Limits, order and results stay with the group at home. A child whose worker died is over, or begun
again as often as `tools.swarm.ray.retries` says; what came back before is kept.

Above: `app.conversation`, which hangs it in. Below: `pool`, `cargo`, `returning`.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from toolcell.app.distributed.cargo import packed
from toolcell.app.distributed.engine import Stream, dumps
from toolcell.app.distributed.messages import Lost, Piece, Stopped
from toolcell.app.distributed.pool import CLOSING_SECONDS, Pool, Worker
from toolcell.app.distributed.returning import Contents, Returning
from toolcell.app.runtime import Runtime
from toolcell.config.tools_tree import RaySettings
from toolcell.errors import ToolcellError
from toolcell.protocol.events import Diagnostic
from toolcell.swarm.ports import ChildOutcome, ChildTask


class RayChildren:
    """Implements `ElsewhereRunner`.

    Args:
        runtime: Whose children they are.
        lend: Lets the runtime of a worker run turns of children.
    """

    def __init__(self, runtime: Runtime, lend: Callable[[Runtime], None]) -> None:
        swarm = runtime.config.tools.swarm
        self._settings = RaySettings() if swarm is None else swarm.ray
        self._runtime = runtime
        self._contents = Contents()
        self._pool = Pool(
            self._settings,
            lambda: packed(runtime, lend, dumps),
            spawner=runtime.supervisor,
            told=self._told,
            on_progress=runtime.parts.on_progress,
        )

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers there are."""
        return tuple(self._pool.workers)

    async def prepare(self) -> None:
        """Check that children could run; nothing is started yet.

        Raises:
            ConfigError: Ray is not installed, or something cannot travel.
        """
        await self._pool.prepare()

    async def run(self, task: ChildTask) -> ChildOutcome:
        """Run a child to its end; being cancelled ends it on its worker, too.

        Raises:
            ToolcellError: it could not be run, or its worker died once too often.
        """
        died = 0
        while True:
            async with self._pool.place() as worker:
                came = await self._attempt(worker, task)
            if isinstance(came, ChildOutcome):
                return came
            died += 1
            again = died <= self._settings.retries
            text = f"{worker.name} died while it ran the child ({came.why})"
            if not again:
                tried = f"it was begun {died} times" if died > 1 else "it was not begun again"
                msg = f"{text}; {tried} (tools.swarm.ray.retries is {self._settings.retries})"
                raise ToolcellError(msg, code="worker_died")
            self._say("warning", task.run_id, f"{text}; it is begun again")

    async def aclose(self) -> None:
        """End the workers, and Ray if it was started here."""
        left = await self._pool.aclose()
        Returning(self._runtime.sink, self._runtime.host.clock, self._contents).take(left)

    async def _attempt(self, worker: Worker, task: ChildTask) -> ChildOutcome | Lost:
        back = Returning(self._runtime.sink, self._runtime.host.clock, self._contents)
        stream = worker.link.run(task, self._contents.keys())
        try:
            while True:
                match await stream.next():
                    case Piece() as piece:
                        back.take(piece.events)
                        if piece.outcome is not None:
                            self._runtime.supervisor.start_soon(
                                self._afterwards, stream, back, worker, name=f"child:{task.run_id}"
                            )
                            return piece.outcome
                    case Lost() as lost:
                        self._pool.lost(worker)
                        back.broke_off(f"{worker.name} died")
                        return lost
                    case Stopped() | None:
                        msg = f"{worker.name} ended the child"
                        raise ToolcellError(msg)
        except anyio.get_cancelled_exc_class():
            await self._cancelled(stream, back, worker, task)
            raise

    async def _afterwards(self, stream: Stream, back: Returning, worker: Worker) -> None:
        """Take what the children of a child still do when it is over."""
        while isinstance(piece := await stream.next(), Piece):
            back.take(piece.events)
        if isinstance(piece, Lost):
            self._pool.lost(worker)
            back.broke_off(f"{worker.name} died")

    async def _cancelled(
        self, stream: Stream, back: Returning, worker: Worker, task: ChildTask
    ) -> None:
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(CLOSING_SECONDS),
        ):
            stream.cancel()
            while isinstance(piece := await stream.next(), Piece):
                back.take(piece.events)
            if not isinstance(piece, Lost):
                left = await worker.link.left(task.run_id)
                back.take(() if isinstance(left, Lost) else left)
        back.broke_off("it was cancelled")

    def _told(self, worker: Worker) -> None:
        """Name the tools that children have at home and on this worker have not."""
        there = worker.report.tools
        missing = sorted(tool.id for tool in self._runtime.tools() if tool.id not in there)
        if missing:
            names = ", ".join(missing[:10]) + (
                f" and {len(missing) - 10} more" * (len(missing) > 10)
            )
            self._say("warning", worker.name, f"children there run without {names}")

    def _say(self, level: str, subject: str, message: str) -> None:
        self._runtime.sink.emit(
            Diagnostic(
                at=self._runtime.host.clock.wall(),
                level="warning" if level == "warning" else "info",
                subject=subject,
                message=message,
            )
        )
