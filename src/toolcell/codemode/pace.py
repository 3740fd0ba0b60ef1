"""Owns letting the event loop breathe while a program's own numbers decide how long work takes.

Above: cells, bridges. Below: `base.clock`. Refuses to know: what the work is.
"""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import checkpoint

from toolcell.base.clock import SYSTEM_CLOCK, Clock

SLICE_SECONDS: Final = 0.004
"""How long one program may hold the event loop at a time; about what a thread switch takes."""


class Pace:
    """Measures one stretch of work on the event loop; call `step` between its parts."""

    __slots__ = ("_clock", "_since")

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._since = clock.monotonic()

    @property
    def due(self) -> bool:
        """Whether the slice is over."""
        return self._clock.monotonic() - self._since >= SLICE_SECONDS

    async def step(self) -> None:
        """Let others run when the slice is over."""
        if self.due:
            await checkpoint()
            self._since = self._clock.monotonic()
