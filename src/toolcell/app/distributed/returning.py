"""Owns the events that come back from a worker: unpacked, made whole, handed on, and closed.

What was going on when a worker died has no end of its own; it is given one, so that no record shows
a run that goes on for ever.

Above: the runner. Below: `messages`, `protocol`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from toolcell.base.clock import Clock
from toolcell.protocol.events import ChildChanged, ContentKept, Event, RunEnded, RunStarted
from toolcell.protocol.scope import RunScope
from toolcell.protocol.sink import Sink

MAX_KEPT: Final = 32
"""Contents whose text workers need not send again; further ones are sent each time."""


class Contents:
    """Texts of contents that workers sent: a prompt or a catalog is the same for many children."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def keys(self) -> frozenset[str]:
        """Return the keys whose text is here."""
        return frozenset(self._texts)

    def whole(self, event: ContentKept) -> ContentKept:
        """Return the event with its text."""
        text = self._texts.get(event.key)
        if text is not None:
            return event if event.text else replace(event, text=text)
        if event.text and len(self._texts) < MAX_KEPT:
            self._texts[event.key] = event.text
        return event


class Returning:
    """The events of one child and of the children below it."""

    def __init__(self, sink: Sink, clock: Clock, contents: Contents) -> None:
        self._sink = sink
        self._clock = clock
        self._contents = contents
        self._runs: dict[str, RunScope] = {}
        self._children: dict[str, ChildChanged] = {}

    def take(self, packed: Iterable[bytes]) -> None:
        """Hand events on."""
        for each in packed:
            event: Event = pickle.loads(each)  # noqa: S301 - Ray's own wire, guarded by Ray
            self._note(event)
            whole = self._contents.whole(event) if isinstance(event, ContentKept) else event
            self._sink.emit(whole)

    def broke_off(self, why: str) -> None:
        """End what has no end."""
        at = self._clock.wall()
        for scope in self._runs.values():
            self._sink.emit(RunEnded(scope=scope, at=at, status="aborted", error=why))
        for child in self._children.values():
            self._sink.emit(replace(child, at=at, state="cancelled", error=why))
        self._runs.clear()
        self._children.clear()

    def _note(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._runs[event.scope.run_id] = event.scope
            case RunEnded():
                self._runs.pop(event.scope.run_id, None)
            case ChildChanged(state="queued" | "running"):
                self._children[event.child_run_id] = event
            case ChildChanged():
                self._children.pop(event.child_run_id, None)
