"""Owns the last mask before events leave for sinks: texts the gate has not seen (SE-08).

The gate masks its own events. Messages, programs and errors come from elsewhere; what a model or a
person wrote may repeat a secret that a tool showed.

Above: `app.runtime`. Below: `calls.redaction`, `protocol.events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, get_args

from toolcell.base.jsontext import dumps, loads
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
from toolcell.protocol.messages import Message, Reasoning, ToolCall
from toolcell.protocol.sink import Sink, diagnostics_only

MAX_KEPT: Final = 32


TEXTS: Final[Mapping[type, tuple[str, ...]]] = {
    CellEnded: ("error",),
    CellStarted: ("code",),
    ChildChanged: ("label", "phase", "error"),
    Compacted: ("summary",),
    Diagnostic: ("subject", "message"),
    RunEnded: ("error",),
    RunStarted: ("sender", "channel"),
    SwarmNote: ("text",),
}
"""Fields that hold what a model, a program or a person wrote."""
IDS: Final = ("call_id", "parent_id")
"""Ids of calls are the model's own words, and the same everywhere when they are masked."""
_NAMED: Final[Mapping[type, tuple[str, ...]]] = {
    kind: (*TEXTS.get(kind, ()), *(each.name for each in fields(kind) if each.name in IDS))
    for kind in get_args(Event)
}


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
        if not self._redactor.forms:
            return event
        match event:
            case MessageAdded():
                return replace(event, message=self._message(event.message))
            case ContentKept():
                text = self._content(event)
                return event if text == event.text else replace(event, text=text)
            case CellStepped():
                event = self._step(event)
        masked: dict[str, Any] = {}
        for name in _NAMED[type(event)]:
            given = getattr(event, name)
            if given is not None and (shown := self._redactor.text(given)) != given:
                masked[name] = shown
        return replace(event, **masked) if masked else event

    def _content(self, event: ContentKept) -> str:
        """Contents are large and come again and again."""
        masked = self._kept.get(event.key)
        if masked is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
            masked = self._kept[event.key] = self._redactor.text(event.text)
        return masked

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
        calls = tuple(map(self._call, message.tool_calls))
        images = tuple(
            image if image.at is None else replace(image, at=len(text(message.text[: image.at])))
            for image in message.images
        )
        return replace(
            message,
            text=text(message.text),
            tool_calls=calls,
            tool_call_id=message.tool_call_id and text(message.tool_call_id),
            images=images,
            reasoning=self._reasoning(message.reasoning),
        )

    def _call(self, call: ToolCall) -> ToolCall:
        text = self._redactor.text
        return ToolCall(text(call.id), text(call.name), self._arguments(call.arguments))

    def _arguments(self, arguments: str) -> str:
        """Mask what the tool gets: JSON may write any letter as an escape."""
        if "\\u" in arguments:
            try:
                given = loads(arguments)
            except (ValueError, RecursionError):
                return self._redactor.text(arguments)
            masked = self._redactor.value(given)
            if masked != given:
                return dumps(masked)
        return self._redactor.text(arguments)

    def _reasoning(self, reasoning: Reasoning | None) -> Reasoning | None:
        """Drop what holds a secret: it is signed, and no model takes it back changed."""
        if reasoning is None:
            return None
        items = [dict(item) for item in reasoning.items]
        return reasoning if self._redactor.value(items) == items else None
