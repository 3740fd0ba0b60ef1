"""Owns letting the event loop breathe while what a program or tool gave decides how long it takes.

Above: the gate, cells, bridges. Below: `base.clock`. Refuses to know: what the work is.
"""

from __future__ import annotations

from typing import Final

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint

from toolcell.base.clock import SYSTEM_CLOCK, Clock

SLICE_SECONDS: Final = 0.004
"""How long one program may hold the event loop at a time; about what a thread switch takes."""

LONG_SECONDS: Final = 0.02
_REST_SECONDS: Final = 0.001


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

    def restart(self) -> None:
        """Begin another stretch: what lies between was waiting, not work."""
        self._since = self._clock.monotonic()

    async def step(self, *, shielded: bool = False) -> None:
        """Let others run when the slice is over; a cancellation waits for what is `shielded`."""
        if not self.due:
            return
        if self._clock.monotonic() - self._since >= LONG_SECONDS:
            # An answer over a socket takes several turns of the loop; a checkpoint gives one.
            with anyio.CancelScope(shield=shielded):
                await anyio.sleep(_REST_SECONDS)
        else:
            await (cancel_shielded_checkpoint() if shielded else checkpoint())
        self._since = self._clock.monotonic()
