"""Owns the port through which every room reports facts, and the two trivial sinks.

Above: everyone who reports. Below: `protocol.events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolcell.protocol.events import Event


class Sink(Protocol):
    """Takes events. Must not block and must not raise; slow work goes to a queue of its own."""

    def emit(self, event: Event) -> None:
        """Take one event."""
        ...


class NullSink:
    """Takes events and forgets them."""

    def emit(self, event: Event) -> None:
        """Forget the event."""


class Guarded:
    """Hands events to a sink of the surrounding program, which may be at fault.

    An event sink must never fail a call. The first error is kept for `doctor` and tests.
    """

    __slots__ = ("_sink", "error")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.error: Exception | None = None

    def emit(self, event: Event) -> None:
        """Hand the event on; an error of the sink ends here."""
        try:
            self._sink.emit(event)
        except Exception as error:  # noqa: BLE001 - the border to code that is not ours
            self.error = self.error or error


class FanOut:
    """Hands each event to several sinks, in order."""

    __slots__ = ("_sinks",)

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        """Hand the event on."""
        for sink in self._sinks:
            sink.emit(event)
