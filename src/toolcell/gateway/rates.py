"""Owns the rate limit: a bucket of requests for each client address.

Above: `guard`. Below: `base.clock`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from toolcell.base.clock import Clock

MAX_ADDRESSES: Final = 4096


class RateLimit:
    """Token buckets; an address may use a minute's worth at once, then a steady share.

    Args:
        per_minute: Requests a minute.
        clock: Tells the time.
    """

    def __init__(self, per_minute: int, *, clock: Clock) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> float:
        """Take one; return 0, or the seconds after which there is one again."""
        now = self._clock.monotonic()
        left, seen = self._left.pop(address, (float(self._per_minute), now))
        rate = self._per_minute / 60
        left = min(self._per_minute, left + (now - seen) * rate)
        wait = 0.0 if left >= 1 else (1 - left) / rate
        self._left[address] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MAX_ADDRESSES:
            self._left.popitem(last=False)
        return wait
