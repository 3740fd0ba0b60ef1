"""Owns progress: which client request hears of which nested call.

A cell's nested calls name the `exec` call as their parent, also while a `wait` drives the cell, so
a feed is keyed by the `exec` call and a `wait` looks it up by the cell it resumes.

Above: client sessions. Below: `protocol.events`. Refuses to know: the MCP SDK.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio

from toolcell.base.jsontext import dumps
from toolcell.protocol.events import (
    ApprovalRequested,
    CallEnded,
    CallStarted,
    CallUpdated,
    CellEnded,
    CellStarted,
    Event,
)

MAX_WAITING: Final = 64
"""Reports kept for a client that reads slowly; older ones are dropped, their numbers are not."""

_MAX_CHARACTERS: Final = 200

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one progress notification: a growing number, a total, a sentence."""


class ProgressFeed:
    """The progress of one request: put in by events, sent by the request's own task."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, str]] = deque(maxlen=MAX_WAITING)
        self._count = 0
        self._ready = anyio.Event()

    def put(self, message: str) -> None:
        """Take one report; never blocks."""
        self._count += 1
        self._waiting.append((self._count, _shown(message)))
        self._ready.set()

    async def send_all(self, report: Report) -> None:
        """Send what is waiting, and what comes, until cancelled."""
        while True:
            await self._ready.wait()
            self._ready = anyio.Event()
            await self.flush(report)

    async def flush(self, report: Report) -> None:
        """Send what is waiting."""
        while self._waiting:
            number, message = self._waiting.popleft()
            await report(float(number), None, message)


class CallProgress:
    """An event sink that hands nested calls to the feeds of the requests they belong to."""

    def __init__(self) -> None:
        self._feeds: dict[str, ProgressFeed] = {}
        self._cells: dict[str, tuple[str, str]] = {}

    @contextmanager
    def feeding(self, call_id: str) -> Iterator[ProgressFeed]:
        """Give a feed that hears of `call_id` and of the calls below it."""
        feed = self._feeds[call_id] = ProgressFeed()
        try:
            yield feed
        finally:
            if self._feeds.get(call_id) is feed:
                del self._feeds[call_id]

    def parent_of(self, cell_id: str, run_id: str) -> str | None:
        """Return the `exec` call that made a living cell of this run; None for any other's."""
        owner, call_id = self._cells.get(cell_id, ("", ""))
        return call_id if owner == run_id else None

    def emit(self, event: Event) -> None:
        """Take an event; never raises."""
        match event:
            case CellStarted():
                self._cells[event.cell_id] = (event.scope.run_id, event.call_id)
            case CellEnded():
                self._cells.pop(event.cell_id, None)
            case CallStarted(parent_id=str(parent)):
                self._tell(parent, f"{event.tool_id} started")
            case CallEnded(parent_id=str(parent)):
                took = f"{event.duration_ms:.0f} ms"
                self._tell(parent, f"{event.tool_id} {event.status} after {took}")
            case CallUpdated():
                self._tell(event.parent_id or event.call_id, _update_text(event.update))
            case ApprovalRequested():
                self._tell(event.call_id, f"{event.tool_id} waits for approval")
            case _:
                return

    def _tell(self, call_id: str, message: str) -> None:
        feed = self._feeds.get(call_id)
        if feed is not None:
            feed.put(message)


def _update_text(update: Any) -> str:
    """Return a tool's own report as a sentence: its `message`, its text, else its JSON."""
    if isinstance(update, Mapping) and isinstance(update.get("message"), str):
        return str(update["message"])
    return update if isinstance(update, str) else dumps(update)


def _shown(text: str) -> str:
    """Return one bounded line of printable characters: names and reports may be hostile."""
    cut = text[:_MAX_CHARACTERS]
    return "".join(char if char.isprintable() else " " for char in cut)
