"""Owns the cap on suspended cells: 64 in a process, all executors and sessions together (rule 3.8).

The one module-level state of code mode, because the rule speaks of the process.

Above: `continuations.store`. Below: nothing. Refuses to know: cells.
"""

from __future__ import annotations

from typing import Final


class SuspensionCap:
    """Counts slots.

    A slot is held from the first park to the end of the cell, resumes included, so that a resumed
    cell can always be parked again (REPORTS RS-02).
    """

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    @property
    def held(self) -> int:
        """Slots in use."""
        return self._held

    def take(self) -> bool:
        """Take a slot; False when all are in use."""
        if self._held >= self._limit:
            return False
        self._held += 1
        return True

    def give_back(self) -> None:
        """Free a slot that was taken."""
        self._held -= 1


MAX_SUSPENDED: Final = 64
PROCESS_CAP: Final = SuspensionCap(MAX_SUSPENDED)
