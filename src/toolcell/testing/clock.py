"""Owns a clock that stands still until a test moves it.

Above: tests. Below: nothing.
"""

from __future__ import annotations


class FakeClock:
    """A `Clock` whose two readings move only by `advance`."""

    def __init__(self, *, monotonic: float = 1000.0, wall: float = 1_700_000_000.0) -> None:
        self._monotonic = monotonic
        self._wall = wall

    def monotonic(self) -> float:
        """Return the set seconds."""
        return self._monotonic

    def wall(self) -> float:
        """Return the set Unix seconds."""
        return self._wall

    def advance(self, seconds: float) -> None:
        """Move both readings forward.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            message = f"a clock cannot go back {seconds!r} seconds"
            raise ValueError(message)
        self._monotonic += seconds
        self._wall += seconds
