"""Owns the facts of a cell on record: started, parked, ended (one end for each start).

Above: the runtime. Below: `protocol.events`. Refuses to know: who listens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolcell.base.clock import Clock
from toolcell.codemode.cell import Cell
from toolcell.codemode.results import Failed, Outcome, Waiting
from toolcell.protocol.events import CellEnded, CellParked, CellStarted
from toolcell.protocol.sink import Sink


class CellRecord:
    """Reports the cells of one catalog, and remembers which are not over.

    Args:
        sink: Gets the events.
        clock: Dates them.
        telemetry: Gives the telemetry of the cells' own catalog, at the moment of a result.
    """

    def __init__(
        self, sink: Sink, clock: Clock, telemetry: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._telemetry = telemetry
        self._live: dict[str, Cell] = {}

    @property
    def live(self) -> tuple[Cell, ...]:
        """Cells that are running or parked."""
        return tuple(self._live.values())

    def started(self, cell: Cell) -> None:
        """A cell begins."""
        self._live[cell.cell_id] = cell
        self._sink.emit(
            CellStarted(
                scope=cell.scope,
                at=self._clock.wall(),
                call_id=cell.plan.call_id,
                cell_id=cell.cell_id,
                executor=cell.plan.executor.name,
                code=cell.plan.program.source,
            )
        )

    def concluded(self, cell: Cell, outcome: Outcome) -> Outcome:
        """A cell was parked, or is over; return the outcome with its telemetry."""
        if isinstance(outcome, Waiting):
            self._sink.emit(
                CellParked(
                    scope=cell.scope,
                    at=self._clock.wall(),
                    call_id=cell.plan.call_id,
                    cell_id=cell.cell_id,
                    reason=outcome.reason,
                    bytes_at_rest=cell.bytes_at_rest,
                )
            )
        elif isinstance(outcome, Failed):
            self._ended(cell, outcome.code or "aborted", outcome.error)
        else:
            self._ended(cell, None, None)
        return replace(outcome, telemetry=self._telemetry())

    def cancelled(self, cell: Cell) -> None:
        """Whoever ran the cell was cancelled, and the cell with it."""
        self._ended(cell, "aborted", "the caller was cancelled")

    def _ended(self, cell: Cell, code: str | None, error: str | None) -> None:
        if self._live.pop(cell.cell_id, None) is None:
            return
        self._sink.emit(
            CellEnded(
                scope=cell.scope,
                at=self._clock.wall(),
                call_id=cell.plan.call_id,
                cell_id=cell.cell_id,
                status="completed" if code is None else "failed",
                code=code,
                error=error,
            )
        )
