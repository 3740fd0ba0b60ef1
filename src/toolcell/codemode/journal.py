"""Owns the journal of a cell: each step as an event, so that the cell can be run again offline.

It wraps the executor of one cell: whatever passes between guest and host passes here, on every
engine, and nothing else has to know.

Above: the runtime. Below: `execution.contract`, `protocol.events`. Refuses to know: what a request
means, who listens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolcell.base.clock import Clock
from toolcell.execution.contract import (
    Answer,
    Continuation,
    Executor,
    Faulted,
    Finished,
    GuestImage,
    Limits,
    Program,
    Request,
    Settled,
    Step,
    Suspended,
)
from toolcell.protocol.events import CellStepped, ContentKept
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink


@dataclass(slots=True, kw_only=True)
class Journal:
    """The steps of one cell, told to a sink.

    Attributes:
        call_id: The `exec` call.
        told: Keys of images that were told already; shared by the cells of a run.
    """

    sink: Sink
    clock: Clock
    scope: RunScope
    call_id: str
    cell_id: str
    told: set[str]
    steps: int = field(default=0, init=False)

    def began(self, program: Program, step: Step) -> None:
        """Tell of the first step."""
        image = program.image
        if image.key not in self.told:
            self.told.add(image.key)
            at, text = self.clock.wall(), _image_text(image)
            self.sink.emit(
                ContentKept(scope=self.scope, at=at, kind="image", key=image.key, text=text)
            )
        self._tell(step, start=program.start, image=image.key)

    def went_on(self, settled: Sequence[Settled], step: Step) -> None:
        """Tell of a further step."""
        self._tell(step, answers=tuple(map(_answer, settled)))

    def _tell(self, step: Step, **given: Any) -> None:
        self.steps += 1
        asked = step if isinstance(step, Suspended) else None
        self.sink.emit(
            CellStepped(
                scope=self.scope,
                at=self.clock.wall(),
                call_id=self.call_id,
                cell_id=self.cell_id,
                number=self.steps,
                requests=tuple(map(_request, asked.requests)) if asked is not None else (),
                withdrawn=asked.withdrawn if asked is not None else (),
                output=tuple({"type": frame.type, "text": frame.text} for frame in step.output),
                end=_end(step),
                **given,
            )
        )


class Journalled:
    """An executor whose steps are told to a journal."""

    def __init__(self, executor: Executor, journal: Journal) -> None:
        self._executor = executor
        self._journal = journal

    @property
    def name(self) -> str:
        """The name of the executor."""
        return self._executor.name

    async def identify(self) -> str:
        """Return what runs programs."""
        return await self._executor.identify()

    async def prepare(self, image: GuestImage) -> None:
        """Prepare the executor."""
        await self._executor.prepare(image)

    async def start(self, program: Program, limits: Limits, seconds: float) -> Step:
        """Start the program and tell of its first step."""
        step = await self._executor.start(program, limits, seconds)
        self._journal.began(program, step)
        return _followed(step, self._journal)

    async def aclose(self) -> None:
        """Close the executor."""
        await self._executor.aclose()

    def statistics(self) -> Mapping[str, int]:
        """Return the executor's counts."""
        return self._executor.statistics()


class _Followed:
    """A continuation whose steps are told."""

    __slots__ = ("_continuation", "_journal")

    def __init__(self, continuation: Continuation, journal: Journal) -> None:
        self._continuation = continuation
        self._journal = journal

    async def resume(self, settled: Sequence[Settled], seconds: float) -> Step:
        step = await self._continuation.resume(settled, seconds)
        self._journal.went_on(settled, step)
        return _followed(step, self._journal)

    async def park(self) -> int | Faulted:
        return await self._continuation.park()

    async def dispose(self) -> None:
        await self._continuation.dispose()


def _followed(step: Step, journal: Journal) -> Step:
    if isinstance(step, Suspended):
        return replace(step, continuation=_Followed(step.continuation, journal))
    return step


def _image_text(image: GuestImage) -> str:
    """Names of the scripts, which are files of this package, and on a second line their data."""
    names = [script.name for script in (image.controller, *image.extensions)]
    return f"{' '.join(names)}\n{image.data}"


def _answer(settled: Settled) -> dict[str, Any]:
    if isinstance(settled, Answer):
        return {"id": settled.id, "value": settled.value}
    return {"id": settled.id, "error": settled.error}


def _request(request: Request) -> dict[str, Any]:
    return {"id": request.id, "method": request.method, "args": request.args}


def _end(step: Step) -> dict[str, Any] | None:
    match step:
        case Finished():
            return {"value": step.value}
        case Faulted():
            error = step.error
            return {"fault": step.kind, "name": error.name, "message": error.message}
        case _:
            return None
