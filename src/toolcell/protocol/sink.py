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


def diagnostics_only(sink: Sink) -> bool:
    """Whether a sink forgets all but diagnostics: facts of calls and steps need not be made for it.

    A sink says so by an attribute of this name.
    """
    return getattr(sink, "diagnostics_only", False) is True


class NullSink:
    """Takes events and forgets them."""

    diagnostics_only = True

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

    @property
    def diagnostics_only(self) -> bool:
        """Whether the sink is content with diagnostics."""
        return diagnostics_only(self._sink)

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

    @property
    def diagnostics_only(self) -> bool:
        """Whether all of them are content with diagnostics."""
        return all(map(diagnostics_only, self._sinks))

    def emit(self, event: Event) -> None:
        """Hand the event on."""
        for sink in self._sinks:
            sink.emit(event)
