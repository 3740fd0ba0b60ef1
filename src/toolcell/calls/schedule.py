"""Owns the order in which tool bodies of one run may overlap (BEHAVIOURS 191).

Above: the gate. Below: `anyio`. A `sequential` tool runs alone among the calls of its run; others
overlap freely; both wait their turn in order of arrival.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from types import TracebackType
from typing import Final

import anyio

from toolcell.errors import CallError

REENTRANT: Final = "Reentrant tool call would wait on its own catalog execution."

_held: ContextVar[tuple[Turn, ...]] = ContextVar("toolcell_turns", default=())
"""The turns of the bodies this code runs inside of: tasks a body starts inherit them."""


class RunSchedule:
    """The turns of one run."""

    __slots__ = ("_alone", "_queue", "_running")

    def __init__(self) -> None:
        self._running = 0
        self._alone = False
        self._queue: deque[Turn] = deque()

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return not self._running and not self._queue

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return len(self._queue)

    def turn(self, *, alone: bool) -> Turn:
        """Return a turn, to be held with `async with` while the body runs."""
        return Turn(self, alone=alone)

    def try_start(self, turn: Turn, *, within: bool) -> bool:
        """Let the turn run now if it may; `within`: a body of this run makes the call."""
        free = not self._alone and not (turn.alone and self._running)
        if not free or (self._queue and not within):
            return False
        self._start(turn)
        return True

    def enqueue(self, turn: Turn) -> None:
        """Put the turn at the end of the queue."""
        self._queue.append(turn)

    def leave(self, turn: Turn) -> None:
        """End a turn, whether it runs or still waits, and start those that may now run."""
        if turn.running:
            turn.running = False
            self._running -= 1
            self._alone = False
        elif turn in self._queue:
            self._queue.remove(turn)
        while self._queue and not self._alone:
            first = self._queue[0]
            if first.alone and self._running:
                break
            self._start(self._queue.popleft())
            first.started.set()

    def _start(self, turn: Turn) -> None:
        turn.running = True
        self._running += 1
        self._alone = turn.alone


class Turn:
    """The right of one tool body to run. Made by `RunSchedule.turn`."""

    __slots__ = ("_outer", "_schedule", "_started", "alone", "running")

    def __init__(self, schedule: RunSchedule, *, alone: bool) -> None:
        self._schedule = schedule
        self._started: anyio.Event | None = None
        self._outer: tuple[Turn, ...] = ()
        self.alone = alone
        self.running = False

    @property
    def started(self) -> anyio.Event:
        """Set when a waiting turn may run."""
        if self._started is None:
            self._started = anyio.Event()
        return self._started

    async def __aenter__(self) -> None:
        """Wait for the turn.

        Raises:
            CallError: `unavailable`: the call comes from a body that it would wait for.
        """
        self._outer = _held.get()
        around = [turn for turn in self._outer if turn.running and turn.belongs_to(self._schedule)]
        if any(turn.alone or self.alone for turn in around):
            raise CallError(REENTRANT, code="unavailable", effect="none")
        if not self._schedule.try_start(self, within=bool(around)):
            self._schedule.enqueue(self)
            try:
                await self.started.wait()
            except BaseException:
                self._schedule.leave(self)
                raise
        _held.set((*self._outer, self))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the turn up."""
        _held.set(self._outer)
        self._schedule.leave(self)

    def belongs_to(self, schedule: RunSchedule) -> bool:
        """Whether this is a turn of that run."""
        return self._schedule is schedule
