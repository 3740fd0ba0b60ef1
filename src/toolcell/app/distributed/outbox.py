"""Owns the events of children on their way out of a worker.

An event belongs to the child in whose run it happened, or to the child further up whose child that
is. It is packed when it is emitted: a tool may change its arguments later.

Above: the worker. Below: `messages`, `protocol.events`. Refuses to know: Ray, runtimes.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio

from toolcell.app.distributed.messages import Packed, Piece
from toolcell.base.raised import text_of_error
from toolcell.protocol.events import ContentKept, Diagnostic, Event
from toolcell.swarm.ports import ChildOutcome

MAX_STRAY: Final = 1000
"""Events of no child that runs, kept until one can take them along; the oldest go first."""
_UNPACKABLE: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


class Box:
    """What one child has to say.

    Attributes:
        scope: Cancels the child.
        closed: Set when nothing more will come.
    """

    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self.scope = anyio.CancelScope()
        self.closed = anyio.Event()
        self._events: list[bytes] = []
        self._outcome: ChildOutcome | None = None
        self._news = anyio.Event()

    def add(self, packed: bytes) -> None:
        """Take one event."""
        self._events.append(packed)
        self._news.set()

    def finish(self, outcome: ChildOutcome) -> None:
        """Take what the child came to."""
        self._outcome = outcome
        self._news.set()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed.set()
        self._news.set()

    async def next(self) -> Piece | None:
        """Return what is new, as soon as something is; None when all was handed over."""
        while True:
            await self._news.wait()
            if not self.closed.is_set():
                self._news = anyio.Event()
            piece = self.rest()
            if piece.events or piece.outcome is not None:
                return piece
            if self.closed.is_set():
                return None

    def rest(self) -> Piece:
        """Return what was not handed over yet, without waiting."""
        piece = Piece(events=tuple(self._events), outcome=self._outcome)
        self._events, self._outcome = [], None
        return piece


class Outbox:
    """A sink: hands each event to the box of its child.

    Args:
        parent_of: Returns the run that started the child whose run this is; None for no child.
    """

    def __init__(self, parent_of: Callable[[str], str | None]) -> None:
        self._parent_of = parent_of
        self._boxes: dict[str, Box] = {}
        self._stray: deque[bytes] = deque(maxlen=MAX_STRAY)

    def open(self, run_id: str, known: frozenset[str]) -> Box:
        """Return the box of a child.

        Args:
            run_id: Its run.
            known: Keys of contents whose text need not be sent.
        """
        box = self._boxes[run_id] = Box(known)
        return box

    def close(self, run_id: str) -> Packed:
        """Forget a box; return the events that were still in it."""
        box = self._boxes.pop(run_id, None)
        return () if box is None else box.rest().events

    def box(self, run_id: str) -> Box | None:
        """Return the box of a child that was not forgotten."""
        return self._boxes.get(run_id)

    def strays(self) -> Packed:
        """Return, once, the events that belong to no child."""
        found = tuple(self._stray)
        self._stray.clear()
        return found

    def emit(self, event: Event) -> None:
        """Take one event."""
        box = self._of(event)
        if box is None:
            self._stray.append(_packed(event))
            return
        if isinstance(event, ContentKept) and event.key in box.known:
            event = replace(event, text="")
        box.add(_packed(event))

    def _of(self, event: Event) -> Box | None:
        scope = event.scope
        run_id = None if scope is None else scope.run_id
        while run_id is not None:
            box = self._boxes.get(run_id)
            if box is not None:
                return box
            run_id = self._parent_of(run_id)
        return None


def _packed(event: Event) -> bytes:
    try:
        return pickle.dumps(event, protocol=pickle.HIGHEST_PROTOCOL)
    except _UNPACKABLE as error:
        message = f"an event could not be sent home: {text_of_error(error)}"
        told = Diagnostic(
            at=event.at,
            level="warning",
            subject=type(event).__name__,
            message=message,
            scope=event.scope,
        )
        return pickle.dumps(told, protocol=pickle.HIGHEST_PROTOCOL)
