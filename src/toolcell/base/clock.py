"""Owns time: the one file that reads clocks, so that a test can hand in its own.

Above: everything with a deadline, a TTL or a timestamp. Below: `time`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: `monotonic` for durations (seconds), `wall` for timestamps (Unix seconds)."""

    def monotonic(self) -> float:
        """Return seconds that only go forward."""
        ...

    def wall(self) -> float:
        """Return Unix seconds."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Return seconds that only go forward (`time.monotonic`)."""
        return time.monotonic()

    def wall(self) -> float:
        """Return Unix seconds (`time.time`)."""
        return time.time()


SYSTEM_CLOCK = SystemClock()
