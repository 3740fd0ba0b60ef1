"""Owns the last mask before events leave for sinks: texts the gate has not seen (SE-08).

The gate masks its own events. Messages, programs and errors come from elsewhere; what a model or a
person wrote may repeat a secret that a tool showed.

Above: `app.runtime`. Below: `calls.redaction`, `protocol.events`.
"""

from __future__ import annotations

from dataclasses import replace

from toolcell.calls.redaction import Redactor
from toolcell.protocol.events import (
    CellEnded,
    CellStarted,
    Diagnostic,
    Event,
    MessageAdded,
    RunEnded,
)
from toolcell.protocol.messages import Message
from toolcell.protocol.sink import Sink


class Masking:
    """Hands events on with the secrets in their texts masked."""

    __slots__ = ("_redactor", "_sink")

    def __init__(self, sink: Sink, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor

    def emit(self, event: Event) -> None:
        """Hand one event on."""
        self._sink.emit(self._masked(event))

    def _masked(self, event: Event) -> Event:
        text = self._redactor.text
        match event:
            case MessageAdded():
                return replace(event, message=self._message(event.message))
            case CellStarted():
                return replace(event, code=text(event.code))
            case RunEnded() | CellEnded() if event.error is not None:
                return replace(event, error=text(event.error))
            case Diagnostic():
                return replace(event, message=text(event.message))
            case _:
                return event

    def _message(self, message: Message) -> Message:
        text = self._redactor.text
        calls = tuple(replace(call, arguments=text(call.arguments)) for call in message.tool_calls)
        return replace(message, text=text(message.text), tool_calls=calls)
