"""Owns the last mask before events leave for sinks: texts the gate has not seen (SE-08).

The gate masks its own events. Messages, programs and errors come from elsewhere; what a model or a
person wrote may repeat a secret that a tool showed.

Above: `app.runtime`. Below: `calls.redaction`, `protocol.events`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from toolcell.calls.redaction import Redactor
from toolcell.protocol.events import (
    CellEnded,
    CellStarted,
    CellStepped,
    ChildChanged,
    Compacted,
    ContentKept,
    Diagnostic,
    Event,
    MessageAdded,
    RunEnded,
    RunStarted,
    SwarmNote,
)
from toolcell.protocol.messages import Message, Reasoning
from toolcell.protocol.sink import Sink, diagnostics_only

MAX_KEPT: Final = 32


class Masking:
    """Hands events on with the secrets in their texts masked."""

    __slots__ = ("_kept", "_redactor", "_sink")

    def __init__(self, sink: Sink, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor
        self._kept: dict[str, str] = {}

    @property
    def diagnostics_only(self) -> bool:
        """Whether nothing but diagnostics is wanted behind it."""
        return diagnostics_only(self._sink)

    def emit(self, event: Event) -> None:
        """Hand one event on."""
        self._sink.emit(self._masked(event))

    def _masked(self, event: Event) -> Event:
        match event:
            case MessageAdded():
                return replace(event, message=self._message(event.message))
            case ChildChanged():
                return self._child(event)
            case ContentKept():
                return replace(event, text=self._content(event))
            case CellStepped():
                return self._step(event)
            case _:
                return self._text_of(event)

    def _text_of(self, event: Event) -> Event:
        """Mask an event with one text in it; others come back as they are."""
        text = self._redactor.text
        masked = event
        match event:
            case Compacted():
                masked = replace(event, summary=text(event.summary))
            case CellStarted():
                masked = replace(event, code=text(event.code))
            case RunStarted() if event.sender is not None:
                masked = replace(event, sender=text(event.sender))
            case RunEnded() | CellEnded() if event.error is not None:
                masked = replace(event, error=text(event.error))
            case Diagnostic():
                masked = replace(event, message=text(event.message))
            case SwarmNote():
                masked = replace(event, text=text(event.text))
        return masked

    def _content(self, event: ContentKept) -> str:
        """Contents are large and come again and again."""
        masked = self._kept.get(event.key)
        if masked is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
            masked = self._kept[event.key] = self._redactor.text(event.text)
        return masked

    def _child(self, event: ChildChanged) -> ChildChanged:
        """Its label, phase and error are what a program or its model wrote."""
        label, phase, error = self._redactor.value([event.label, event.phase, event.error])
        return replace(event, label=label, phase=phase, error=error)

    def _step(self, event: CellStepped) -> CellStepped:
        value = self._redactor.value
        return replace(
            event,
            start=value(event.start),
            answers=tuple(value(list(event.answers))),
            requests=tuple(value(list(event.requests))),
            output=tuple(value(list(event.output))),
            end=value(event.end),
        )

    def _message(self, message: Message) -> Message:
        text = self._redactor.text
        calls = tuple(replace(call, arguments=text(call.arguments)) for call in message.tool_calls)
        images = tuple(
            image if image.at is None else replace(image, at=len(text(message.text[: image.at])))
            for image in message.images
        )
        return replace(
            message,
            text=text(message.text),
            tool_calls=calls,
            images=images,
            reasoning=self._reasoning(message.reasoning),
        )

    def _reasoning(self, reasoning: Reasoning | None) -> Reasoning | None:
        """Drop what holds a secret: it is signed, and no model takes it back changed."""
        if reasoning is None:
            return None
        items = [dict(item) for item in reasoning.items]
        return reasoning if self._redactor.value(items) == items else None
