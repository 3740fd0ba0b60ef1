"""Owns the order in which the children of one group run: first reserved, first run.

A place is taken when the child is asked for. A later one never runs before an earlier one that is
not ready yet; one that left is skipped. Places are objects, so a late clean-up of one can never
touch another (BEHAVIOURS 374).

Above: the group. Below: the standard library. Refuses to know: what runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Place:
    """One place in the queue. Made by `Schedule.reserve`."""

    __slots__ = ("left", "ready", "running", "start")

    def __init__(self, start: Callable[[], None]) -> None:
        self.start = start
        self.ready = False
        self.running = False
        self.left = False


class Schedule:
    """At most `limit` places run at once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running = 0
        self._queue: deque[Place] = deque()

    @property
    def running(self) -> int:
        """How many run."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(not place.left for place in self._queue)

    def reserve(self, start: Callable[[], None]) -> Place:
        """Take the next place; `start` is called once, when it is ready and its turn has come."""
        place = Place(start)
        self._queue.append(place)
        return place

    def ready(self, place: Place) -> None:
        """Let a place run as soon as its turn comes."""
        place.ready = True
        self._fill()

    def leave(self, place: Place) -> None:
        """Give a place up, whether it runs or still waits. Safe to call again."""
        if place.left:
            return
        place.left = True
        if place.running:
            self._running -= 1
        self._fill()

    def set_limit(self, limit: int) -> None:
        """Change how many may run: a lower one lets those that run finish first."""
        self._limit = limit
        self._fill()

    def _fill(self) -> None:
        while self._queue and (self._queue[0].left or self._running < self._limit):
            first = self._queue[0]
            if not first.left and not first.ready:
                return
            self._queue.popleft()
            if not first.left:
                first.running = True
                self._running += 1
                first.start()
