"""Owns the two clocks of a cell: its compute budget and its life while parked.

An open approval holds both still, and neither holds the reply deadline of `exec` and `wait`
(rule 3.5).

Above: cells. Below: `base.deadline`. Refuses to know: approvals; it is only paused by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolcell.base.clock import Clock
from toolcell.base.deadline import Deadline


class CellBudget(Deadline):
    """The compute budget of one `exec` or `wait`; pausing it pauses the cell's life too."""

    __slots__ = ("life",)

    def __init__(self, seconds: float, *, clock: Clock) -> None:
        super().__init__(seconds, clock=clock)
        self.life = Deadline(seconds, clock=clock)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hold both still for the body of the `with` statement."""
        with self.life.pause(), super().pause():
            yield
