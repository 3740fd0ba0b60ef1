"""Owns `Deadline`: a budget of time as a value that is handed down and may be paused.

Above: cells, the gate, approvals (which pause it, rule 3.5). Below: `base.clock`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolcell.base.clock import SYSTEM_CLOCK, Clock


class Deadline:
    """A budget of seconds that runs from its making and stands still while paused.

    Pauses nest: two open approvals pause it once, until the last one closes.
    """

    __slots__ = ("_clock", "_ends_at", "_paused_at", "_pauses")

    def __init__(self, seconds: float, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + seconds
        self._pauses = 0
        self._paused_at = 0.0

    @property
    def remaining(self) -> float:
        """Seconds left; never below zero."""
        now = self._paused_at if self._pauses else self._clock.monotonic()
        return max(0.0, self._ends_at - now)

    @property
    def expired(self) -> bool:
        """Whether nothing is left."""
        return self.remaining <= 0.0

    @property
    def paused(self) -> bool:
        """Whether it stands still at the moment."""
        return self._pauses > 0

    def restart(self, seconds: float) -> None:
        """Run `seconds` anew from now on; open pauses go on holding it."""
        now = self._clock.monotonic()
        self._ends_at = now + seconds
        self._paused_at = now

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hold the budget still for the body of the `with` statement."""
        if self._pauses == 0:
            self._paused_at = self._clock.monotonic()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self._ends_at += self._clock.monotonic() - self._paused_at
