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


class FanOut:
    """Hands each event to several sinks, in order."""

    __slots__ = ("_sinks",)

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: Event) -> None:
        """Hand the event on."""
        for sink in self._sinks:
            sink.emit(event)
